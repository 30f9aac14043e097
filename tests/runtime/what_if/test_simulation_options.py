"""Charges and options of a simulation, from flags and from the section of a pipeline file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from headgate.config import SimulationConfig
from headgate.errors import ConfigRefused, UnknownName
from headgate.metrics.report import Report
from headgate.model.plan import ALL
from headgate.runtime import workload
from headgate.runtime.what_if.simulation_options import change_of, simulation_options
from headgate.simulation.loop.changes import Switch
from headgate.simulation.world.setting import Setting

STATISTICS = {"cost_s": 1e-4, "selectivity": 0.5, "overhead_s": 0.01}
AURORA = {"apps": 2, "depth": 2, "fanout": 2, "tuples": 200}


def pipeline_file(folder: Path, **changes: object) -> str:
    stream = {"format": "headgate", "options": {"rate_per_s": 100}}
    query = {"class": "H", "sql": "SELECT location FROM sensors", "statistics": STATISTICS}
    data = {
        "state": str(folder / "state"), "classes": {"H": 2}, "streams": {"sensors": stream},
        "queries": {"hot": query}, **changes,
    }  # fmt: skip
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(data))
    return str(file)


def ran(policy: str = "rr-box", **options: Any) -> Report:
    return workload("aurora", **AURORA, **options).simulate(policy)


def test_every_charge_is_paid() -> None:
    free = ran()
    assert free.scheduler_s == free.storage_s == 0.0
    assert ran(decision_s=1e-6).scheduler_s > 0
    assert ran(examine_s=1e-6).scheduler_s > 0
    assert ran(storage_s=1e-6).storage_s > 0
    assert ran(visit_s=1e-6).scheduler_s > 0
    assert ran("hr", visit_s=1e-6).scheduler_s == 0
    assert ran(switch_s=1e-6).overhead_s > 0


@pytest.mark.parametrize(
    "limit", [{"train_fraction": 0.01}, {"train_cost_s": 1e-9}, {"train_spread_s": 0.0}]
)
def test_every_limit_of_trains_makes_more_calls(limit: dict[str, float]) -> None:
    options = {**AURORA, "burst": 50, "train_tuples": ALL}
    few = workload("aurora", **options).simulate("rr-box").calls
    assert workload("aurora", **options, **limit).simulate("rr-box").calls > few


def test_queues_that_are_full_at_the_start_are_sampled_over_time() -> None:
    full = ran(preloaded=["app0_1=300"], seconds=1e-9)
    empty = ran(seconds=1e-9)
    assert full.total.response_s.count >= 300 > empty.total.response_s.count
    assert len(full.over_time) > 100
    pending = [sample[1] for sample in full.over_time]
    assert pending[0] > pending[len(pending) // 2] > pending[-1]


def test_queries_policies_and_specifications_change_at_an_instant() -> None:
    whole = ran("rr")
    gone = ran("rr", at=["0 go app0"])
    assert 0 < gone.total.response_s.count < whole.total.response_s.count
    other = ran("rr", at=["0 policy ml"])
    means_s = [report.total.response_s.mean for report in (other, ran("ml"), whole)]
    assert means_s[0] == means_s[1] != means_s[2]
    amos = ran("amos", at=["0.1 specification pending:minimize:1"])
    assert amos.total.response_s.count == whole.total.response_s.count
    with pytest.raises(ConfigRefused, match="for a policy with a specification, not 'rr'"):
        ran("rr", at=["0.1 specification pending:minimize:1"])


@pytest.mark.parametrize("text", ["now go q", "10 goes q", "10 go", "-1 go q", ""])
def test_a_change_that_cannot_be_read_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigRefused, match="as in '10 policy hnr'"):
        change_of(text)


def test_a_change_names_a_policy_that_exists() -> None:
    assert change_of("3 come q1") == Switch(3.0, "q1", "come")
    with pytest.raises(UnknownName, match="hnrr"):
        change_of("3 policy hnrr")


@pytest.mark.parametrize(
    ("key", "value"), [("decision_s", -1), ("train_fraction", 2), ("shed_headroom", "all")]
)
def test_a_wrong_value_is_refused_by_its_name(key: str, value: object) -> None:
    with pytest.raises(ConfigRefused, match=key):
        workload("aurora", **AURORA, **{key: value})


def test_each_key_reaches_the_simulation() -> None:
    names = set(SimulationConfig.model_fields)
    others = {"at", *(name for name in names if name.startswith("shed"))}
    assert names - others <= set(Setting.__dataclass_fields__)
    options = simulation_options({"shed_period_s": 2.0, "at": ["1 go q"]})
    assert options["shedder"]().period_s == 2.0
    assert options["switches"] == (Switch(1.0, "q", "go"),)


def test_a_pipeline_file_has_the_same_options(tmp_path: Path) -> None:
    file = pipeline_file(tmp_path, simulation={"decision_s": 0.001, "shed": True})
    by_file = workload(file, seconds=2.0)
    assert not by_file.as_on_spark
    assert by_file.note == "1 queries as one box each, calls not fused"
    report = by_file.simulate("hr")
    assert report.scheduler_s == pytest.approx(0.001 * report.decisions)
    over = workload(file, seconds=2.0, decision_s=0.0).simulate("hr")
    assert over.scheduler_s == 0.0
    assert np.isfinite(over.total.response_s.mean)
    assert not workload(pipeline_file(tmp_path), seconds=2.0, learns=True).as_on_spark
    plain = workload(pipeline_file(tmp_path), seconds=2.0)
    assert plain.as_on_spark


def test_the_row_of_a_policy_says_its_train() -> None:
    trains = {
        name: ran(name).train for name in ("hr", "taat", "fas", "wrr", "rr-k", "rr(quantum_s=0.5)")
    }
    assert trains == {
        "hr": "1", "taat": "1", "fas": "all", "wrr": "time slice", "rr-k": "30",
        "rr(quantum_s=0.5)": "0.5 s",
    }  # fmt: skip
    limited = {name: ran(name, train_tuples=7).train for name in ("hr", "taat", "fas", "rr-k")}
    assert limited == {"hr": "7", "taat": "1", "fas": "7", "rr-k": "30, at most 7"}
