"""The state directory: one Headgate at a time, and a fresh start that can be undone."""

import json
import os
from pathlib import Path

import pytest

from headgate.errors import RecoveryRefused
from headgate.runtime.live.state_folder import StateFolder


def tree(folder: Path) -> dict[str, str]:
    """Return the files of a directory with their text, except the lock."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(file.relative_to(folder)): file.read_text() for file in files}


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        file = folder / name.replace("__", "/").replace("_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_the_refusal_names_the_process_since_when_and_how_to_stop_it(tmp_path: Path) -> None:
    first, second = StateFolder(tmp_path), StateFolder(tmp_path, fresh=True)
    first.take()
    first.take()
    with pytest.raises(
        RecoveryRefused, match=r"one in this process \d+, which has used it since 20"
    ):
        second.take()
    pid = os.getpid() + 1
    (tmp_path / "lock").write_text(json.dumps({"pid": pid, "since_s": 1e8}))
    with pytest.raises(RecoveryRefused) as refused:
        second.take()
    assert f"found that of process {pid}, which has used it since 1973-" in str(refused.value)
    assert f"`headgate stop --state {tmp_path}` (or `kill {pid}`" in str(refused.value)
    (tmp_path / "lock").write_text("")
    with pytest.raises(RecoveryRefused, match="found another one"):
        second.take()
    first.release()
    second.take()
    second.release()


def test_a_fresh_start_deletes_only_once_it_has_succeeded(tmp_path: Path) -> None:
    write(tmp_path, journal_db="old", log__a__0="old", headgate_log="kept", state__lock="old")
    before = tree(tmp_path)
    folder = StateFolder(tmp_path, fresh=True)
    folder.take()
    for outcome in (folder.restore, folder.discard):
        folder.set_aside()
        assert not (tmp_path / "journal.db").exists()
        write(tmp_path, journal_db="new", results__a__0="new")
        outcome()
        after = {"journal.db": "new", "results/a/0": "new", "headgate.log": "kept"}
        assert tree(tmp_path) == (before if outcome == folder.restore else after)
    folder.release()


def test_a_fresh_start_never_empties_a_directory_of_others(tmp_path: Path) -> None:
    write(tmp_path, letter_txt="dear")
    with pytest.raises(RecoveryRefused, match="found files that are not Headgate's"):
        StateFolder(tmp_path, fresh=True).take()
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    file = tmp_path / "letter.txt"
    with pytest.raises(RecoveryRefused, match="expected a directory that Headgate can write to"):
        StateFolder(file / "state").take()
