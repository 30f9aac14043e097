"""Recordings: what is written is read back to the bit, also after a crash."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path as File

import numpy as np
import pytest

from headgate import Query, Stream, replay
from headgate.errors import ConfigRefused
from headgate.model.events import (
    ClockTicked,
    Event,
    NetworkChanged,
    Overloaded,
    PolicyChanged,
    QueryStopped,
    StepFinished,
    TrainArrived,
    UnitDelayed,
    UnitFailed,
)
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import ALL, BoxCall
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import QueryClass, QueryStatistics
from headgate.policies import policy_named
from headgate.runtime.policy_text import Spelled
from headgate.runtime.recording.recorder import Recorder
from headgate.runtime.recording.recordings import (
    Settings,
    footer_of,
    header_of,
    line_of,
    read_recording,
)
from headgate.runtime.recording.turns import POINTS, Turn, condensed
from headgate.runtime.what_if.call_costs import beside, fitted_costs
from headgate.scheduler.scheduler import Scheduler

STATISTICS = {"a": QueryStatistics(cost_s=1 / 3, selectivity=0.1, overhead_s=0.7)}
CALL = BoxCall(0, (0, 1), 0, 4, 6, 30)


def path(name: str) -> Path:
    query = Query(
        name=name, sql="SELECT x FROM s", query_class="H", weight=2.0, deadline_s=0.3,
        qos=QoSGraph(((0.0, 1.0), (1.0, 0.0))), allows_shedding=True,
    )  # fmt: skip
    box = Operator(kind="select", expressions=("x > 1",))
    return Path(query=query, stream="s", operators=(box,), columns=("x",))


def network(*names: str) -> Network:
    stream = Stream(name="s", format="rate", trigger_s=0.5)
    return Network((stream,), (QueryClass(name="H", priority=6),), tuple(map(path, names)))


CHANGED = replace(
    path("a"), query=replace(path("a").query, weight=1 / 3, deadline_s=None, qos=None)
)
SETTINGS = Settings("cqc(inner=hnr)", 2, ALL, 16, 1e6, (4,), (4, 5), STATISTICS)
RESPONSES = (np.array([0.1, 0.1, 1 / 3]), np.zeros(0))
OLD = TrainArrived(1.8, 0, np.array([20, 7]), np.array([1.05, 1.6]), np.array([1.07, 1.7]))
EVENTS: list[Event] = [
    TrainArrived(1.1, 0, np.array([10, 20]), np.array([1.0, 1.05]), np.array([1.02, 1.07])),
    StepFinished(1.2, CALL, 0.1 + 0.2, (3, 0), RESPONSES, failed=(1,), lane="job"),
    UnitDelayed(1.3, 1, 2.0, RuntimeError("again")),
    UnitFailed(1.4, 1, CALL, RuntimeError("no")),
    QueryStopped(1.5, 1),
    Overloaded(1.6, 2.6),
    PolicyChanged(1.7, policy_named("bsd", search="log")),
    NetworkChanged(
        1.8,
        replace(network("a", "c"), ids=(0, 9)),
        {9: 5},
        {},
        STATISTICS,
        kept={0: OLD},
        dropped=("b",),
    ),
    NetworkChanged(
        1.85, Network(network("a").streams, network("a").classes, (CHANGED,)), {}, {}, {},
        dropped=("c",), changed=(0,),
    ),
    ClockTicked(1.9),
]  # fmt: skip


def write(file: File) -> list[str]:
    turns = [Turn(event, event.at_s + 1 / 7) for event in EVENTS]
    turns[0].calls.append((CALL, 1.15))
    lines = [header_of(network("a", "b"), SETTINGS), *map(line_of, turns), footer_of(STATISTICS)]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(lines))
    return lines


def test_what_is_written_is_read_back_to_the_bit(tmp_path: File) -> None:
    write(tmp_path / "recording" / "0000.jsonl")
    recording = read_recording(tmp_path)
    assert recording.settings == SETTINGS
    assert recording.network == Network(
        (Stream(name="s", format="rate", trigger_s=0.5),),
        (QueryClass(name="H", priority=6),),
        (path("a"), path("b")),
    )
    assert recording.learned == STATISTICS
    assert recording.turns[0].calls == [(CALL, 1.15)]
    assert [turn.planned_at_s for turn in recording.turns] == [e.at_s + 1 / 7 for e in EVENTS]
    for turn, event in zip(recording.turns, EVENTS, strict=True):
        assert type(turn.event) is type(event)
        assert turn.event.at_s == event.at_s
    step = recording.turns[1].event
    assert isinstance(step, StepFinished)
    assert (step.call, step.seconds, step.failed, step.lane) == (CALL, 0.1 + 0.2, (1,), "job")
    responses = [values.tolist() for values in step.responses_s]
    assert responses == [values.tolist() for values in RESPONSES]
    changed = recording.turns[6].event
    assert isinstance(changed, PolicyChanged)
    assert changed.policy == "bsd(search=log)"
    names = {number: query_path.query.name for number, query_path in recording.paths.items()}
    assert names == {0: "a", 1: "b", 9: "c"}
    network_event = recording.turns[7].event
    assert isinstance(network_event, NetworkChanged)
    assert network_event.network.ids == (0, 9)
    changed_event = recording.turns[8].event
    assert isinstance(changed_event, NetworkChanged)
    assert (changed_event.network.paths, changed_event.changed) == ((CHANGED,), (0,))
    arrival = network_event.kept[0]
    assert (arrival.tuples.tolist(), arrival.mean_arrived_at_s.tolist()) == ([20, 7], [1.07, 1.7])


def test_a_recording_of_an_earlier_version_is_read_and_would_be_written_alike() -> None:
    file = File(__file__).parent / "format-3.jsonl"
    recording = read_recording(file)
    lines = [
        header_of(recording.network, recording.settings),
        *(line_of(turn) for turn in recording.turns if not isinstance(turn.event, PolicyChanged)),
        footer_of(recording.learned),
    ]
    written = [line for line in file.read_text().splitlines() if '"policy"' not in line[:9]]
    header, *turns = map(json.loads, lines)
    assert header["settings"].pop("ids") == []
    assert header["settings"].pop("call_s") is None
    (changed,) = (turn for turn in turns if "network" in turn)
    assert changed[2].pop() == []  # no query got another class, weight, deadline or QoS graph
    steps = [turn[2] for turn in turns if isinstance(turn, list) and turn[0] == "step"]
    assert steps
    for step in steps:  # no CPU time, no shed tuples, no tardiness
        assert [step.pop(), step.pop(), step.pop()] == [None, [], []]
    for query_class in header["network"]["classes"]:
        assert query_class.pop("target_s") is None
    for query in [*header["network"]["queries"], *changed[2][1]]:
        assert query.pop("loss") is None
        for operator in query["operators"]:  # windows by tuples were refused
            assert [operator.pop(key) for key in ("range_tuples", "slide_tuples")] == [None, None]
    assert [header, *turns] == [json.loads(line) for line in written]


def test_what_the_first_recordings_do_not_have_is_assumed() -> None:
    recordings = [
        read_recording(File(__file__).parent / name)
        for name in ("format-3-first.jsonl", "format-3.jsonl")
    ]
    first, later = recordings
    assert first.settings == replace(later.settings, call_bytes=inf)
    assert (first.network, first.last_network) == (later.network, later.last_network)
    assert first.learned == later.learned
    assert [turn.calls for turn in first.turns] == [turn.calls for turn in later.turns]


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_line_that_a_crash_has_cut_is_dropped(tmp_path: File, share: float) -> None:
    file = tmp_path / "0000.jsonl"
    lines = write(file)
    cut = lines[5][: max(1, int(len(lines[5]) * share))].rstrip("\n")
    file.write_text("".join(lines[:5]) + cut)
    recording = read_recording(file)
    assert len(recording.turns) == 4
    assert recording.learned == {}


def test_the_last_run_of_a_folder_is_read(tmp_path: File) -> None:
    write(tmp_path / "recording" / "0000.jsonl")
    write(tmp_path / "recording" / "0001.jsonl")
    assert read_recording(tmp_path).file.name == "0001.jsonl"
    assert read_recording(tmp_path / "recording").file.name == "0001.jsonl"


def test_what_is_no_recording_is_refused(tmp_path: File) -> None:
    with pytest.raises(ConfigRefused, match="headgate run --record"):
        replay(tmp_path)
    (tmp_path / "0000.jsonl").write_text('{"format": 0}\n')
    with pytest.raises(ConfigRefused, match="a recording of format 3"):
        replay(tmp_path)


def test_secrets_of_sources_and_sinks_stay_out() -> None:
    stream = Stream(name="s", format="kafka", options={"password": "hush"})
    secret = Network((stream,), network("a").classes, network("a").paths)
    assert "hush" not in header_of(secret, SETTINGS)


def test_many_responses_become_a_few_of_the_same_mean() -> None:
    values = np.random.default_rng(1).exponential(size=5000)
    pairs = condensed(values, exact=False)
    assert len(pairs) == POINTS
    assert sum(count for _, count in pairs) == 5000
    mean = sum(value * count for value, count in pairs) / 5000
    assert mean == pytest.approx(values.mean(), abs=1e-5)
    exact = condensed(values, exact=True)
    assert [value for value, _ in exact] == values.tolist()


@pytest.mark.parametrize(
    "text",
    ["hr", "cqc(inner=hnr,period_steps=10)", "amos(policies=hr+cqc(inner=hnr),dwell_s=0.5)",
     "bsd(search=log,clusters=12)", "rr(quantum_s=none)"],
)  # fmt: skip
def test_a_policy_knows_how_it_is_spelled(text: str) -> None:
    assert Spelled(text).make().spelled == text


def test_costs_are_found_again_in_steps_that_follow_the_model(tmp_path: File) -> None:
    generator, lines = np.random.default_rng(2), [header_of(network("a", "b"), SETTINGS)]
    at_s, costs_s = 0.0, np.array([2e-5, 7e-5])
    for number in range(60):
        units = [(0,), (1,), (0, 1)][number % 3]
        tuples = int(generator.integers(10, 10_000))
        took_s = 0.05 + float(costs_s[list(units)].sum()) * tuples
        call = BoxCall(number, units, 0, number, number + 1, tuples)
        at_s += took_s
        step = StepFinished(at_s, call, took_s, (0,) * len(units), (np.zeros(0),) * len(units))
        lines += [line_of(Turn(ClockTicked(at_s - took_s), at_s, [(call, at_s - took_s)]))]
        lines += [line_of(Turn(step, at_s))]
    (tmp_path / "0000.jsonl").write_text("".join(lines))
    costs = fitted_costs(read_recording(tmp_path))
    assert costs.steps == 60
    assert costs.error < 0.05
    assert costs.crowding == 0.0
    call = BoxCall(0, (0, 1), 0, 0, 1, 5000)
    seconds, lane = costs.call(call, (0, 0), 0, at_s / 2)
    assert (seconds * costs.pace(at_s / 2), lane) == (pytest.approx(0.5, rel=0.1), "driver")


def test_steps_beside_each_other_are_counted() -> None:
    begin_s, end_s = np.array([0.0, 0.0, 1.0, 5.0]), np.array([4.0, 1.0, 2.0, 6.0])
    assert beside(begin_s, end_s).tolist() == [0.5, 1.0, 1.0, 0.0]


class Silent:
    """An engine on which nothing happens."""

    def now_s(self) -> float:
        return 0.0

    def start(self, call: BoxCall) -> None:
        raise AssertionError(call)

    def next_event(self, wake_at_s: float) -> None:
        return None


def test_a_new_recording_replaces_none_though_older_ones_were_removed(tmp_path: File) -> None:
    write(tmp_path / "recording" / "0001.jsonl")
    before = (tmp_path / "recording" / "0001.jsonl").read_text()
    one_query = network("a")
    table = unit_table(units_of(one_query), STATISTICS)
    scheduler = Scheduler(one_query, table, policy_named("rr"))
    recorder = Recorder(Silent(), tmp_path, scheduler, STATISTICS)
    recorder.close({})
    assert recorder.file.name == "0002.jsonl"
    assert (tmp_path / "recording" / "0001.jsonl").read_text() == before
