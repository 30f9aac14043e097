"""A journal that was set back is recognized, also if only one of its two files is older."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.errors import RecoveryRefused
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import CHECKPOINT_EVERY, Journal

FORKS = """
import os, pathlib, signal, sys
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal

for line in sys.stdin:
    state, transactions, run = line.split("|")
    child = os.fork()
    if not child:
        cursors = Cursors(Journal(pathlib.Path(state)))
        for number in range(int(transactions)):
            cursors.ids([f"q{int(run)}-{number}"])
        os.kill(os.getpid(), signal.SIGKILL)
    print(os.waitpid(child, 0)[1], flush=True)
"""
Kill = Callable[[Path, int, int], None]


@pytest.fixture(scope="module")
def kill_after() -> Iterator[Kill]:
    """Yield a function that kills a process after so many transactions of its journal."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        commands, answers = process.stdin, process.stdout

        def kill(state: Path, transactions: int, run: int) -> None:
            assert answers is not None
            print(f"{state}|{transactions}|{run}", file=commands, flush=True)
            assert int(answers.readline()) == signal.SIGKILL

        yield kill
        commands.close()


def names(state: Path) -> list[str]:
    journal = Journal(state)
    rows = journal.read("SELECT query FROM ids ORDER BY id", ())
    journal.close()
    return [name for (name,) in rows]


@pytest.mark.parametrize("transactions", [5, CHECKPOINT_EVERY + 5])
def test_an_older_journal_beside_a_newer_wal_is_refused_and_not_mixed(
    kill_after: Kill, transactions: int, tmp_path: Path
) -> None:
    state, copy = tmp_path / "state", tmp_path / "journal.db"
    journal = Journal(state)
    Cursors(journal).ids(["first"])
    journal.close()
    shutil.copy(state / "journal.db", copy)
    kill_after(state, transactions, 1)
    kill_after(state, 5, 2)  # its start has copied the first -wal, and begun another
    whole = {path: path.read_bytes() for path in state.glob("journal.db*")}
    assert state / "journal.db-wal" in whole
    shutil.copy(copy, state / "journal.db")
    for _ in range(2):  # a supervisor starts it again and again
        with pytest.raises(RecoveryRefused, match=r"in the file itself, as journal\.generation"):
            Journal(state)
    assert (state / "journal.db").read_bytes() == copy.read_bytes()
    assert (state / "journal.db-wal").read_bytes() == whole[state / "journal.db-wal"]
    for path, data in whole.items():
        path.write_bytes(data)
    expected = [f"q1-{number}" for number in range(transactions)]
    assert names(state) == ["first", *expected, *(f"q2-{number}" for number in range(5))]


def test_a_journal_that_was_killed_or_copied_as_a_whole_is_accepted(
    kill_after: Kill, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    for run, transactions in enumerate((0, 3, CHECKPOINT_EVERY, CHECKPOINT_EVERY + 1)):
        kill_after(state, transactions, run)
        shutil.copytree(state, tmp_path / f"copy{run}")
    assert len(names(state)) == 2 * CHECKPOINT_EVERY + 4
    assert len(names(tmp_path / "copy1")) == 3
