"""Smoke test of an installation: simulate, run windows on local Spark, run examples/extending."""

import re
import shutil
import sqlite3
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import confluent_kafka  # noqa: F401  (a bound is true only if the wheel can be loaded)

from headgate.testing import run

ROOT = Path(__file__).resolve().parents[1]
START = datetime(2026, 1, 1)  # noqa: DTZ001  (the column has no zone)


def simulate(folder: Path) -> None:
    """Simulate a testbed and plot it."""
    page = folder / "plot.html"
    command = "simulate --testbed sharaf --queries 20 --tuples 200 --policy hnr --plot"
    headgate = Path(sys.executable).parent / "headgate"
    subprocess.run([headgate, *command.split(), page], check=True, stdout=subprocess.DEVNULL)
    assert page.stat().st_size
    print("a testbed was simulated and plotted")


def run_windows() -> None:
    """Run two queries over windows until they have results."""
    rows = [{"ts": START + timedelta(seconds=second), "v": second} for second in range(25)]
    window = "FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]"
    results = run(
        queries={
            "sums": f"SELECT sum(v) AS total {window}",
            "large": "SELECT v FROM s WHERE v > 22 AND v % 2 = 0",
        },
        rows={"s": rows},
        schemas={"s": "ts TIMESTAMP_NTZ, v INT"},
        event_times={"s": "ts"},
        timeout_s=300,
    )
    assert [row["total"] for row in results["sums"]] == [45, 145], results
    assert results["large"] == [{"v": 24}], results
    print("queries over windows and tuples gave the right rows")


def run_extending(folder: Path) -> None:
    """Run the commands in the README of examples/extending, and compare what they store."""
    shutil.copytree(ROOT / "examples/extending", folder / "examples/extending")
    text = (ROOT / "examples/extending/README.md").read_text()
    (commands,) = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    bin_folder = Path(sys.executable).parent
    path = f'PATH="{bin_folder}:$PATH"\n'
    # The sqlite3 program may be missing; the rows are read below.
    script = re.sub(r"^sqlite3 .*\n", "", commands, flags=re.MULTILINE)
    subprocess.run(["bash", "-euc", path + script], cwd=folder, check=True)
    connection = sqlite3.connect(folder / "results.db")
    messages = [message for (message,) in connection.execute("SELECT message FROM errors")]
    connection.close()
    assert sorted(messages) == ["disk full", "disk still full"], messages
    print("the package in examples/extending was installed and run")


if __name__ == "__main__":
    work = Path(sys.argv[1])
    simulate(work)
    run_windows()
    run_extending(work)
