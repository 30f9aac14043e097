"""The log of changes: what it makes of the pipeline file, what is undone, what a crash leaves."""

from pathlib import Path

import pytest

from headgate.runtime.live.changes import FILE, Changes


@pytest.fixture
def changes(tmp_path: Path) -> Changes:
    changes = Changes(tmp_path)
    changes.of_file = {"policy": "cqc", "queries": {"fire": {"weight": 1.0}, "log": {}}}
    return changes


def test_what_differs_from_the_file_is_said_and_survives_a_restart(
    changes: Changes, tmp_path: Path
) -> None:
    assert changes.differences() == []
    changes.note(1.0, "page", "policy", before="cqc", after="hr")
    changes.note(2.0, "page", "query", name="fire", before={"weight": 1.0}, after={"weight": 2.0})
    changes.note(3.0, "page", "add", name="warm, hot", after={"queries": {}})
    changes.note(4.0, "command", "drop", name="hot")
    changes.note(5.0, "command", "drop", name="log")
    again = Changes(tmp_path)
    again.of_file = changes.of_file
    assert again.entries == changes.entries
    assert again.differences() == changes.differences() == [
        "policy is hr, in the file cqc",
        "query fire: weight is 2.0, in the file 1.0",
        "warm was added and is not in the file",
        "log was dropped and is in the file",
    ]  # fmt: skip
    assert Changes(tmp_path, fresh=True).entries == []


def test_only_the_last_change_of_a_thing_can_be_undone_and_no_drop(changes: Changes) -> None:
    first = changes.note(1.0, "page", "policy", before="cqc", after="hr")
    second = changes.note(2.0, "page", "policy", before="hr", after="rr")
    pause = changes.note(3.0, "page", "pause", name="fire")
    drop = changes.note(4.0, "page", "drop", name="log")
    assert [changes.of_number(change.number) for change in (first, second, pause, drop)] == [
        None, second, pause, None,
    ]  # fmt: skip
    changes.note(5.0, "page", "policy", before="rr", after="hr", undoes=second.number)
    assert changes.of_number(second.number) is None
    assert changes.of_number(first.number) is first  # it is the last one again
    changes.note(6.0, "page", "policy", before="hr", after="cqc", undoes=first.number)
    assert changes.differences() == ["log was dropped and is in the file"]
    undone = {row["number"] for row in changes.to_list() if row["undone"]}
    assert undone == {first.number, second.number}


def test_a_line_that_a_crash_has_torn_is_left_out(
    changes: Changes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changes.note(1.0, "page", "policy", before="cqc", after="hr")
    with (tmp_path / FILE).open("a") as file:
        file.write('{"number":2,"at_s":2.0,"ori')
    assert [change.after for change in Changes(tmp_path).entries] == ["hr"]
    assert "cannot be read" in caplog.text
    Changes(tmp_path).note(3.0, "page", "policy", before="hr", after="rr")
    assert [change.after for change in Changes(tmp_path).entries] == ["hr", "rr"]


def test_without_a_file_the_program_says_what_holds(changes: Changes, tmp_path: Path) -> None:
    changes.note(1.0, "page", "policy", before="cqc", after="hr")
    again = Changes(tmp_path)
    again.begin_without_file("rr", {})
    assert again.differences() == []
    assert len(again.entries) == 1


def test_a_change_behind_a_torn_line_is_not_lost_with_it(changes: Changes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"number":1,"at_s":2.0,"ori')
    Changes(tmp_path).note(1.0, "page", "policy", before="cqc", after="hr")
    assert [change.after for change in Changes(tmp_path).entries] == ["hr"]


def test_where_a_change_was_undone_the_next_start_follows_the_file(
    changes: Changes, tmp_path: Path
) -> None:
    policy = changes.note(1.0, "page", "policy", before="cqc", after="hr")
    values = {"before": {"weight": 1.0}, "after": {"weight": 2.0}}
    weight = changes.note(2.0, "page", "query", name="fire", **values)
    undone = {"before": {"weight": 2.0}, "after": {"weight": 1.0}}
    changes.note(3.0, "page", "query", name="fire", **undone, undoes=weight.number)
    changes.note(4.0, "page", "policy", before="hr", after="cqc", undoes=policy.number)
    again = Changes(tmp_path)
    again.of_file = {"policy": "rr", "queries": {"fire": {"weight": 5.0}}}
    assert again.differences() == []


def test_a_name_stands_for_what_was_added_last(changes: Changes, tmp_path: Path) -> None:
    first, second = {"queries": {"a": 1, "b": 1}}, {"queries": {"a": 2}}
    changes.note(1.0, "page", "add", name="a, b", after=first)
    addition = changes.note(2.0, "page", "add", name="s", after={"streams": {"s": 1}})
    changes.note(3.0, "page", "drop", name="a")
    changes.note(4.0, "page", "drop stream", name="s")
    changes.note(5.0, "page", "add", name="a", after=second)
    assert changes.of_number(addition.number) is None  # it is gone already
    assert Changes(tmp_path).standing.added == {"b": first, "a": second}
