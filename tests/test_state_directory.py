"""A state directory has one run, whatever is typed; and what signals to a run's group do."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.terminal import Terminal

from headgate import Headgate
from headgate.errors import RecoveryRefused
from headgate.server import Client

STREAM = {"format": "headgate", "options": {"rate_per_s": 200}, "trigger_s": 0.5}
QUERY = {"class": "N", "sql": "SELECT temperature FROM sensors"}


def start(*words: str) -> subprocess.Popen[str]:
    """Start a command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "headgate.cli", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def until(holds: Callable[[], Any], process: subprocess.Popen[str], limit_s: float = 120.0) -> Any:
    ends_at_s = time.monotonic() + limit_s
    while not (answer := holds()):
        assert time.monotonic() < ends_at_s, process.poll()
        time.sleep(0.02)
    return answer


def java_of(process: subprocess.Popen[str]) -> int:
    """Wait until a run has started Java, and return its process."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def java() -> int | None:
        pids = [int(pid) for pid in children.read_text().split()]
        return next((pid for pid in pids if "java" in name_of(pid)), None)

    return int(until(java, process))


def name_of(pid: int) -> str:
    """Return the command of a process; nothing if it has ended."""
    try:
        name, state = Path(f"/proc/{pid}/stat").read_text().split("(")[1].split(")")
    except OSError:
        return ""
    return "" if state.split()[0] in "ZX" else name


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    pipeline = {
        "state": str(tmp_path / "state"), "rehearsal_s": 1, "spark": {"master": "local[2]"},
        "streams": {"sensors": STREAM}, "classes": {"N": 1}, "queries": {"all": QUERY},
    }  # fmt: skip
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    return str(file)


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_survives_others_ends_with_its_group_and_takes_java_with_it(
    pipeline: str, terminal: Terminal, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    run = start("run", pipeline, "--json")
    until((state / "control.json").exists, run)

    def delivered() -> Any:
        account = Client(state).status()["queries"][0]["account"]
        return account and account["delivered"]

    until(delivered, run)
    # Neither another run nor a fresh one nor a Headgate in Python touches what the run has.
    control, lock = (state / "control.json").read_text(), (state / "lock").stat().st_ino
    for words in ((), ("--fresh",)):
        other = terminal.run("run", pipeline, *words)
        assert (other.returncode, other.stdout) == (2, "")
        assert f"found that of process {run.pid}, which has used it since 20" in other.stderr
        assert f"`headgate stop --state {state}` (or `kill {run.pid}`" in other.stderr
    with pytest.raises(RecoveryRefused, match=f"that of process {run.pid}"):
        Headgate(state=state, fresh=True)
    assert (state / "control.json").read_text() == control
    assert (state / "lock").stat().st_ino == lock
    count = delivered()
    until(lambda: delivered() > count, run)
    # The whole group is told to end, as `timeout` and systemd do it.
    os.killpg(run.pid, signal.SIGTERM)
    printed, errors = run.communicate(timeout=60)
    assert run.returncode == 0, errors
    assert json.loads(printed)[0]["total"]["tuples_in"] > 0
    assert "Traceback" not in errors
    assert not (state / "control.json").exists()
    # The same before Java has started.
    run = start("run", pipeline)
    java_of(run)
    os.killpg(run.pid, signal.SIGTERM)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 0, errors
    assert "stopped before the first tuple; a new start resumes" in errors
    assert "Traceback" not in errors
    # Java ends with the run, even if the run is killed alone.
    run = start("run", pipeline, "--no-control")
    java = java_of(run)
    until((state / "journal.db-wal").exists, run)
    run.kill()
    run.communicate(timeout=60)
    until(lambda: not name_of(java), run)


def test_a_second_signal_ends_the_process_at_once() -> None:
    script = (
        "import sys\n"
        "from headgate.cli import watch\n"
        "watch.SECOND_S = 3600\n"
        "say = lambda: print('stops', flush=True)\n"
        "with watch._interrupts(say, say, at_once=True):\n"
        "    for line in sys.stdin:\n"
        "        watch.SECOND_S = float(line)\n"
        "        print(watch.SECOND_S, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def wait_for(text: str) -> None:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{text}\n"

    print(1000, file=process.stdin, flush=True)
    wait_for("1000.0")
    process.send_signal(signal.SIGTERM)
    wait_for("stops")
    process.send_signal(signal.SIGTERM)  # the same request, sent twice
    print(0, file=process.stdin, flush=True)
    wait_for("0.0")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == ""
    assert process.returncode == -signal.SIGTERM
