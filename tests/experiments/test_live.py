"""Figures on Spark: pipelines of the papers' queries, and panels beside the simulated ones."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import ConfigRefused
from headgate.experiments.experiment import Experiment, points_of
from headgate.experiments.live import LIVE_FIGURES, with_live
from headgate.experiments.live_run import run_live
from headgate.experiments.papers import EXPERIMENTS
from headgate.experiments.pipelines import LivePipeline, amos, aurora, cqc
from headgate.experiments.reproduce import chosen, reproduce
from headgate.runtime.pipeline import refuse_off_spark
from headgate.runtime.policy_text import Spelled
from headgate.workloads.testbeds.cqc import MIXES

FEED = {"rate_per_s": "100"}
SHORT = {"steps": 20, "warm_up_s": 0.5, "seconds": 0.5}


def streams_of(pipeline: LivePipeline) -> set[str]:
    return {stream.name for stream in pipeline.streams}


@pytest.mark.parametrize("workload", "ABC")
def test_a_live_workload_of_cqc_has_the_queries_of_the_paper(workload: str) -> None:
    pipeline = cqc(FEED, 100.0, 0, workload=workload)
    kinds = Counter(query.name.rstrip("0123456789") for query in pipeline.queries)
    assert kinds == {
        f"{name}_{kind}": count
        for name, counts in MIXES[workload].items()
        for kind, count in counts.items()
    }
    assert len(pipeline.streams) == 27
    alone = cqc(FEED, 100.0, 0, workload=workload, only="H")
    assert alone.queries == tuple(q for q in pipeline.queries if q.query_class == "H")
    assert all(
        any(f"FROM {name} " in q.sql or f"JOIN {name} " in q.sql for q in alone.queries)
        for name in streams_of(alone)
    )


def test_a_superbox_of_aurora_does_the_work_of_its_boxes_for_every_tuple() -> None:
    boxes, superboxes = (aurora(FEED, 100.0, 0, superboxes=one, apps=2) for one in (False, True))
    assert streams_of(boxes) == streams_of(superboxes)
    assert (len(boxes.views), len(boxes.queries), len(superboxes.queries)) == (12, 2, 2)
    text = superboxes.queries[0].sql
    leaves = [view for view in boxes.views if view.name in boxes.readers]
    for leaf in leaves[:4]:
        work = leaf.sql.partition(" WHERE ")[2]
        assert text.count(work) == 1
    root_work = boxes.queries[0].sql.partition(" WHERE ")[2].partition(" UNION")[0]
    assert text.count(root_work) == 4


def test_operators_of_amos_are_views_that_read_each_other() -> None:
    for plan, names in ((1, "op1 op2 op3"), (2, "op1 op2 op3")):
        pipeline = amos(FEED, 100.0, 0, plan=plan, swing=0.75)
        assert " ".join(view.name for view in pipeline.views) == names
        assert len(pipeline.streams) == len(pipeline.readers) == plan


@pytest.mark.parametrize("name", sorted(LIVE_FIGURES))
def test_live_panels_stand_after_the_simulated_ones_and_run_policies_of_spark(name: str) -> None:
    simulated, both = EXPERIMENTS[name], with_live(EXPERIMENTS[name])
    count = len(simulated.panels)
    assert both.panels[:count] == simulated.panels
    assert {panel.engine for panel in both.panels[count:]} == {"spark"}
    over_time = {n for n, panel in enumerate(simulated.panels) if panel.kind == "time"}
    measured = [
        statement
        for statement in simulated.statements
        if not over_time & {claim.panel for claim in statement.claims}
    ]
    assert len(both.statements) == len(simulated.statements) + len(measured)
    for statement in both.statements[len(simulated.statements) :]:
        assert all(claim.panel >= count for claim in statement.claims)
    for point in points_of(both, seeds=1, quick=True):
        if point.run.engine == "spark":
            refuse_off_spark(Spelled(point.run.policy).make())


def test_figures_that_the_engine_cannot_run_are_refused_with_the_reason() -> None:
    for name in EXPERIMENTS.keys() - LIVE_FIGURES:
        with pytest.raises(ConfigRefused, match="left out for this figure: i"):
            chosen([name], live=True)
    with pytest.raises(ConfigRefused, match="no SQL"):
        chosen(paper="sharaf", live=True)
    figures = chosen(paper="aurora", live=True)
    assert [figure.id for figure in figures if figure.panels[-1].engine == "spark"] == [
        "aurora-05", "aurora-09",
    ]  # fmt: skip


def shortened(name: str, *labels: str) -> Experiment:
    """Return a figure with some curves of one short live panel, at one x."""
    experiment = with_live(EXPERIMENTS[name])
    panel = next(panel for panel in experiment.panels if panel.engine == "spark")
    curves = tuple(curve for curve in panel.curves if curve.label in labels)
    axis = replace(panel.x, values=panel.x.values[:1], quick=())
    short = replace(
        panel, x=axis, curves=curves, options={**panel.options, **SHORT}, quick={}
    )  # fmt: skip
    return replace(experiment, panels=(short,), statements=())


def values_of(figure: dict[str, Any]) -> list[float]:
    """Return the values of the only panel, which is a live one."""
    (panel,) = figure["panels"]
    assert panel["engine"] == "spark"
    assert figure["command"].startswith(f"headgate reproduce {figure['id']} --live")
    assert "A load of 1 was, in tuples/s" in figure["settings"]["note"]
    return [value for curve in panel["curves"] for value in curve["values"]]


@pytest.mark.long
def test_an_interrupted_live_figure_goes_on_where_it_stopped(
    spark: SparkSession, tmp_path: Path
) -> None:
    experiment = shortened("amos-05", "RR", "AMoS")
    runs = [point.run for point in points_of(experiment, seeds=1, quick=False)]

    def interrupt(done: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_live(spark, runs, str(tmp_path / "cache" / "results"), interrupt)
    progress: list[tuple[int, int]] = []
    reproduction = reproduce(
        [experiment], seeds=1, report=tmp_path / "report", cache=tmp_path / "cache", session=spark,
        progress=lambda done, total: progress.append((done, total)),
    )  # fmt: skip
    assert progress[-2:] == [(1, 2), (2, 2)]
    values = values_of(reproduction.figures[0])
    assert len(values) == 2
    assert all(value > 0 for value in values)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("cqc-03", "CQC"),
        ("amos-09", "AMoS"),
        ("aurora-05", "RR-BAAT"),
        ("aurora-05", "MC-AAAT"),
        ("aurora-09", "storage"),
    ],
)
def test_figures_of_each_paper_are_measured_on_spark(
    spark: SparkSession, tmp_path: Path, name: str, label: str
) -> None:
    reproduction = reproduce(
        [shortened(name, label)], seeds=1, report=tmp_path / "report", cache=tmp_path, session=spark
    )
    (value,) = values_of(reproduction.figures[0])
    assert value > 0
