"""Charts: a panel of a figure as a static SVG image, in light and dark colors."""

from collections.abc import Sequence
from html import escape
from math import ceil, floor, inf, log10
from typing import Any

from headgate.experiments.number_text import number_text

WIDTH, HEIGHT = 640, 330
LEFT, RIGHT, TOP, BOTTOM = 74, 16, 14, 52
LEGEND_ROW, LETTER = 19, 6.7
FAR_APART = 40.0
X_FAR_APART = 18.0
"""An axis is logarithmic if its values span more than this factor."""

LIGHT = (
    "#1f6fb4", "#c8362e", "#2b8a3e", "#7d4fb3", "#c76a00", "#0b8793", "#83524a", "#b8408f",
    "#5f6670", "#8a8200",
)  # fmt: skip
DARK = (
    "#6db3f2", "#ff8a80", "#6fcf7f", "#bf9cf2", "#ffb35c", "#4dd0dd", "#c9a197", "#f28fd0",
    "#aab2bd", "#d8cf4a",
)  # fmt: skip
DASHES = ("", "6 3", "2 3")


def style() -> str:
    """Return the style sheet of all charts."""

    def colors(palette: Sequence[str], ink: str, grid: str, paper: str) -> str:
        shades = "".join(f"--c{number}:{color};" for number, color in enumerate(palette))
        return f"{shades}--ink:{ink};--grid:{grid};--paper:{paper};"

    light = colors(LIGHT, "#24292f", "#d8dee4", "#ffffff")
    dark = colors(DARK, "#e6edf3", "#3a424c", "#161b22")
    return (
        f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"
        ".chart{font:12px system-ui,sans-serif}.chart text{fill:var(--ink)}"
        ".chart .grid{stroke:var(--grid);stroke-width:1}"
        ".chart .axis{stroke:var(--ink);stroke-width:1}"
        ".chart .line{fill:none;stroke-width:2}.chart .range{stroke:none;opacity:.16}"
        ".chart .whisker{stroke:var(--ink);stroke-width:1;opacity:.75}"
        ".chart .paper{fill:var(--paper)}"
    )


def svg(panel: dict[str, Any], *, title: str, alone: bool = False) -> str:
    """Return the chart of a panel.

    Args:
        panel: as in `report.json`.
        title: the name of the chart for screen readers.
        alone: for a file of its own, with its style sheet and background.
    """
    return _Chart(panel).drawn(title, alone)


class _Chart:
    """The scales of a panel, and what is drawn with them."""

    def __init__(self, panel: dict[str, Any]) -> None:
        self.panel, self.kind, self.curves = panel, panel["kind"], panel["curves"]
        self.bars = self.kind in ("bars", "stacked")
        self.legend = self._legend_places()
        self.height = HEIGHT + LEGEND_ROW * (1 + max(row for _, row in self.legend))
        numbers = self._y_numbers()
        positive = [number for number in numbers if number > 0]
        apart = bool(positive) and min(numbers) > 0 and max(positive) / min(positive) > FAR_APART
        self.log = apart and self.kind != "stacked"
        low, high = min(numbers, default=0.0), max(numbers, default=1.0)
        if self.log:
            # The least bar must be seen, too.
            least = min(positive) / 2 if self.bars else min(positive)
            self.low, self.high = _decades(least, max(positive))
        else:
            near = low > 0.6 * high and not self.bars  # far from 0, such as scores around 1
            self.low = low - 0.1 * (high - low) if near and high > low else min(0.0, low)
            self.high = high if high > self.low else self.low + 1.0
            self.high += 0.04 * (self.high - self.low)
        x_values = self._x_numbers()
        self.x_low, self.x_high = min(x_values, default=0.0), max(x_values, default=1.0)
        if self.x_high == self.x_low:
            self.x_low, self.x_high = self.x_low - 0.5, self.x_high + 0.5
        self.x_log = self._x_is_far_apart(x_values)

    def drawn(self, title: str, alone: bool) -> str:
        parts = [*self._y_axis(), *self._x_axis()]
        draw = {"bars": self._bars, "stacked": self._stacks, "scatter": self._scatter}
        parts += draw.get(self.kind, self._lines)()
        parts += self._legend()
        style_sheet = f"<style>{style()}</style>" if alone else ""
        paper = f'<rect class="paper" width="{WIDTH}" height="{self.height}"/>' if alone else ""
        return (
            f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" role="img"'
            f' viewBox="0 0 {WIDTH} {self.height}"><title>{escape(title)}</title>'
            f"{style_sheet}{paper}{''.join(parts)}</svg>"
        )

    def _y_numbers(self) -> list[float]:
        if self.kind == "stacked":
            columns = zip(*(curve["values"] for curve in self.curves), strict=True)
            return [0.0, *(sum(value or 0.0 for value in column) for column in columns)]
        keys = ("values", "low", "high")
        return [v for curve in self.curves for key in keys for v in curve[key] if v is not None]

    def _x_numbers(self) -> list[float]:
        if self.kind == "scatter":
            return [v for curve in self.curves for v in curve["x"] if v is not None]
        values = self.panel["x"]["values"]
        if self.bars or any(isinstance(value, str) for value in values):
            return [-0.5, len(values) - 0.5] if self.bars else list(range(len(values)))
        return [float(value) for value in values]

    def _x_is_far_apart(self, values: Sequence[float]) -> bool:
        if self.bars or not values or self.kind == "time" or min(values) <= 0:
            return False
        return max(values) / min(values) > X_FAR_APART

    def _x(self, value: float) -> float:
        low, high = self.x_low, self.x_high
        if self.x_log:
            low, high, value = log10(low), log10(high), log10(value)
        inset = 0 if self.bars else 10
        width = WIDTH - LEFT - RIGHT - 2 * inset
        return LEFT + inset + width * (value - low) / (high - low)

    def _y(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = log10(low), log10(high), log10(max(value, self.low))
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low))

    def _y_axis(self) -> list[str]:
        parts = []
        for value in _log_ticks(self.low, self.high) if self.log else _ticks(self.low, self.high):
            y = self._y(value)
            parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            place = f'x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end"'
            parts.append(f"<text {place}>{number_text(value)}</text>")
        middle = (TOP + HEIGHT - BOTTOM) / 2
        place = f'transform="translate(14 {middle}) rotate(-90)"'
        label = _label(self.panel["y"])
        parts.append(f'<text {place} text-anchor="middle">{label}</text>')
        return parts

    def _x_axis(self) -> list[str]:
        bottom = HEIGHT - BOTTOM
        parts = [f'<path class="axis" d="M{LEFT} {bottom}H{WIDTH - RIGHT}"/>']
        values = self.panel["x"]["values"]
        names = self.bars or any(isinstance(value, str) for value in values)
        marks: list[tuple[float, str]]
        if names and self.kind != "scatter":
            marks = [(float(place), str(value)) for place, value in enumerate(values)]
        elif self.kind in ("scatter", "time"):
            ticks = _log_ticks if self.x_log else _ticks
            marks = [(tick, number_text(tick)) for tick in ticks(self.x_low, self.x_high)]
        else:
            marks = [(float(value), number_text(float(value))) for value in values]
        last = -inf
        for value, text in marks:
            x = self._x(value)
            parts.append(f'<path class="axis" d="M{x:.1f} {bottom}v5"/>')
            half = LETTER * len(text) / 2
            if x - half < last + 4:
                continue  # the labels would overlap
            last = x + half
            parts.append(
                f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{escape(text)}</text>'
            )
        middle = (LEFT + WIDTH - RIGHT) / 2
        label = _label(self.panel["x"])
        parts.append(f'<text x="{middle}" y="{bottom + 38}" text-anchor="middle">{label}</text>')
        return parts

    def _lines(self) -> list[str]:
        xs = self.panel["x"]["values"]
        if any(isinstance(x, str) for x in xs):
            xs = list(range(len(xs)))
        ranges, lines = [], []
        for number, curve in enumerate(self.curves):
            color, dash = f"var(--c{number % 10})", DASHES[number // 10 % 3]
            for points in _unbroken(xs, curve):
                if len(points) > 1:
                    upper = [f"{self._x(x):.1f},{self._y(high):.1f}" for x, _, _, high in points]
                    lower = [f"{self._x(x):.1f},{self._y(low):.1f}" for x, _, low, _ in points]
                    shape = " ".join([*upper, *lower[::-1]])
                    ranges.append(f'<polygon class="range" fill="{color}" points="{shape}"/>')
                    path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y, _, _ in points)
                    lines.append(
                        f'<polyline class="line" stroke="{color}" stroke-dasharray="{dash}"'
                        f' points="{path}"/>'
                    )
                if self.kind != "time":
                    lines += [self._dot(x, y, color, curve["label"]) for x, y, _, _ in points]
        return ranges + lines

    def _dot(self, x: float, y: float, color: str, label: str) -> str:
        return (
            f'<circle cx="{self._x(x):.1f}" cy="{self._y(y):.1f}" r="3.2" fill="{color}">'
            f"<title>{escape(label)}: {number_text(y)} at {number_text(x)}</title></circle>"
        )

    def _scatter(self) -> list[str]:
        parts = []
        for number, curve in enumerate(self.curves):
            color = f"var(--c{number % 10})"
            points = [
                (x, y)
                for x, y in zip(curve["x"], curve["values"], strict=True)
                if x is not None and y is not None
            ]
            if len(points) > 1:
                path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)
                parts.append(f'<polyline class="line" stroke="{color}" points="{path}"/>')
            parts += [
                self._dot(x, y, color, curve["label"]).replace('r="3.2"', 'r="5"')
                for x, y in points
            ]
        return parts

    def _bars(self) -> list[str]:
        parts, count = [], len(self.curves)
        slot = self._x(1) - self._x(0) if len(self.panel["x"]["values"]) > 1 else WIDTH - LEFT
        width = min(46.0, 0.8 * slot / count)
        for number, curve in enumerate(self.curves):
            for place, value in enumerate(curve["values"]):
                if value is None:
                    continue
                x = self._x(place) + (number - count / 2) * width
                parts.append(self._bar(x, width, self.low, value, number, curve["label"]))
                middle = x + width / 2
                low, high = self._y(curve["low"][place]), self._y(curve["high"][place])
                parts.append(f'<path class="whisker" d="M{middle:.1f} {low:.1f}V{high:.1f}"/>')
        return parts

    def _stacks(self) -> list[str]:
        parts, totals = [], [0.0] * len(self.panel["x"]["values"])
        for number, curve in enumerate(self.curves):
            for place, value in enumerate(curve["values"]):
                if value is not None:
                    x, base = self._x(place) - 30, totals[place]
                    parts.append(self._bar(x, 60, base, base + value, number, curve["label"]))
                    totals[place] = base + value
        return parts

    def _bar(self, x: float, width: float, base: float, end: float, number: int, label: str) -> str:
        top, bottom = self._y(end), self._y(base)
        value = end - base if self.kind == "stacked" else end
        return (
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{width - 1:.1f}"'
            f' height="{max(0.0, bottom - top):.1f}" fill="var(--c{number % 10})">'
            f"<title>{escape(label)}: {number_text(value)}</title></rect>"
        )

    def _legend_places(self) -> list[tuple[float, int]]:
        places, x, row = [], float(LEFT), 0
        for curve in self.curves:
            width = 30 + LETTER * len(curve["label"])
            if x + width > WIDTH and x > LEFT:
                x, row = float(LEFT), row + 1
            places.append((x, row))
            x += width + 8
        return places or [(LEFT, 0)]

    def _legend(self) -> list[str]:
        parts = []
        for number, (curve, (x, row)) in enumerate(zip(self.curves, self.legend, strict=False)):
            y = HEIGHT + LEGEND_ROW * row + 6
            color, dash = f"var(--c{number % 10})", DASHES[number // 10 % 3]
            mark = (
                f'<rect x="{x}" y="{y - 5}" width="18" height="10" fill="{color}"/>'
                if self.bars
                else f'<path class="line" stroke="{color}" stroke-dasharray="{dash}"'
                f' d="M{x} {y}h18"/>'
            )
            parts.append(f'{mark}<text x="{x + 24}" y="{y + 4}">{escape(curve["label"])}</text>')
        return parts


def _unbroken(
    xs: Sequence[float], curve: dict[str, Any]
) -> list[list[tuple[float, float, float, float]]]:
    """Return the points of a curve in pieces without missing values: x, mean, least, most."""
    pieces: list[list[tuple[float, float, float, float]]] = [[]]
    for x, y, low, high in zip(xs, curve["values"], curve["low"], curve["high"], strict=True):
        if y is None:
            pieces.append([])
        else:
            pieces[-1].append((float(x), y, low, high))
    return [piece for piece in pieces if piece]


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two bounds.

    >>> _ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    size = 10.0 ** floor(log10((high - low) / 5))
    step = next(size * factor for factor in (1, 2, 5, 10) if (high - low) / (size * factor) <= 6)
    first = ceil(low / step - 1e-9)
    return [round(step * number, 12) for number in range(first, floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten between two bounds; with few of them, also 2 and 5 times these.

    >>> _log_ticks(1.0, 100.0)
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    """
    first, last = floor(log10(low)), ceil(log10(high))
    factors = (1.0, 2.0, 5.0) if last - first <= 2 else (1.0,)
    ticks = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def _decades(low: float, high: float) -> tuple[float, float]:
    return 10.0 ** (floor(10 * log10(low * 0.9)) / 10), 10.0 ** (ceil(10 * log10(high * 1.1)) / 10)


def _label(axis: dict[str, Any]) -> str:
    return escape(f"{axis['name']} ({axis['unit']})" if axis["unit"] else axis["name"])
