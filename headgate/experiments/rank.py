"""Claims about the rank of a curve among all curves of its panel."""

from dataclasses import dataclass
from math import isnan
from statistics import median

from headgate.experiments.number_text import number_text
from headgate.experiments.statement import Values


@dataclass(frozen=True, kw_only=True)
class Often:
    """A curve over time is lower than all others at a share of the instants, or at more."""

    label: str
    share: float = 0.5
    panel: int = 0

    def holds(self, values: Values) -> bool:
        return self._share(values) >= self.share

    def measured(self, values: Values) -> str:
        return f"{self.label}: lowest at {number_text(100 * self._share(values), 3)} % of instants"

    def _share(self, values: Values) -> float:
        wins = [value < min(others) for value, others in _rows(values, self.panel, self.label)]
        return sum(wins) / len(wins) if wins else 0.0


@dataclass(frozen=True, kw_only=True)
class NoWorseThanMedian:
    """A curve is at most the median of the others (or at least, if `most`), up to a tolerance."""

    label: str
    most: bool = False
    tolerance: float = 0.02
    panel: int = 0

    def holds(self, values: Values) -> bool:
        rows = _rows(values, self.panel, self.label)
        sign = -1.0 if self.most else 1.0
        return bool(rows) and all(
            sign * (value - median(others)) <= self.tolerance * abs(median(others))
            for value, others in rows
        )

    def measured(self, values: Values) -> str:
        pairs = (
            f"{number_text(value)}, median {number_text(median(others))}"
            for value, others in _rows(values, self.panel, self.label)
        )
        return f"{self.label} " + "; ".join(pairs)


def _rows(values: Values, panel: int, label: str) -> list[tuple[float, list[float]]]:
    """Return the value of a curve and those of the others at every x where all have one."""
    rows = []
    labels = [name for number, name, axis in values.by_place if (number, axis) == (panel, "y")]
    for place in values.places(panel, None):
        by_label = {name: values.value(panel, name, place) for name in labels}
        if not any(map(isnan, by_label.values())):
            value = by_label.pop(label)
            rows.append((value, list(by_label.values())))
    return rows
