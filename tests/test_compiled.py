"""Compiled functions: an import touches no cache, and functions work without one."""

import os
import subprocess
import sys
from pathlib import Path

DRAWN = "from headgate.workloads.random_hash import draw as d; print(d(1, 2, 3))"


def run(text: str, cache: str) -> str:
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    command = [sys.executable, "-c", text]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_an_import_touches_no_cache_and_the_first_call_fills_it(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    checks = f"import headgate, pathlib; assert not pathlib.Path({str(cache)!r}).exists()"
    first = run(f"{checks}; {DRAWN}", str(cache))
    assert list(cache.rglob("*.nbi"))
    assert run(f"{DRAWN}; assert d.stats.cache_hits", str(cache)) == first
    # Nobody can create a folder in /proc, and nobody needs one.
    assert run(DRAWN, "/proc/none") == first
