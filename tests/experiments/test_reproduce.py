"""Three figures from sweep to report, compared with SimPy and with closed forms."""

import csv
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from headgate.experiments.experiment import Experiment
from headgate.experiments.papers import EXPERIMENTS
from headgate.experiments.reproduce import Reproduction, chosen, reproduce
from headgate.runtime import workload
from headgate.workloads.testbeds import bz

SEEDS = 2
LOADS = (0.7, 0.97)
SHARES = (0.0, 0.2)
SMALL = {"queries": 12, "tuples": 120}
LABELS = {"HR", "BSD", "MSS", "component"}
"""The curves that are run. Each policy is compiled in every Python worker of Spark."""


def smaller(name: str, values: tuple[float, ...], **options: Any) -> Experiment:
    """Return an experiment with its first panel only, and fewer curves, x values and tuples."""
    panel = EXPERIMENTS[name].panels[0]
    axis = replace(panel.x, values=values, quick=())
    curves = tuple(curve for curve in panel.curves if curve.label in LABELS)
    small = replace(panel, x=axis, curves=curves, options={**panel.options, **options})
    return replace(EXPERIMENTS[name], panels=(small,))


@dataclass
class Swept:
    reproduction: Reproduction
    folder: Path
    cache: Path
    progress: list[tuple[int, int]]

    def figure(self, name: str) -> dict[str, Any]:
        return next(figure for figure in self.reproduction.figures if figure["id"] == name)

    def values(self, name: str, label: str) -> list[float]:
        curves = self.figure(name)["panels"][0]["curves"]
        return next(curve["values"] for curve in curves if curve["label"] == label)


@pytest.fixture(scope="module")
def swept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    folder, cache = tmp_path_factory.mktemp("report"), tmp_path_factory.mktemp("cache")
    experiments = [
        EXPERIMENTS["sharaf-35"],
        smaller("sharaf-12", LOADS, **SMALL),
        smaller("bz-12", SHARES),
    ]
    progress: list[tuple[int, int]] = []
    reproduction = reproduce(
        experiments, seeds=SEEDS, report=folder, cache=cache, session=spark,
        progress=lambda done, total: progress.append((done, total)),
    )  # fmt: skip
    return Swept(reproduction, folder, cache, progress)


def test_staleness_is_that_of_the_worked_example(swept: Swept) -> None:
    assert swept.values("sharaf-35", "staleness") == [pytest.approx(0.5, rel=1e-12)]


@pytest.mark.parametrize(("label", "policy"), [("HR", "hr"), ("BSD", "bsd")])
def test_norms_of_slowdown_are_those_of_a_model_in_simpy(
    swept: Swept, label: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    import simpy_model  # noqa: PLC0415  # a file of bench/, which is no package

    for place, load in enumerate(LOADS):
        norms = []
        for seed in range(SEEDS):
            subject = workload("sharaf", seed=seed, utilisation=load, **SMALL)
            times_s = subject.arrivals["packets"]
            model = simpy_model.model_of(subject.network, times_s, seed)
            slowdowns = [
                (left_at_s - times_s[number]) / model.ideals_s[query]
                for query, number, left_at_s in simpy_model.run(model, policy).left
            ]
            norms.append(float(np.linalg.norm(slowdowns)))
        assert swept.values("sharaf-12", label)[place] == pytest.approx(np.mean(norms), rel=1e-9)


def test_component_scheduling_has_the_latency_of_one_queue_after_the_other(swept: Swept) -> None:
    for place, share in enumerate(SHARES):
        means = []
        for seed in range(SEEDS):
            costs_s = bz.latency(outliers=share, seed=seed).tuple_costs
            ends_s = np.cumsum(np.concatenate([costs_s["A.0"], costs_s["B.0"]]))
            means.append(float(ends_s.mean()))
        # One tuple in twenty is dropped at random, so the mean is that of 570 of 600 tuples.
        assert swept.values("bz-12", "component")[place] == pytest.approx(np.mean(means), rel=0.02)


def test_every_form_of_the_report_has_the_same_values(swept: Swept) -> None:
    data = json.loads((swept.folder / "report.json").read_text())
    assert data == {"figures": swept.reproduction.figures}
    for figure in data["figures"]:
        command, *rows = (swept.folder / "data" / f"{figure['id']}.csv").read_text().splitlines()
        assert command == f"# {figure['command']}"
        written = [float(row["value"]) for row in csv.DictReader(rows)]
        curves = [curve for panel in figure["panels"] for curve in panel["curves"]]
        assert written == [value for curve in curves for value in curve["values"]]
        page = (swept.folder / f"{figure['paper']}.html").read_text()
        assert f'id="{figure["id"]}"' in page
        assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
        for statement in figure["statements"]:
            assert statement["text"] in (swept.folder / "report.md").read_text()
    assert "bz.html#bz-12" in (swept.folder / "index.html").read_text()


def test_report_json_has_the_documented_keys(swept: Swept) -> None:
    for figure in swept.reproduction.figures:
        assert set(figure) == {
            "id", "paper", "figure", "command", "settings", "seeds", "panels", "statements",
        }  # fmt: skip
        assert figure["seeds"] == list(range(SEEDS))
        for statement in figure["statements"]:
            assert set(statement) == {"text", "holds", "measured", "why"}
            assert statement["holds"] in ("yes", "partly", "no")
            assert bool(statement["why"]) == (statement["holds"] != "yes")
        for panel in figure["panels"]:
            assert set(panel) == {"engine", "kind", "x", "y", "curves"}
            assert panel["engine"] == "simulation"
            assert panel["kind"] in ("line", "bars", "stacked", "scatter", "time")
            assert set(panel["x"]) == {"name", "unit", "values"}
            assert set(panel["y"]) == {"name", "unit"}
            for curve in panel["curves"]:
                required = {"label", "policy", "options", "values", "low", "high"}
                assert required <= set(curve) <= required | {"part", "x"}
                rows = zip(curve["low"], curve["values"], curve["high"], strict=True)
                slack = 1 + 1e-12  # a mean of two equal numbers may be rounded
                assert all(low <= mean * slack and mean <= high * slack for low, mean, high in rows)


def test_figures_share_runs_and_a_second_sweep_runs_nothing(
    swept: Swept, spark: SparkSession, tmp_path: Path
) -> None:
    runs = 1 * SEEDS + 2 * len(LOADS) * SEEDS + 2 * len(SHARES) * SEEDS
    assert swept.reproduction.runs == runs
    assert swept.progress[0] == (0, runs)
    assert swept.progress[-1] == (runs, runs)
    progress: list[tuple[int, int]] = []
    shared = [smaller(name, LOADS, **SMALL) for name in ("sharaf-10", "sharaf-12")]
    again = reproduce(
        shared, seeds=SEEDS, report=tmp_path, cache=swept.cache, session=spark,
        progress=lambda done, total: progress.append((done, total)),
    )  # fmt: skip
    assert progress == [(8, 8)]
    assert again.figures[1]["panels"] == swept.figure("sharaf-12")["panels"]


def test_an_interrupted_sweep_continues_after_its_last_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    experiments = [smaller("bz-13", SHARES)]
    seen: list[tuple[int, int]] = []

    def interrupt(done: int, total: int) -> None:
        seen.append((done, total))
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(experiments, seeds=3, cache=tmp_path, session=spark, progress=interrupt)
    (_, (done, total)) = seen
    assert 0 < done < total
    again: list[tuple[int, int]] = []
    reproduce(
        experiments, seeds=3, report=tmp_path / "report", cache=tmp_path, session=spark,
        progress=lambda done, total: again.append((done, total)),
    )  # fmt: skip
    assert again[0] == (done, total)
    assert again[-1] == (total, total)


def test_the_cache_may_stand_in_a_folder_with_brackets(spark: SparkSession, tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    for _ in range(2):
        reproduction = reproduce(
            [EXPERIMENTS["sharaf-35"]], seeds=1, report=tmp_path,
            cache=tmp_path / "runs [2] {a,b}*", session=spark,
            progress=lambda done, total: progress.append((done, total)),
        )  # fmt: skip
        assert reproduction.figures[0]["panels"][0]["curves"][0]["values"] == [0.5]
    assert progress == [(0, 1), (1, 1), (1, 1)]


CLUSTER = ("local[2]", "local-cluster[2,1,1024]")


@pytest.mark.long
def test_a_cluster_of_two_workers_gives_the_same_numbers_to_the_digit(tmp_path: Path) -> None:
    answers = []
    for master in CLUSTER:
        place = tmp_path / master
        words = ["reproduce", "bz-13", "sharaf-35", "--quick", "--json", "--master", master]
        folders = ["--cache", str(place / "cache"), "--report", str(place / "report")]
        program = [sys.executable, "-m", "headgate.cli", *words, *folders]
        answers.append(subprocess.run(program, capture_output=True, check=True, text=True).stdout)
    local, cluster = map(json.loads, answers)
    assert local == cluster


@pytest.mark.long
def test_all_figures_of_a_quick_run_are_drawn(spark: SparkSession, tmp_path: Path) -> None:
    everything = chosen(all_figures=True)
    reproduction = reproduce(
        everything, quick=True, report=tmp_path, cache=tmp_path / "cache", session=spark
    )
    assert len(reproduction.figures) == len(everything)
    for figure in reproduction.figures:
        for panel in figure["panels"]:
            for curve in panel["curves"]:
                assert any(value is not None for value in curve["values"]), figure["id"]
