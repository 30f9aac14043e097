"""The options of a simulation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.plan import ALL


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The options of a simulation.

    Args:
        train_tuples, train_fraction, train_cost_s, train_bytes, train_spread_s: the limits of a
            train: tuples, fraction of the queue, expected seconds, bytes, and seconds between the
            arrivals of its first and last tuple (Aurora §4.2).
        storage_s: seconds for an access to the storage manager; one per call, or per superbox.
        decision_s, examine_s: seconds for a decision, and for every priority computed for it.
        visit_s: seconds for every empty unit that a round robin visits before the one that it runs.
        poll_s: seconds for every poll of sources by a class without tuples (CQC §4.2).
        switch_s: seconds per box of the network, paid when a call runs another box than the last
            call; with round robin over boxes this is the cost of one thread per box (Aurora §3).
        fluid: a tuple is never dropped; a fraction s of it goes on, at a fraction s of the cost.
        learns: selectivities are measured during the run; else those of the network are used.
        smoothing, window_tuples: α and the window of that measurement (Sharaf §3.8.5).
        tuple_costs: by box or query name, the cost of each tuple of the stream in seconds.
        fates: by query name, 1 for each tuple that passes and 0 for the others.
        selectivities: by box name, the selectivity in each interval of `interval_s`.
        preloaded: by box name, how many tuples wait there at the start.
        idle_waiting: ordered unions wait for the next tuple of an empty input (BZ §4.1).
        keep: record every response time.
    """

    seed: int = 0
    workers: int = 1
    train_tuples: int = ALL
    train_fraction: float = 1.0
    train_cost_s: float = inf
    train_bytes: float = inf
    train_spread_s: float = inf
    storage_s: float = 0.0
    decision_s: float = 0.0
    examine_s: float = 0.0
    switch_s: float = 0.0
    visit_s: float = 0.0
    poll_s: float = 0.0
    fluid: bool = False
    learns: bool = False
    smoothing: float = 0.175
    window_tuples: int = 100
    foresight: bool = False
    tuple_costs: Mapping[str, Floats] = field(default_factory=dict)
    fates: Mapping[str, Sequence[int]] = field(default_factory=dict)
    selectivities: Mapping[str, Floats] = field(default_factory=dict)
    interval_s: float = inf
    preloaded: Mapping[str, int] = field(default_factory=dict)
    idle_waiting: bool = False
    keep: bool = False

    def __post_init__(self) -> None:
        for key in ("workers", "train_tuples", "window_tuples"):
            self._check(key, getattr(self, key) >= 1, "1 or more")
        self._check("train_fraction", 0 < self.train_fraction <= 1, "above 0 and at most 1")
        self._check("smoothing", 0 <= self.smoothing <= 1, "between 0 and 1")
        for key in ("train_cost_s", "train_bytes", "interval_s"):
            self._check(key, getattr(self, key) > 0, "above 0")
        charges = ("storage_s", "decision_s", "examine_s", "switch_s", "visit_s", "poll_s")
        for key in (*charges, "train_spread_s"):
            self._check(key, getattr(self, key) >= 0, "0 or more")

    def _check(self, key: str, holds: bool, expected: str) -> None:
        if not holds:
            value = getattr(self, key)
            raise ConfigRefused(path="simulation", key=key, value=value, expected=expected)
