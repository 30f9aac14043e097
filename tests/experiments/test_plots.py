"""Pages with plots: every policy is a line or a bar, axes have units, nothing is downloaded."""

import json
import re
from typing import Any

import pytest

from headgate.experiments.plots import comparison_page, over_time_page
from headgate.metrics.report import Report
from headgate.runtime import workload
from headgate.runtime.what_if.compare import Comparison, Standing


def figure_of(page: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the traces and the layout that a page passes to plotly."""
    after = page[page.rindex("Plotly.newPlot(") :]
    decoder = json.JSONDecoder()
    traces, end = decoder.raw_decode(after, after.index("["))
    layout, _ = decoder.raw_decode(after, after.index("{", end))
    return traces, layout


def reports(name: str, policies: tuple[str, ...], **options: object) -> list[Report]:
    testbed = workload(name, **options)
    return [testbed.simulate(policy) for policy in policies]


def comparison(*means: float) -> Comparison:
    names = ("lsf", "hr", "mss")
    standings = tuple(
        Standing(place + 1, names[place], (mean * 0.5, mean * 1.5), 1.0, names[place] != "mss")
        for place, mean in enumerate(means)
    )
    return Comparison("bed", "", "memory", "memory, mean (tuples)", False, (0, 1), standings)


def test_every_policy_is_a_line_in_every_panel() -> None:
    page = over_time_page(reports("aurora", ("rr", "hr"), depth=2, tuples=300), "trees")
    traces, layout = figure_of(page)
    assert [trace["name"] for trace in traces] == ["rr"] * 4 + ["hr"] * 4
    assert [trace["showlegend"] for trace in traces[:4]] == [True, False, False, False]
    titles = [annotation["text"] for annotation in layout["annotations"]]
    assert titles == ["queue size", "response time", "slowdown", "QoS"]
    axes = [value for key, value in layout.items() if key.startswith(("xaxis", "yaxis"))]
    assert {axis["title"]["text"] for axis in axes if "title" in axis} == {
        "pending tuples", "mean response (s)", "mean slowdown", "mean utility", "time (s)",
    }  # fmt: skip
    assert layout["title"]["text"] == "trees"


def test_a_panel_without_values_is_left_out() -> None:
    page = over_time_page(reports("amos", ("hr",), tuples=200), "plan")
    titles = [annotation["text"] for annotation in figure_of(page)[1]["annotations"]]
    assert titles == ["queue size", "response time", "slowdown"]


def test_tuples_that_all_wait_at_the_start_have_a_time_axis_too() -> None:
    report = reports("bz", ("mss",), tuples=50)[0]
    waiting = [row[1] for row in report.over_time if row[1] == row[1]]
    assert len(report.over_time) > 20
    assert waiting == sorted(waiting, reverse=True)  # nothing arrives any more


def test_a_page_needs_nothing_from_elsewhere() -> None:
    page = over_time_page(reports("amos", ("hr",), tuples=50), "plan")
    assert not re.search(r"<script[^>]+src=", page)
    assert "Plotly.newPlot(" in page


def test_a_comparison_is_bars_with_their_range_best_on_top() -> None:
    traces, layout = figure_of(comparison_page(comparison(2.0, 3.0, 4.0)))
    bars = traces[0]
    assert bars["type"] == "bar"
    assert bars["y"] == ["mss", "hr", "lsf"]  # plotly draws the first at the bottom
    assert bars["x"] == [4.0, 3.0, 2.0]
    assert bars["error_x"]["array"] == [2.0, 1.5, 1.0]
    assert bars["marker"]["color"][0] == "white"
    assert layout["xaxis"]["title"]["text"] == (
        "memory, mean (tuples), mean of 2 seeds; hollow: simulation only"
    )
    assert "lsf is best" in layout["title"]["text"]


@pytest.mark.parametrize(
    ("means", "axis"), [((2.0, 20.0), "linear"), ((2.0, 200.0), "log"), ((0.0, 9.0), "linear")]
)
def test_values_far_apart_have_a_logarithmic_axis(means: tuple[float, ...], axis: str) -> None:
    assert figure_of(comparison_page(comparison(*means)))[1]["xaxis"]["type"] == axis
