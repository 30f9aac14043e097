"""Why a query waited, by hand: which calls ran instead, and parts that add up."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import line, network, select

from headgate.model.events import (
    NetworkChanged,
    Overloaded,
    QueryStopped,
    StepFinished,
    StepStarted,
    TrainArrived,
    UnitDelayed,
)
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import BoxCall
from headgate.model.query import QueryClass
from headgate.policies import policies, policy_named
from headgate.policies.priority import PriorityPolicy
from headgate.runtime.live.run_names import Members
from headgate.runtime.live.why import explained
from headgate.runtime.run import call_log as module
from headgate.runtime.run.call_log import CallLog, CallRecord
from headgate.runtime.run.guarded_scheduler import GuardedScheduler
from headgate.scheduler.statistics import Statistics

FIRE, LOG, WARM = 7, 8, 9
HIGH, LOW = QueryClass(name="H", priority=6.0), QueryClass(name="N", priority=1.0)
CLASSES = {"fire": HIGH, "log": LOW, "warm": LOW}


MEMBERS = Members(
    {"fire": FIRE, "log": LOG, "warm": WARM}, {FIRE: "fire", LOG: "log", WARM: "warm"}, CLASSES
)


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


def answer(call_log: CallLog, number: int, of_unit: int) -> dict[str, Any]:
    records = list(call_log.calls())
    record = next(record for record in records if record.call.number == number)
    return explained(call_log, records, record, of_unit, MEMBERS)


def spans(reply: dict[str, Any]) -> list[tuple[str, float, float]]:
    return [(part["kind"], part["from"], part["to"]) for part in reply["parts"]]


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
    reply = answer(call_log, 3, LOG)
    assert spans(reply) == [
        ("source", pytest.approx(1.2), 1.5), ("turn", 1.5, 4.0), ("running", 4.0, 5.0),
    ]  # fmt: skip
    assert {part["segment"] for part in reply["parts"]} == {"log"}
    assert (reply["position"], reply["fused"], reply["response_s"]) == (1, ["log", "warm"], 3.8)
    assert [(row["call"], row["queries"], row["class"]) for row in reply["instead"]] == [
        (1, ["log", "warm"], "N"), (2, ["fire"], "H"),
    ]  # fmt: skip
    assert reply["instead"][0]["reason"] == "an earlier call of this query: it has one at a time"
    assert reply["instead"][1]["reason"] == (
        "chosen first by cqc; class H has priority 6, class N 1"
    )
    reason = answer(call_log, 2, FIRE)["instead"][0]["reason"]
    assert reason == "under way already: calls are not interrupted"


def test_a_call_that_began_while_the_query_ran_is_no_choice_against_it() -> None:
    earlier, other, waiting = call(0, (FIRE,), 0, 1), call(1, (LOG,), 0, 1), call(2, (FIRE,), 1, 2)
    call_log = heard(
        train(0.9, 0.5), StepStarted(1.0, earlier),
        train(1.2, 1.1), StepStarted(1.5, other),
        finished(2.0, earlier, {FIRE: 1.5}), finished(3.0, other, {LOG: 2.5}),
        StepStarted(3.0, waiting), finished(3.5, waiting, {FIRE: 2.4}),
    )  # fmt: skip
    rows = answer(call_log, 2, FIRE)["instead"]
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
    assert spans(answer(call_log, 1, LOG)) == [
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
    reply = answer(call_log, len(attempts) - 1, LOG)
    parts = reply["parts"]
    total_s = sum(part["to"] - part["from"] for part in parts)
    assert total_s == pytest.approx(reply["response_s"])
    assert all(one["to"] == other["from"] for one, other in pairwise(parts))
    assert parts[0]["from"] == pytest.approx(reply["arrival"])
    assert parts[-1]["to"] == reply["commit"]


def test_the_way_through_a_view_and_a_full_log_are_parts() -> None:
    """WARM is a view: it reads stream 0 and fills stream 1, which LOG reads."""
    view, reader = call(0, (WARM,), 0, 1), BoxCall(1, (LOG,), 1, 0, 1, 5)
    call_log = CallLog([0, 0])
    for event in (
        Overloaded(0.2, 0.6),
        train(1.0, 0.0), StepStarted(1.5, view),
        replace(finished(2.0, view, {}), commit_s=0.125),
        TrainArrived(2.25, 1, np.array([5]), np.zeros(1), np.zeros(1)),
        StepStarted(3.0, reader), finished(4.0, reader, {LOG: 4.0}),
    ):  # fmt: skip
        call_log.hear(event, "cqc")
    records = list(call_log.calls())
    members = replace(MEMBERS, producers={1: WARM}, streams=["s", "warm"])
    reply = explained(call_log, records, records[-1], LOG, members)
    assert [(kind, part["segment"]) for kind, part in
            zip([kind for kind, _, _ in spans(reply)], reply["parts"], strict=True)] == [
        ("source", "warm"), ("backpressure", "warm"), ("source", "warm"), ("turn", "warm"),
        ("running", "warm"), ("committing", "warm"), ("log", "log"), ("turn", "log"),
        ("running", "log"),
    ]  # fmt: skip
    assert [to_s for _, _, to_s in spans(reply)] == [0.2, 0.6, 1.0, 1.5, 1.875, 2.0, 2.25, 3.0, 4.0]
    assert reply["stream"] == "warm"


@pytest.mark.parametrize(("kind", "bounds"), [("bound", (0,)), ("partner", ())])
def test_a_tuple_of_a_union_waits_for_the_bound_of_a_silent_stream_or_for_its_tuples(
    kind: str, bounds: tuple[int, ...]
) -> None:
    """Stream 2 is the timeline of 0 and 1; its train 1 moves the watermark past the tuple."""
    times_s, passed_at_s = np.array([0.5]), np.array([2.9])
    in_vain, waiting = BoxCall(0, (LOG,), 2, 0, 1, 5), BoxCall(1, (LOG,), 2, 1, 2, 5)
    call_log = CallLog([0, 0, 0])
    for event in (
        TrainArrived(1.0, 0, np.array([5]), times_s, times_s),
        TrainArrived(1.0, 2, np.array([5]), times_s, times_s),
        StepStarted(1.1, in_vain), finished(1.2, in_vain, {}),
        TrainArrived(3.0, 2, np.array([1]), passed_at_s, passed_at_s, bounds=bounds),
        StepStarted(3.5, waiting),
        replace(finished(4.0, waiting, {LOG: 3.5}), idle_s=(np.array([0.0, 2.4]),)),
    ):  # fmt: skip
        call_log.hear(event, "cqc")
    members = replace(MEMBERS, sources={2: (0, 1)}, streams=["a", "b", "a b"])
    data = json.loads(json.dumps(call_log.to_dict(lambda content: content.hex())))
    for log in (call_log, CallLog.from_dict(data, bytes.fromhex, lambda text: None)):
        records = list(log.calls())
        reply = explained(log, records, records[-1], LOG, members)
        assert spans(reply) == [
            ("source", 0.5, 1.0), (kind, 1.0, 3.0), ("turn", 3.0, 3.5), ("running", 3.5, 4.0),
        ]  # fmt: skip
        assert (reply["position"], reply["instead"]) == (1, [])


def test_the_time_in_which_a_query_was_paused_is_a_part() -> None:
    net = network(line("log", select(0.001)))
    step = call(0, (LOG,), 0, 1)
    call_log = heard(
        train(1.0, 1.0), QueryStopped(1.5, LOG),
        QueryStopped(2.4, LOG), NetworkChanged(2.5, net, {LOG: 0}, {}, {}),  # it is resumed
        StepStarted(3.0, step), finished(4.0, step, {LOG: 3.0}),
    )  # fmt: skip
    assert spans(answer(call_log, 0, LOG)) == [
        ("turn", 1.0, 1.5), ("paused", 1.5, 2.5), ("turn", 2.5, 3.0), ("running", 3.0, 4.0),
    ]  # fmt: skip


RANKING = [
    name
    for name, entry in policies().items()
    if "spark" in entry.engines and policy_named(name).ranking(0.0) is not None
]


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("shared", [False, True])
def test_recorded_priorities_are_those_of_the_decision_to_the_bit(name: str, shared: bool) -> None:
    """They also stay the same when the log was written and read again."""
    costs_s = [0.004, 0.001, 0.003, 0.002]
    lines = [line(f"q{number}", select(cost_s, 0.5)) for number, cost_s in enumerate(costs_s)]
    net = replace(network(*lines), ids=(11, 12, 13, 14))
    table = unit_table(units_of(net), overhead_s=0.01)
    table["deadline_s"] = 2.0
    groups = [0, 0, 1, 1] if shared else []
    scheduler = GuardedScheduler(
        net, table, policy_named(name), statistics=Statistics(table), groups=groups,
        most_fused=2 if shared else 1,
    )  # fmt: skip
    ranking = scheduler.policy.ranking(0.0)
    assert isinstance(ranking, PriorityPolicy)
    original, wanted = ranking.values, dict[int, dict[int, float]]()

    def watched(rows: Any, units: Any, now_s: float) -> Any:
        values = original(rows, units, now_s)
        wanted[len(decided)] = dict(zip(units.tolist(), values.tolist(), strict=True))
        return values

    call_log, decided = CallLog([0], scheduler.decisions), list[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "values", watched)
        for number in range(8):
            now_s = 1.0 + number * 0.37
            arrival = TrainArrived(now_s, 0, np.array([3]), np.array([now_s - 0.1]),
                                   np.array([now_s - 0.05]))  # fmt: skip
            scheduler.hear(arrival)
            for step in scheduler.plan(now_s + 0.01):
                decided.append(step.number)
                call_log.hear(StepStarted(now_s + 0.01, step), name)
                done = replace(finished(now_s + 0.2, step, {u: 0.1 for u in step.units}),
                               seconds=0.013 + number / 1000)  # fmt: skip
                call_log.hear(done, name)
                scheduler.hear(done)
    again = CallLog.from_dict(
        json.loads(json.dumps(call_log.to_dict(lambda data: data.hex()))), bytes.fromhex,
        lambda text: policy_named(text).ranking(0.0),
    )  # fmt: skip
    compared = 0
    for position, step_number in enumerate(decided):
        for unit, value in wanted.get(position, {}).items():
            for log in (call_log, again):
                priority = log.decisions.priority(step_number, net.ids[unit])
                if priority is not None:
                    assert priority == value
                    compared += 1
    assert compared >= 16


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


def test_arrivals_are_forgotten_though_no_call_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def heads_s(*events: Any) -> list[float]:
        arrivals = heard(*events).to_dict(lambda data: data.hex())["arrivals"]
        return [head_s for _, _, heads_s, *_ in arrivals[0] for head_s in heads_s]

    assert heads_s(train(0.0, 0.0), train(3000.0, 1.0), train(3700.0, 2.0)) == [1.0, 2.0]
    monkeypatch.setattr(module, "MOST_BYTES", 2 * 2 * module.TRAIN_BYTES)
    assert len(heads_s(*(train(float(number), 0.0) for number in range(100)))) <= 2
