"""Ids of queries: the journal gives each number once, across restarts and kills."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal

KILLED = """
import os, pathlib, signal, sys
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal

cursors = Cursors(Journal(pathlib.Path(sys.argv[1])))
cursors.ids(["c", "d"])
cursors.forget("d")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_id_stays_with_its_query_and_goes_to_no_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert Cursors(journal).ids(["a", "b"]) == {"a": 1, "b": 2}
    Cursors(journal).forget("b")
    journal.close()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    journal = Journal(tmp_path)
    ids = Cursors(journal).ids(["a", "b", "c", "d"])
    journal.close()
    assert (ids["a"], {"b", "d"} & {name for name in ids if ids[name] <= 4}) == (1, set())
    assert len(set(ids.values())) == 4


def test_a_journal_without_ids_gives_them_at_the_next_start(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    Cursors(journal).remember("q", "SELECT a FROM s", "s")
    journal.close()
    with sqlite3.connect(tmp_path / "journal.db") as db:  # as an earlier release has left it
        db.execute("DROP TABLE ids")
    journal = Journal(tmp_path)
    assert Cursors(journal).ids(["q"]) == {"q": 1}
    assert Cursors(journal).remember("q", "SELECT a FROM s", "s").train == 0
    journal.close()
