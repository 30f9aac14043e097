"""Why a query waited, by hand: which calls ran instead, and parts that add up."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.events import StepFinished, StepStarted, TrainArrived, UnitDelayed
from headgate.model.plan import BoxCall
from headgate.model.query import QueryClass
from headgate.runtime.live.why import Unit, explained
from headgate.runtime.run import call_log as module
from headgate.runtime.run.call_log import CallLog, CallRecord

FIRE, LOG, WARM = 7, 8, 9
HIGH, LOW = QueryClass(name="H", priority=6.0), QueryClass(name="N", priority=1.0)
CLASSES = {"fire": HIGH, "log": LOW, "warm": LOW}


def unit(number: int, query: str) -> Unit:
    return Unit(number, query, {FIRE: "fire", LOG: "log", WARM: "warm"}, CLASSES)


def train(at_s: float, head_s: float) -> TrainArrived:
    return TrainArrived(at_s, 0, np.array([5]), np.array([head_s]), np.array([head_s]))


def call(number: int, units: tuple[int, ...], first: int, end: int) -> BoxCall:
    return BoxCall(number, units, 0, first, end, 5 * (end - first))


def finished(
    at_s: float, step: BoxCall, slowest_s: dict[int, float], failed: tuple[int, ...] = ()
) -> StepFinished:
    responses_s = tuple(
        np.array([slowest_s[number] / 2, slowest_s[number]])
        if number in slowest_s
        else np.array([])
        for number in step.units
    )
    outs = tuple(map(len, responses_s))
    return StepFinished(at_s, step, 0.1, outs, responses_s, failed=failed, lane="driver")


def heard(*events: Any) -> CallLog:
    call_log = CallLog([0])
    for event in events:
        call_log.hear(event, "cqc")
    return call_log


def answer(call_log: CallLog, number: int, of_unit: Unit) -> dict[str, Any]:
    records = list(call_log.calls())
    record = next(record for record in records if record.call.number == number)
    return explained(call_log, records, record, of_unit)


def test_a_query_that_waits_behind_known_calls_names_exactly_them() -> None:
    before, under_way = call(0, (LOG,), 0, 1), call(1, (WARM, LOG), 0, 1)
    important, waiting = call(2, (FIRE,), 1, 2), call(3, (LOG, WARM), 1, 2)
    after = call(4, (FIRE,), 1, 2)
    call_log = heard(
        train(0.5, 0.0),
        StepStarted(0.5, before), finished(0.9, before, {LOG: 0.9}),
        StepStarted(1.0, under_way),
        train(1.5, 1.2),  # the tuple: it arrives at 1.2 and is in the log at 1.5
        finished(2.0, under_way, {WARM: 2.0}),
        StepStarted(2.0, important), finished(4.0, important, {FIRE: 2.8}),
        StepStarted(4.0, waiting), finished(5.0, waiting, {LOG: 3.8}),
        StepStarted(5.0, after),
    )  # fmt: skip
    reply = answer(call_log, 3, unit(LOG, "log"))
    assert reply["parts"] == [
        {"kind": "source", "from": pytest.approx(1.2), "to": 1.5},
        {"kind": "turn", "from": 1.5, "to": 4.0},
        {"kind": "running", "from": 4.0, "to": 5.0},
    ]
    assert (reply["train"], reply["fused"], reply["response_s"]) == (1, ["log", "warm"], 3.8)
    assert [(row["call"], row["queries"], row["class"]) for row in reply["instead"]] == [
        (1, ["log", "warm"], "N"), (2, ["fire"], "H"),
    ]  # fmt: skip
    assert reply["instead"][0]["reason"] == "an earlier call of this query: it has one at a time"
    assert reply["instead"][1]["reason"] == (
        "chosen first by cqc; class H has priority 6, class N 1"
    )
    reason = answer(call_log, 2, unit(FIRE, "fire"))["instead"][0]["reason"]
    assert reason == "under way already: calls are not interrupted"


def test_a_call_that_began_while_the_query_ran_is_no_choice_against_it() -> None:
    earlier, other, waiting = call(0, (FIRE,), 0, 1), call(1, (LOG,), 0, 1), call(2, (FIRE,), 1, 2)
    call_log = heard(
        train(0.9, 0.5), StepStarted(1.0, earlier),
        train(1.2, 1.1), StepStarted(1.5, other),
        finished(2.0, earlier, {FIRE: 1.5}), finished(3.0, other, {LOG: 2.5}),
        StepStarted(3.0, waiting), finished(3.5, waiting, {FIRE: 2.4}),
    )  # fmt: skip
    rows = answer(call_log, 2, unit(FIRE, "fire"))["instead"]
    assert [row["reason"] for row in rows] == [
        "an earlier call of this query: it has one at a time",
        "begun while an earlier call of this query ran: it has one at a time",
    ]


def test_attempts_that_failed_and_their_retries_are_parts() -> None:
    first, again = call(0, (LOG,), 0, 1), call(1, (LOG,), 0, 1)
    call_log = heard(
        train(1.0, 0.8),
        StepStarted(1.1, first), UnitDelayed(1.6, LOG, 2.1, RuntimeError()),
        finished(1.6, first, {}, failed=(LOG,)),
        StepStarted(2.2, again), finished(2.5, again, {LOG: 1.7}),
    )  # fmt: skip
    parts = answer(call_log, 1, unit(LOG, "log"))["parts"]
    assert [(part["kind"], part["from"], part["to"]) for part in parts] == [
        ("source", pytest.approx(0.8), 1.0), ("turn", 1.0, 1.1), ("running", 1.1, 1.6),
        ("retry", 1.6, 2.1), ("turn", 2.1, 2.2), ("running", 2.2, 2.5),
    ]  # fmt: skip


@given(
    st.lists(st.tuples(st.floats(0.01, 3.0), st.booleans()), min_size=1, max_size=8),
    st.floats(0.0, 2.0),
)
def test_parts_do_not_overlap_and_add_up_to_the_response(
    attempts: list[tuple[float, bool]], head_s: float
) -> None:
    call_log, now_s = heard(train(2.5, head_s)), 3.0
    for number, (seconds, delayed) in enumerate(attempts):
        step, is_last = call(number, (LOG,), 0, 1), number == len(attempts) - 1
        call_log.hear(StepStarted(now_s, step), "rr")
        now_s += seconds
        if delayed and not is_last:
            call_log.hear(UnitDelayed(now_s, LOG, now_s + 2 * seconds, RuntimeError()), "rr")
        slowest_s = {LOG: now_s - head_s} if is_last else {}
        call_log.hear(finished(now_s, step, slowest_s, () if is_last else (LOG,)), "rr")
        now_s += seconds
    reply = answer(call_log, len(attempts) - 1, unit(LOG, "log"))
    parts = reply["parts"]
    total_s = sum(part["to"] - part["from"] for part in parts)
    assert total_s == pytest.approx(reply["response_s"])
    assert all(one["to"] == other["from"] for one, other in pairwise(parts))
    assert parts[0]["from"] == pytest.approx(reply["arrival"])
    assert parts[-1]["to"] == reply["commit"]


def test_what_is_older_than_an_hour_or_too_much_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def numbers(call_log: CallLog) -> list[int]:
        return [record.call.number for record in call_log.calls()]

    steps = [call(number, (LOG,), number, number + 1) for number in range(3)]
    old, new, last = steps
    call_log = heard(StepStarted(0.0, old), StepStarted(3000.0, new), StepStarted(3700.0, last))
    assert numbers(call_log) == [1, 2]
    monkeypatch.setattr(module, "MOST_BYTES", 2 * CallRecord(old, "rr", 0.0).size_bytes)
    assert numbers(heard(*(StepStarted(1.0, step) for step in steps))) == [1, 2]
