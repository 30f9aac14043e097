"""Headgate's answers to many texts in one run."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Literal

from differential.world import World
from headgate import Headgate, Query, Sink
from headgate.errors import HeadgateError

Way = tuple[Literal["driver", "job"], Literal["class", "none"]]
"""A lane, and which queries share their parts: those of a class, or none."""

WAYS: tuple[Way, ...] = (("driver", "class"), ("job", "none"), ("driver", "none"), ("job", "class"))

CALL_TIMEOUT_S, STILL_S = 60.0, 90.0
"""How long a call may take, and for how long a run may stand still before it is given up."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a query in a run of Headgate.

    The state `answered` comes with a folder of result files. The state `broken` means that an
    exception escaped that is not one of Headgate's errors.
    """

    state: Literal["answered", "refused", "failed", "hung", "broken"]
    folder: Path | None = None
    reason: str = ""


@dataclass(frozen=True)
class Question:
    """A text, the streams that it reads, and the format of its results."""

    name: str
    sql: str
    streams: tuple[str, ...]
    sink: Literal["parquet", "csv", "json"] = "parquet"


def answers(
    world: World,
    questions: list[Question],
    way: Way,
    folder: Path,
) -> dict[str, Outcome]:
    """Return the outcome of every text in one run of Headgate.

    If the run as a whole fails, each half of the texts runs separately, so that the failure is
    attributed to the texts that cause it.
    """
    if not questions:
        return {}
    try:
        return _run(world, questions, way, folder)
    except Exception as error:
        if len(questions) == 1:
            reason = f"the run broke: {type(error).__name__}: {error}"
            return {questions[0].name: Outcome("broken", reason=reason)}
    half = len(questions) // 2
    return {
        **answers(world, questions[:half], way, folder / "a"),
        **answers(world, questions[half:], way, folder / "b"),
    }


def _run(
    world: World,
    questions: list[Question],
    way: Way,
    folder: Path,
) -> dict[str, Outcome]:
    rmtree(folder, ignore_errors=True)
    lane, share = way
    gate = Headgate(
        world.users, state=folder, policy="rr", classes={"C": 1}, rehearsal_s=0, lane=lane,
        share=share, call_timeout_s=CALL_TIMEOUT_S,
    )  # fmt: skip
    # A job for every query and train takes most of the time, so only one way by jobs has several
    # trains.
    outcomes = _registered(gate, world, questions, whole=way == ("job", "none"))
    offered = {
        question.name: sum(len(world.tuples[stream]) for stream in question.streams)
        for question in questions
        if question.name not in outcomes
    }
    if not offered:
        return outcomes
    gate.start()
    try:
        _wait(gate, offered)
        totals = gate.totals()
    finally:
        gate.stop()
    for name, count in offered.items():
        error = gate.query(name).exception()
        if error is not None:
            outcomes[name] = Outcome("failed", reason=str(error))
        elif totals[name][0] < count:
            outcomes[name] = Outcome("hung", reason=f"{totals[name][0]} of {count} tuples")
        else:
            outcomes[name] = Outcome("answered", folder / "results" / name)
    return outcomes


def _registered(
    gate: Headgate, world: World, questions: list[Question], *, whole: bool
) -> dict[str, Outcome]:
    """Add the streams and queries to a gate; return the outcomes of those that are refused."""
    outcomes: dict[str, Outcome] = {}
    unusable: dict[str, Outcome] = {}
    for stream in world.with_bases({name for question in questions for name in question.streams}):
        try:
            world.add_to(gate, stream, whole=whole)
        except HeadgateError as error:
            unusable[stream] = Outcome("refused", reason=f"stream '{stream}': {error}")
        except Exception as error:
            reason = f"stream '{stream}': {type(error).__name__}: {error}"
            unusable[stream] = Outcome("broken", reason=reason)
    for question in questions:
        refused = [unusable[stream] for stream in question.streams if stream in unusable]
        if refused:
            outcomes[question.name] = refused[0]
            continue
        try:
            sink = Sink(format=question.sink)
            gate.add_query(Query(name=question.name, sql=question.sql, query_class="C", sink=sink))
        except HeadgateError as error:
            outcomes[question.name] = Outcome("refused", reason=str(error))
        except Exception as error:
            reason = f"add_query: {type(error).__name__}: {error}"
            outcomes[question.name] = Outcome("broken", reason=reason)
    return outcomes


def _wait(gate: Headgate, offered: Mapping[str, int]) -> None:
    """Wait until every query has consumed its tuples or failed, or until the run stands still."""
    moved_at_s, before = time.monotonic(), ""
    while time.monotonic() < moved_at_s + STILL_S:
        totals = gate.totals()
        waiting = [name for name, count in offered.items() if totals[name][0] < count]
        failures = [name for name in waiting if gate.query(name).exception() is not None]
        if len(failures) == len(waiting):
            return
        if (now := f"{totals} {failures}") != before:
            moved_at_s, before = time.monotonic(), now
        gate.wait(0.2)
