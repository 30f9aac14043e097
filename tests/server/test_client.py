"""The client of the control API where no run answers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.errors import RecoveryRefused
from headgate.runtime.live.state_folder import StateFolder
from headgate.server import Client, Control


def test_where_nothing_runs_the_error_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(RecoveryRefused, match=r"found no control.json.\nFix: start one with `head"):
        Client(tmp_path)
    holder = StateFolder(tmp_path)
    holder.take()
    with pytest.raises(RecoveryRefused, match=f"found process {os.getpid()}, which has used it"):
        Client(tmp_path)
    holder.release()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    Control(1, "token", gone.pid).write(tmp_path)
    with pytest.raises(RecoveryRefused, match=f"of process {gone.pid}, which is gone"):
        Client(tmp_path)
    holder.take()  # another one starts where a run was killed
    with pytest.raises(RecoveryRefused, match=r"which has used it.*which is gone: it starts Spark"):
        Client(tmp_path)
    holder.release()
    (tmp_path / "control.json").write_text("half of")
    with pytest.raises(RecoveryRefused, match=r"a control.json that cannot be read"):
        Client(tmp_path)


def test_a_file_whose_process_does_not_answer_is_no_run(tmp_path: Path) -> None:
    Control(1, "token", os.getpid()).write(tmp_path)
    with pytest.raises(RecoveryRefused, match=r"no answer at http://127\.0\.0\.1:1"):
        Client(tmp_path).status()
