"""An outlook: what each of several policies would achieve within a horizon."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outlook:
    """The metrics of each candidate in several random futures, the same ones for all candidates.

    Args:
        at_s: the instant of the state from which the candidates ran ahead.
        values: by candidate and future, the metrics of `performance.METRICS` by name. Tuples that
            still wait at the end count as if they left then.
    """

    at_s: float
    horizon_s: float
    values: tuple[tuple[Mapping[str, float], ...], ...]
