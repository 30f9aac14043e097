"""A paper's statement about a figure, as a claim that measured values meet or do not meet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isnan, nan
from typing import Literal, Protocol

from headgate.experiments.number_text import number_text

Verdict = Literal["yes", "partly", "no"]
Value = float | int | str


@dataclass(frozen=True)
class Values:
    """The values of a figure for one seed, or their means.

    Args:
        by_place: by panel, label of the curve and axis, the value at each x.
        x: by panel, the values of the x axis that were run.
    """

    by_place: Mapping[tuple[int, str, str], Sequence[float]]
    x: Sequence[Sequence[Value]]

    def places(self, panel: int, x: Value | None) -> list[int]:
        """Return the position of an x, or all positions; none if this x was not run."""
        values = self.x[panel]
        if x is None:
            return list(range(len(values)))
        return [place for place, value in enumerate(values) if value == x]

    def value(self, panel: int, label: str, place: int, axis: str = "y") -> float:
        values = self.by_place.get((panel, label, axis), ())
        return values[place] if place < len(values) else nan


class Claim(Protocol):
    """A condition on the values of a figure, such as that one curve is the lowest."""

    @property
    def panel(self) -> int:
        """The panel that it is about, from 0."""
        ...

    def holds(self, values: Values) -> bool:
        """Return True if the values meet the claim; False if a value is missing."""
        ...

    def measured(self, values: Values) -> str:
        """Return the values that decide."""
        ...


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement of the paper in our words.

    Args:
        claims: the statement holds if all of these do.
        why: the reason why it does not hold here, if it does not.
    """

    text: str
    claims: tuple[Claim, ...]
    why: str = ""

    def verdict(self, by_seed: Sequence[Values], mean: Values) -> Verdict:
        """Return yes if the claims hold in every seed, partly if only in the mean, else no."""
        if all(claim.holds(values) for values in by_seed for claim in self.claims):
            return "yes"
        return "partly" if all(claim.holds(mean) for claim in self.claims) else "no"

    def measured(self, mean: Values) -> str:
        return "; ".join(dict.fromkeys(claim.measured(mean) for claim in self.claims))


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """One curve over another is between two bounds, at one x or at all.

    Args:
        of: the label of the curve, and perhaps its panel or axis.
        to: the label of the other curve; without it, the value itself is bounded.
        at: the x; at all if None.
        other_at: the x of the other curve, if not the same.
    """

    of: str
    to: str = ""
    least: float = -inf
    most: float = inf
    at: Value | None = None
    other_at: Value | None = None
    panel: int = 0
    other_panel: int | None = None
    axis: str = "y"

    def ratios(self, values: Values) -> list[float]:
        """Return the ratio at each place of the claim."""
        ratios = []
        other_panel = self.panel if self.other_panel is None else self.other_panel
        for place in values.places(self.panel, self.at):
            divisor = 1.0
            if self.to:
                other = place
                if self.other_at is not None:
                    other = next(iter(values.places(other_panel, self.other_at)), -1)
                divisor = nan if other < 0 else values.value(other_panel, self.to, other, self.axis)
            value = values.value(self.panel, self.of, place, self.axis)
            ratios.append(value / divisor if divisor else nan)
        return ratios

    def holds(self, values: Values) -> bool:
        ratios = self.ratios(values)
        return bool(ratios) and all(self.least <= ratio <= self.most for ratio in ratios)

    def measured(self, values: Values) -> str:
        ratios = self.ratios(values)
        what = f"{self.of} / {self.to}" if self.to else self.of
        where = "" if self.at is None else f" at {self.at}"
        return f"{what}{where}: {_span(ratios)}"


def lower(
    label: str, other: str, by: float, *, x: Value | None = None, within: float = 0.1,
    panel: int = 0, axis: str = "y",
) -> Ratio:  # fmt: skip
    """Return the claim that a curve is lower than another by a share, within a tolerance."""
    least, most = 1 - by - within, min(1 - by + within, 1.0)
    return Ratio(of=label, to=other, least=least, most=most, at=x, panel=panel, axis=axis)


@dataclass(frozen=True, kw_only=True)
class Best:
    """A curve has the least (or the most) of all, up to a tolerance, at one x or at all.

    Args:
        among: the labels that it is compared with; all curves of the panel if empty.
    """

    label: str
    among: tuple[str, ...] = ()
    at: Value | None = None
    most: bool = False
    tolerance: float = 0.02
    panel: int = 0

    def _others(self, values: Values) -> list[str]:
        if self.among:
            return [label for label in self.among if label != self.label]
        return [
            label
            for panel, label, axis in values.by_place
            if panel == self.panel and axis == "y" and label != self.label
        ]

    def _pairs(self, values: Values) -> list[tuple[Value, float, str, float]]:
        """Return, for each place, x, our value, the best of the others and its value."""
        pairs = []
        for place in values.places(self.panel, self.at):
            others = {
                label: values.value(self.panel, label, place) for label in self._others(values)
            }
            others = {label: value for label, value in others.items() if not isnan(value)}
            if not others:
                continue
            rank = max if self.most else min
            best = rank(others, key=lambda label: others[label])
            value = values.value(self.panel, self.label, place)
            pairs.append((values.x[self.panel][place], value, best, others[best]))
        return pairs

    def _meets(self, value: float, other: float) -> bool:
        if self.most:
            return value >= other - self.tolerance * abs(other)
        return value <= other + self.tolerance * abs(other)

    def holds(self, values: Values) -> bool:
        pairs = self._pairs(values)
        return bool(pairs) and all(self._meets(value, other) for _, value, _, other in pairs)

    def measured(self, values: Values) -> str:
        pairs = self._pairs(values)
        beaten = [pair for pair in pairs if not self._meets(pair[1], pair[3])]
        x, value, best, other = (beaten or pairs or [("", nan, "no other", nan)])[-1]
        where = f"best at {len(pairs) - len(beaten)} of {len(pairs)} x values"
        return f"{self.label}: {where}; at {x} {number_text(value)}, {best} {number_text(other)}"


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """Curves in ascending order at one x or at all: each at most the next, up to a tolerance."""

    labels: tuple[str, ...]
    at: Value | None = None
    tolerance: float = 0.02
    panel: int = 0
    axis: str = "y"

    def holds(self, values: Values) -> bool:
        places = values.places(self.panel, self.at)
        rows = [self._row(values, place) for place in places]
        return bool(rows) and all(
            one <= other + self.tolerance * abs(other)
            for row in rows
            for one, other in pairwise(row)
        )

    def _row(self, values: Values, place: int) -> list[float]:
        return [values.value(self.panel, label, place, self.axis) for label in self.labels]

    def measured(self, values: Values) -> str:
        places = values.places(self.panel, self.at)
        if not places:
            return f"{self.at} was not run"
        row = self._row(values, places[-1])
        parts = (
            f"{label} {number_text(value)}" for label, value in zip(self.labels, row, strict=True)
        )
        return f"at {values.x[self.panel][places[-1]]}: " + ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A curve, or its ratio to another, rises or falls from one x to another.

    Args:
        minus: the curve that is subtracted, instead of a ratio.
        by: the least factor (or, if it falls, the least divisor) between the two.
        steadily: whether it must go in this direction at every step, up to the tolerance.
    """

    of: str
    to: str = ""
    minus: str = ""
    rises: bool = True
    by: float = 1.0
    most: float = inf
    steadily: bool = False
    tolerance: float = 0.02
    since: Value | None = None
    until: Value | None = None
    panel: int = 0

    def _line(self, values: Values) -> list[float]:
        places = values.places(self.panel, None)
        first = values.places(self.panel, self.since) if self.since is not None else places
        last = values.places(self.panel, self.until) if self.until is not None else places
        if not first or not last:
            return []
        line = []
        for place in range(first[0], last[-1] + 1):
            divisor = values.value(self.panel, self.to, place) if self.to else 1.0
            value = values.value(self.panel, self.of, place)
            if self.minus:
                value -= values.value(self.panel, self.minus, place)
            line.append(value / divisor if divisor else nan)
        return line if self.rises else line[::-1]

    def holds(self, values: Values) -> bool:
        line = self._line(values)
        if len(line) < 2:
            return False
        factor = line[-1] / line[0] if line[0] else inf
        grows = self.by <= factor <= self.most
        steps = pairwise(line)
        return grows and (
            not self.steadily or all(b >= a - self.tolerance * abs(a) for a, b in steps)
        )

    def measured(self, values: Values) -> str:
        line = self._line(values)
        if len(line) < 2:
            return "the two x values were not run"
        ends = line if self.rises else line[::-1]
        what = f"{self.of} / {self.to}" if self.to else self.of
        what = f"{what} − {self.minus}" if self.minus else what
        return f"{what} from {number_text(ends[0])} to {number_text(ends[-1])}"


@dataclass(frozen=True, kw_only=True)
class MeanOverTime:
    """The means of curves over all instants are in ascending order.

    Args:
        labels: ascending: the first has the least mean. With one label: less than all others.
    """

    labels: tuple[str, ...]
    panel: int = 0
    tolerance: float = 0.02

    def _means(self, values: Values) -> dict[str, float]:
        means = {}
        for panel, label, axis in values.by_place:
            if panel == self.panel and axis == "y":
                line = [value for value in values.by_place[panel, label, axis] if not isnan(value)]
                means[label] = sum(line) / len(line) if line else nan
        return means

    def holds(self, values: Values) -> bool:
        means = self._means(values)
        row = [means.get(label, nan) for label in self.labels]
        if len(row) == 1:
            row.append(min(value for label, value in means.items() if label not in self.labels))
        return all(one <= other + self.tolerance * abs(other) for one, other in pairwise(row))

    def measured(self, values: Values) -> str:
        means = sorted(self._means(values).items(), key=lambda pair: pair[1])
        return "mean over time: " + ", ".join(
            f"{label} {number_text(value)}" for label, value in means
        )


@dataclass(frozen=True, kw_only=True)
class Reaches:
    """One curve over another, or a curve itself, reaches a bound at some x."""

    of: str
    to: str = ""
    least: float
    panel: int = 0

    def holds(self, values: Values) -> bool:
        return any(ratio >= self.least for ratio in self._ratios(values))

    def _ratios(self, values: Values) -> list[float]:
        return Ratio(of=self.of, to=self.to, panel=self.panel).ratios(values)

    def measured(self, values: Values) -> str:
        pairs = zip(values.x[self.panel], self._ratios(values), strict=True)
        parts = ", ".join(f"{number_text(ratio, 3)} at {x}" for x, ratio in pairs)
        what = f"{self.of} / {self.to}" if self.to else self.of
        return f"{what}: {parts}"


def _span(numbers: Sequence[float]) -> str:
    if not numbers:
        return "not run"
    low, high = min(numbers), max(numbers)
    texts = dict.fromkeys((number_text(low, 3), number_text(high, 3)))
    return " to ".join(texts)
