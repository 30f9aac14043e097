"""Compiled functions: an import touches no cache, and nothing needs one that can be written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAWN = "from headgate.workloads.random_hash import draw as d; print(d(1, 2, 3))"


def run(text: str, cache: str) -> str:
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    command = [sys.executable, "-c", text]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_an_import_touches_no_cache_and_the_first_call_fills_it(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run("import headgate", str(cache))
    assert not cache.exists()
    first = run(DRAWN, str(cache))
    assert list(cache.rglob("*.nbi"))
    assert run(f"{DRAWN}; assert d.stats.cache_hits", str(cache)) == first


@pytest.mark.skipif(not Path("/proc").exists(), reason="nobody can create a folder in /proc")
def test_a_cache_that_cannot_be_written_is_not_needed(tmp_path: Path) -> None:
    assert run(DRAWN, "/proc/none") == run(DRAWN, str(tmp_path))
