"""The folder of a process for rows: private, there while the process lives, swept after a kill."""

import os
import subprocess
import sys
from pathlib import Path

from headgate.spark.jvm.own_folder import own_folder, sweep

LIVE = """
import sys
from pathlib import Path
from headgate.spark.jvm.own_folder import own_folder
folder = own_folder(Path(sys.argv[1]))
(folder / "rows").write_text("rows")
print(folder, flush=True)
sys.stdin.read()
"""


def process(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process with rows in its folder; it ends when its input does."""
    child = subprocess.Popen(
        [sys.executable, "-c", LIVE, str(parent)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, umask=0,
    )  # fmt: skip
    assert child.stdout is not None
    return child, Path(child.stdout.readline().strip())


def test_a_sweep_removes_only_folders_of_processes_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "headgate-rows-of-a-user").write_text("a file")
    killed, left = process(tmp_path)
    killed.kill()
    killed.communicate()
    assert list(left.iterdir())
    alive, live_folder = process(tmp_path)
    try:
        assert not left.exists()
        assert live_folder.stat().st_mode & 0o777 == 0o700
        sweep(tmp_path)
        assert list(live_folder.iterdir())
    finally:
        alive.communicate("")
    assert alive.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["headgate-rows-of-a-user"]


def test_a_folder_that_somebody_has_removed_is_created_again(tmp_path: Path) -> None:
    first = own_folder(tmp_path)
    assert own_folder(tmp_path) == first
    os.rmdir(first)
    assert own_folder(tmp_path).is_dir()
