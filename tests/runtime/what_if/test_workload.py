"""Workloads from pipeline files, testbeds and recorded traces."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from headgate.config import read_pipeline
from headgate.errors import ConfigRefused, StatisticsMissing, UnknownName
from headgate.model.plan import ALL
from headgate.policies.cqc import Cqc
from headgate.runtime import TESTBEDS, Trace, workload
from headgate.runtime.policy_text import Spelled

STATISTICS = {"cost_s": 1e-4, "selectivity": 0.5, "overhead_s": 0.01}
SMALL = {
    "sharaf": {"queries": 5, "tuples": 60},
    "aurora": {"apps": 2, "depth": 2, "tuples": 60},
    "cqc": {"tuples": 30},
    "amos": {"tuples": 60},
    "bz": {"tuples": 20},
}
MORE = {"sharaf": {"drift": {"intervals": 5}, "freshness": {"streams": 2, "bursty": 1}}}


def pipeline_file(folder: Path, **changes: object) -> str:
    stream = {"format": "headgate", "options": {"rate_per_s": 100}}
    query = {"class": "H", "sql": "SELECT location FROM sensors", "statistics": STATISTICS}
    data = {
        "state": str(folder / "state"),
        "policy": {"name": "cqc", "inner": "hnr"},
        "classes": {"H": 2},
        "streams": {"sensors": stream},
        "queries": {"hot": query},
        **changes,
    }
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(data))
    return str(file)


def trace_file(folder: Path, times_s: list[float]) -> str:
    file = folder / "trace.parquet"
    pq.write_table(pa.table({"ts": pa.array(times_s, pa.float64())}), file)
    return str(file)


@pytest.mark.parametrize(
    ("name", "variant"),
    [(family.name, word) for family in TESTBEDS.values() for word in family.variants],
)
def test_every_testbed_and_variant_can_be_simulated_by_name(name: str, variant: str) -> None:
    extra = MORE.get(name, {}).get(variant, {})
    options = {**SMALL[name], TESTBEDS[name].chosen_by: variant, **extra}
    if variant == "lines":
        options.pop("depth")
    if variant == "stale":  # a worked example, which leaves nothing to choose
        options = {TESTBEDS[name].chosen_by: variant}
    scenario = workload(name, **options)
    report = scenario.simulate("hr")
    assert report.policy == "hr"
    assert report.total.tuples_in > 0
    assert scenario.level == TESTBEDS[name].variants[variant].level


def test_the_seed_draws_the_queries_and_decides_which_tuples_pass() -> None:
    scenarios = [workload("sharaf", queries=5, tuples=50, seed=seed) for seed in (1, 1, 2)]
    assert scenarios[0].network == scenarios[1].network
    assert scenarios[0].network != scenarios[2].network
    assert scenarios[2].options["seed"] == 2


def test_what_a_testbed_asks_of_the_simulation_goes_along() -> None:
    drift = workload("sharaf", variant="drift", queries=3, tuples=50, intervals=5)
    assert set(drift.options) == {"level", "seed", "selectivities", "interval_s"}
    assert (
        workload("sharaf", variant="shared", queries=10, tuples=50).options["shared_priority"]
        == "pdt"
    )
    shared = workload("sharaf", variant="shared", queries=10, tuples=50, shared_priority="max")
    assert shared.options["shared_priority"] == "max"


def test_settings_of_the_run_replace_those_of_the_testbed() -> None:
    scenario = workload(
        "sharaf", queries=3, tuples=50, level="operator", workers=2, train_tuples=5,
        overhead_s=0.1, learns=True,
    )  # fmt: skip
    settings = {"level": "operator", "workers": 2, "train_tuples": 5, "overhead_s": 0.1}
    assert {**settings, "learns": True, "seed": 0} == dict(scenario.options)


def test_seconds_cut_the_arrivals() -> None:
    whole = workload("sharaf", queries=3, tuples=500)
    half_s = whole.ends_at_s / 2
    half = workload("sharaf", queries=3, tuples=500, seconds=half_s)
    assert 0 < len(half.arrivals["packets"]) < 500
    assert half.ends_at_s <= half_s


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("sharraf", {}, "there is no testbed 'sharraf'. Did you mean 'sharaf'?"),
        ("sharaf", {"querys": 3}, "testbed 'sharaf': there is no option 'querys'. Did you mean"),
        ("sharaf", {"variant": "many"}, "variant is 'many', but must be one of single, shared"),
        ("cqc", {"workload": "D"}, "workload is 'D', but must be one of A, B, C"),
        ("amos", {"plan": 3}, "plan is '3', but must be one of 1, 2"),
        ("sharaf", {"queries": "many"}, "queries is 'many', but must be a number"),
        ("sharaf", {"queries": 1.5}, "queries is 1.5, but must be a whole number"),
        ("sharaf", {"by_class": 7}, "by_class is 7, but must be true or false"),
        ("aurora", {"cost_s": "dear"}, "cost_s is 'dear', but must be 2 numbers, as in 0.0001+"),
        ("aurora", {"arrivals": [1.0]}, "there is no option 'arrivals'"),
    ],
)
def test_a_testbed_that_cannot_be_is_a_sentence(
    name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises((ConfigRefused, UnknownName)) as refused:
        workload(name, **options)
    assert message in str(refused.value)


def test_several_numbers_are_joined_by_plus() -> None:
    scenario = workload("aurora", depth=1, tuples=10, cost_s="0.002+0.002")
    assert {box.operator.cost_s for box in scenario.network.boxes} == {0.002}


def test_a_trace_is_what_the_one_stream_of_sharaf_brings(tmp_path: Path) -> None:
    times_s = [0.0, 0.5, 0.7, 2.0, 2.1]
    file = trace_file(tmp_path, times_s)
    scenario = workload("sharaf", queries=3, tuples=4, traces=[file])
    assert scenario.arrivals["packets"].tolist() == pytest.approx(times_s[:4])
    slower = workload("sharaf", queries=3, traces=[Trace(file=file, scale=2.0)])
    assert slower.arrivals["packets"][-1] == pytest.approx(4.2)
    ratio = slower.network.paths[0].operators[0].cost_s / 2
    usual = workload("sharaf", queries=3, traces=[file]).network.paths[0].operators[0].cost_s
    assert ratio == pytest.approx(usual)  # K follows, so that the utilization stays as requested


def test_a_trace_takes_the_rate_of_the_stream_it_replaces(tmp_path: Path) -> None:
    file = trace_file(tmp_path, [0.0, 5.0, 6.0, 20.0])
    scenario = workload("amos", plan=2, tuples=100, traces=[f"data2={file}"])
    before = workload("amos", plan=2, tuples=100)
    assert np.array_equal(scenario.arrivals["data1"], before.arrivals["data1"])
    replaced, usual = scenario.arrivals["data2"], before.arrivals["data2"]
    assert np.diff(replaced).mean() == pytest.approx(np.diff(usual).mean())
    assert (replaced / replaced[-1]).tolist() == pytest.approx([0.0, 0.25, 0.3, 1.0])
    assert "arrivals as recorded" in scenario.note


def test_streams_of_the_freshness_testbed_can_be_recorded(tmp_path: Path) -> None:
    file = trace_file(tmp_path, [0.0, 1.0, 2.0])
    scenario = workload("sharaf", variant="freshness", queries=4, traces=[f"a={file}", f"b={file}"])
    assert set(scenario.arrivals) == {"a", "b"}


@pytest.mark.parametrize(
    ("name", "options", "trace", "message"),
    [
        ("amos", {"plan": 2}, "{file}", "STREAM=FILE, since there are 2 streams: data1, data2"),
        ("amos", {"plan": 2}, "dat1={file}", "there is no stream 'dat1'. Did you mean 'data1'?"),
        ("bz", {}, "a={file}", "its tuples all wait when the run begins"),
        ("sharaf", {}, "missing.parquet", "there is no such file"),
    ],
)
def test_a_trace_that_cannot_be_used_is_a_sentence(
    tmp_path: Path, name: str, options: dict[str, object], trace: str, message: str
) -> None:
    file = trace_file(tmp_path, [0.0, 1.0])
    with pytest.raises((ConfigRefused, UnknownName)) as refused:
        workload(name, traces=[trace.format(file=file)], **options)
    assert message in str(refused.value)


def test_a_pipeline_is_simulated_as_spark_would_run_it(tmp_path: Path) -> None:
    scenario = workload(pipeline_file(tmp_path), seconds=5)
    assert scenario.as_on_spark
    assert scenario.options["together"]
    assert scenario.options["train_tuples"] == ALL
    assert len(scenario.arrivals["sensors"]) == 500
    assert scenario.simulate("rr").total.tuples_in == 500


def test_the_policy_of_the_file_keeps_its_parameters_there(tmp_path: Path) -> None:
    scenario = workload(pipeline_file(tmp_path), seconds=1)
    assert scenario.usual_policy == "cqc"
    from_file, default = scenario.policy(Spelled("cqc")), scenario.policy(Spelled("cqc(inner=hr)"))
    assert isinstance(from_file, Cqc)
    assert isinstance(default, Cqc)
    assert (from_file.inner.name, default.inner.name) == ("hnr", "hr")


def test_settings_of_the_run_replace_those_of_the_file(tmp_path: Path) -> None:
    scenario = workload(
        pipeline_file(tmp_path), seconds=1, workers=5, train_tuples=7, overhead_s=0.5
    )
    assert (scenario.options["workers"], scenario.options["train_tuples"]) == (5, 7)
    assert scenario.options["statistics"]["hot"].overhead_s == 0.5


def test_a_pipeline_takes_a_trace_at_its_own_rate(tmp_path: Path) -> None:
    file = trace_file(tmp_path, [0.0, 1.0, 90.0])
    scenario = workload(pipeline_file(tmp_path), traces=[file])
    assert scenario.arrivals["sensors"].tolist() == [0.0, 1.0, 90.0]
    cut = workload(pipeline_file(tmp_path), traces=[file], seconds=10)
    assert cut.arrivals["sensors"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": "operator"}, "each of its queries is simulated as one box"),
        ({"shared_priority": "max"}, "each of its queries is simulated as one box"),
        ({"queries": 3}, "queries is 3, but must be left out: it is an option of a testbed"),
    ],
)
def test_what_a_pipeline_cannot_have_is_refused(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    pipeline = read_pipeline(pipeline_file(tmp_path))
    with pytest.raises(ConfigRefused) as refused:
        workload(pipeline, **settings)
    assert message in str(refused.value)


def test_a_pipeline_without_known_costs_says_which(tmp_path: Path) -> None:
    query = {"class": "H", "sql": "SELECT location FROM sensors"}
    with pytest.raises(StatisticsMissing, match="not known for: cold"):
        workload(pipeline_file(tmp_path, queries={"cold": query}))


def test_a_missing_file_is_taken_for_a_file_not_for_a_testbed() -> None:
    with pytest.raises(ConfigRefused, match="readable file"):
        workload("missing.yaml")
