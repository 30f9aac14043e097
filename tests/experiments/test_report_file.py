"""The report: `report.json` has its documented form, and a browser draws every figure offline."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from kit.browser import browser
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from headgate.experiments.papers import EXPERIMENTS
from headgate.experiments.report import write_report

TRACKED = Path(__file__).parents[2] / "docs" / "report" / "report.json"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class XAxis(Strict):
    name: str
    unit: str
    values: list[float | str]


class YAxis(Strict):
    name: str
    unit: str


class Curve(Strict):
    label: str
    policy: str
    options: dict[str, Any]
    part: str | None = None
    x: list[float | None] | None = None
    values: list[float | None]
    low: list[float | None]
    high: list[float | None]


class Panel(Strict):
    engine: Literal["simulation", "spark"]
    kind: Literal["line", "bars", "stacked", "scatter", "time"]
    x: XAxis
    y: YAxis
    curves: list[Curve]

    @model_validator(mode="after")
    def _every_curve_has_a_value_for_each_x(self) -> "Panel":
        for curve in self.curves:
            x_values = curve.x if self.kind == "scatter" else self.x.values
            assert x_values is not None
            lengths = {len(x_values), len(curve.values), len(curve.low), len(curve.high)}
            assert len(lengths) == 1, curve.label
        return self


class Statement(Strict):
    text: str
    holds: Literal["yes", "partly", "no"]
    measured: str
    why: str

    @model_validator(mode="after")
    def _a_statement_that_does_not_hold_says_why(self) -> "Statement":
        assert bool(self.why) == (self.holds != "yes"), self.text
        return self


class Figure(Strict):
    id: str
    paper: Literal["aurora", "amos", "cqc", "sharaf", "bz"]
    figure: str
    command: str
    settings: dict[str, Any]
    seeds: list[int]
    panels: list[Panel]
    statements: list[Statement]


class Report(Strict):
    figures: list[Figure]


def tracked() -> dict[str, Any]:
    report: dict[str, Any] = json.loads(TRACKED.read_text())
    return report


def test_the_kept_report_has_the_documented_form() -> None:
    names = [figure.id for figure in Report.model_validate(tracked()).figures]
    assert names == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("key", "value"), [("panels", None), ("extra", 1), ("seeds", [0.5]), ("paper", "other")]
)
def test_another_form_is_refused(key: str, value: object) -> None:
    report = tracked()
    report["figures"][0][key] = value
    with pytest.raises(ValidationError, match=key):
        Report.model_validate(report)


DRAWN = """() => [...document.querySelectorAll('section')].map(section => [
  section.id,
  [...section.querySelectorAll('svg')].map(svg =>
    svg.getBoundingClientRect().height > 100 &&
    svg.querySelectorAll('polyline.line, circle, rect').length > 0),
])"""


@pytest.mark.parametrize(("colors", "width"), [("light", 1400), ("dark", 800)])
def test_a_browser_draws_every_figure_without_a_network(
    colors: Literal["light", "dark"], width: int, tmp_path: Path
) -> None:
    figures = tracked()["figures"]
    first = write_report(figures, tmp_path)
    panels = {figure["id"]: len(figure["panels"]) for figure in figures}
    with browser() as chromium:
        page = chromium.new_page(color_scheme=colors, viewport={"width": width, "height": 1000})
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(first.as_uri())
        links = page.locator("h2 a").evaluate_all("links => links.map(link => link.href)")
        assert len(page.locator("td a").all()) == len(figures)
        drawn = {}
        for link in links:
            page.goto(link)
            drawn.update(dict(page.evaluate(DRAWN)))
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert drawn == {name: [True] * count for name, count in panels.items()}
        assert all(url.startswith("file:") for url in requests)
