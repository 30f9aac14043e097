"""Plots: one self-contained HTML page for a set of runs, or for a comparison."""

from collections.abc import Sequence
from math import isnan

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from headgate.metrics.report import Report
from headgate.runtime.what_if.compare import Comparison

PANELS = (
    ("queue size", "pending tuples", 1),
    ("response time", "mean response (s)", 4),
    ("slowdown", "mean slowdown", 5),
    ("QoS", "mean utility", 6),
)
"""Title, axis with its unit, and the column of `Report.over_time`."""

COLOURS = (
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2",
    "#7f7f7f", "#bcbd22",
)  # fmt: skip
DASHES = ("solid", "dash", "dot", "dashdot")
"""Ten colors and four dash styles: forty policies can be told apart."""

FAR_APART = 30.0
"""A comparison has a logarithmic axis if the worst mean is more than this many times the best."""

PANEL_PIXELS = 300
ROW_PIXELS = 26


def over_time_page(reports: Sequence[Report], title: str) -> str:
    """Return a page of queue size, response time, slowdown and QoS over time, a line per policy.

    A panel that no run has values for is left out, such as QoS if no query has a QoS graph.
    """
    panels = [panel for panel in PANELS if any(_values(report, panel[2]) for report in reports)]
    figure = make_subplots(
        rows=max(1, len(panels)), cols=1, shared_xaxes=True, vertical_spacing=0.07,
        subplot_titles=[name for name, _, _ in panels],
    )  # fmt: skip
    for number, report in enumerate(reports):
        for row, (_, _, column) in enumerate(panels, start=1):
            points = _values(report, column)
            figure.add_trace(
                go.Scatter(
                    x=[at_s for at_s, _ in points],
                    y=[value for _, value in points],
                    name=report.policy,
                    legendgroup=report.policy,
                    showlegend=row == 1,
                    mode="lines",
                    line={"color": COLOURS[number % 10], "dash": DASHES[number // 10 % 4]},
                ),
                row=row,
                col=1,
            )
    for row, (_, axis, _) in enumerate(panels, start=1):
        figure.update_yaxes(title_text=axis, rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title_text="time (s)", row=max(1, len(panels)), col=1)
    figure.update_layout(height=120 + PANEL_PIXELS * max(1, len(panels)), hovermode="x unified")
    return _page(figure, title)


def comparison_page(comparison: Comparison) -> str:
    """Return a page with a bar per policy: the mean over seeds, and a line from least to most.

    The best is on top; hollow bars are policies that only a simulation can run.
    """
    standings = comparison.standings[::-1]
    bars = go.Bar(
        x=[standing.mean for standing in standings],
        y=[standing.policy for standing in standings],
        orientation="h",
        marker={
            "color": [COLOURS[0] if standing.runs_on_spark else "white" for standing in standings],
            "line": {"color": COLOURS[0], "width": 1},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [standing.most - standing.mean for standing in standings],
            "arrayminus": [standing.mean - standing.least for standing in standings],
            "color": "#444",
        },
    )
    figure = go.Figure(bars)
    axis = f"{comparison.label}, mean of {len(comparison.seeds)} seeds"
    if not all(standing.runs_on_spark for standing in standings):
        axis += "; hollow: simulation only"
    figure.update_xaxes(title_text=axis, type="log" if _far_apart(comparison) else "linear")
    figure.update_yaxes(title_text="policy", automargin=True)
    figure.update_layout(height=200 + ROW_PIXELS * len(standings), showlegend=False)
    return _page(figure, f"{comparison.workload}<br><sup>{comparison.verdict}</sup>")


def _far_apart(comparison: Comparison) -> bool:
    """Return True if the bar of the best would be too short to be seen beside the worst."""
    means = [standing.mean for standing in comparison.standings]
    least = min(standing.least for standing in comparison.standings)
    return least > 0 and max(means) > FAR_APART * min(means)


def _values(report: Report, column: int) -> list[tuple[float, float]]:
    """Return the times and values of a column, without missing values."""
    if column == 6 and isnan(report.total.qos):
        return []
    return [(row[0], row[column]) for row in report.over_time if not isnan(row[column])]


def _page(figure: go.Figure, title: str) -> str:
    figure.update_layout(title={"text": title, "x": 0.02}, template="plotly_white")
    page: str = figure.to_html(include_plotlyjs=True, full_html=True)
    return page
