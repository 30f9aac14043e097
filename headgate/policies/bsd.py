"""Balance slowdown, and cheap ways to find the next unit (Sharaf §3.2.2, §3.3.2)."""

from collections.abc import Sequence
from math import inf, nan
from typing import Any, Literal, get_args

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import Step
from headgate.policies.interface import Selection, State
from headgate.policies.priority import PriorityPolicy
from headgate.policies.registry import register
from headgate.policies.structures import clusters as kernels
from headgate.policies.structures import single_units
from headgate.policies.structures.fagin import two_lists
from headgate.policies.wait import balanced_slowdown

Search = Literal["exact", "uniform", "log", "fagin", "fagin-units"]
OVER_UNITS = ("exact", "fagin-units")


@register(
    "bsd",
    objective="ℓ2 norm of slowdown",
    paper="Sharaf eq 3.7, §3.3.2",
    use="Mean and worst slowdown both matter: a good first choice for mixed queries.",
    avoid="The overload lasts: a query of small S / (C̄ T²) then waits until it ends.",
)
class BalancedSlowdown(PriorityPolicy):
    """Normalized rate times the slowdown so far: S W / (C̄ T²) (Sharaf eq 3.7).

    The thesis says that it avoids starvation. That holds once the load falls below what the machine
    can do. While an overload lasts, all waits grow alike, and a unit of small S / (C̄ T²) is not
    served.

    The priority is Φ W, and only W changes. `exact` computes it for all units that wait. `log` and
    `uniform` put units of similar Φ into clusters: a cluster has one pseudo priority, the lower end
    of its range of Φ over the smallest Φ, and the W of its oldest tuple. The cluster of the largest
    product runs the unit with its oldest tuple (§3.3.2.1). The thesis gives ε^i, the lower end, for
    logarithmic clusters. For uniform clusters neither the thesis nor Aurora gives a number, so
    these use the lower end too. `fagin` finds the same cluster as `log`, but looks only at clusters
    that can be best (§3.3.2.2). `fagin-units` does the same for single units, and decides as
    `exact` does. All ties go to the smaller unit number. A unit with Φ = 0, or not measured yet,
    has priority 0.

    Args:
        search: how the next unit is found.
        clusters: m, at most 1024. The thesis finds 12 best.
        epsilon: ε, instead of `clusters`, for logarithmic clusters. There are log Δ / log ε of
            them, where Δ is the largest Φ over the smallest, and again at most 1024.
        clustered: once a cluster is chosen, all its units that wait on the same tuple run before
            the next decision (§3.3.2.3). Tuples of the same instant count as the same.
    """

    def __init__(
        self,
        search: Search = "exact",
        clusters: int = 12,
        epsilon: float | None = None,
        clustered: bool = False,
    ) -> None:
        if search not in get_args(Search):
            raise ValueError("search: one of " + ", ".join(get_args(Search)))
        if not isinstance(clusters, int) or not 1 <= clusters <= kernels.MOST_CLUSTERS:
            raise ValueError(f"clusters from 1 to {kernels.MOST_CLUSTERS}")
        if epsilon is not None and not 1.0 < epsilon < inf:
            raise ValueError("epsilon above 1")
        if epsilon is not None and search not in ("log", "fagin"):
            raise ValueError("epsilon only with logarithmic clusters: search of log or fagin")
        if clustered and search in OVER_UNITS:
            raise ValueError("clustered only with clusters: search of uniform, log or fagin")
        super().__init__(balanced_slowdown, "wait")
        self.search, self.clusters, self.clustered = search, clusters, bool(clustered)
        self.epsilon = epsilon
        self.plans_live = search not in OVER_UNITS  # each new figure divides all units again
        self._set, self._set_head_s = np.zeros(0, dtype=np.int64), nan
        self._offered, self._offered_head_s = self._set, nan
        self._clusters: Ints | None = None

    def prepare(self, units: Units) -> None:
        super().prepare(units)
        self._offered = self._set = np.zeros(0, dtype=np.int64)
        self._clusters = None

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        if self.search in OVER_UNITS or not len(state.ready):
            return super().plan(state, now_s)
        order, clusters = self._oldest_of_best_cluster_first(state, now_s)
        if self.clustered:
            order = self._with_the_set_first(order, clusters, state)
        return [Step(int(unit)) for unit in order]

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        super().hear(event)
        if isinstance(event, StepStarted) and event.call.units[0] in self._offered:
            passed = np.flatnonzero(np.isin(self._offered, event.call.units))
            self._set = self._offered[passed[-1] + 1 :]
            self._set_head_s = self._offered_head_s

    def may_fuse(self, table: UnitTable, unit: int, other: int) -> bool:
        if not self.clustered:
            return True
        if self._clusters is None:
            return unit in self._offered and other in self._offered
        same = table["head_arrived_at_s"][unit] == table["head_arrived_at_s"][other]
        return bool(same and self._clusters[unit] == self._clusters[other])

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        if learns and self._shared and (units.level == "operator" or units.rebuilds_trees):
            return None  # the value of a shared unit follows what is measured of all boxes behind
        phi = self._after_a_second(table, np.arange(len(table)))
        changes = np.full(len(table), learns)
        changes[list(self._shared)] = False
        figures = single_units.measured(phi, changes, self.function)
        if self.search == "exact":
            memory = single_units.scanned(figures)
            return Selection(memory, single_units.scan_changed, single_units.scan_pick)
        if self.search == "fagin-units":
            memory = single_units.pruned(figures)
            return Selection(memory, single_units.pruned_changed, single_units.pruned_pick)
        division, begins, cluster_of = self._divided(phi)
        self._clusters = cluster_of  # the kernels move a unit when its figures change
        memory = kernels.clustered(division, begins, cluster_of)
        learning = figures, begins, cluster_of
        if self.search != "fagin":
            if not learns:
                return Selection(memory, kernels.cluster_changed, kernels.cluster_pick)
            changed, pick = kernels.learning_cluster_changed, kernels.learning_cluster_pick
            return Selection((memory, learning), changed, pick)
        pruned = memory, two_lists(np.arange(len(begins))[::-1])
        if not learns:
            return Selection(pruned, kernels.fagin_changed, kernels.fagin_pick)
        changed, pick = kernels.learning_fagin_changed, kernels.learning_fagin_pick
        return Selection((pruned, learning), changed, pick)

    def _after_a_second(self, table: UnitTable, chosen: Any) -> Floats:
        values = super()._after_a_second(table, chosen)
        return np.where((values > 0) & (values < inf), values, 0.0)

    def _divided(self, phi: Floats) -> tuple[Any, Floats, Ints]:
        """Return the division into clusters, where each begins, and the cluster of each unit."""
        division, begins, cluster_of = kernels.division_of(
            len(phi),
            uniform=self.search == "uniform",
            clusters=self.clusters,
            epsilon=nan if self.epsilon is None else self.epsilon,
            together=self.clustered,
        )
        kernels.divide(phi, division, begins, cluster_of)
        return division, begins, cluster_of

    def _oldest_of_best_cluster_first(self, state: State, now_s: float) -> tuple[Ints, Ints]:
        """Return the ready units, best cluster first and oldest first in it, and their clusters."""
        table, ready = state.table, state.ready
        phi = self._after_a_second(table, np.arange(len(table)))
        _, pseudo, cluster_of = self._divided(phi)
        heads_s, clusters = table["head_arrived_at_s"][ready], cluster_of[ready]
        oldest = np.lexsort((ready, heads_s, clusters))
        waiting, first = np.unique(clusters[oldest], return_index=True)
        fronts = oldest[first]
        values = pseudo[waiting] * (now_s - heads_s[fronts])
        rank = np.zeros(len(pseudo), dtype=np.int64)
        rank[waiting[np.lexsort((ready[fronts], -values))]] = np.arange(len(waiting))
        order = np.lexsort((ready, heads_s, rank[clusters]))
        return ready[order], clusters[order]

    def _with_the_set_first(self, order: Ints, clusters: Ints, state: State) -> Ints:
        """Put the rest of the set that was begun first; if none is left, offer a new set.

        A set is the units of a cluster that wait on the same tuple (§3.3.2.3). The new one is of
        the first cluster.
        """
        heads_s = state.table["head_arrived_at_s"]
        left = self._set[np.isin(self._set, order) & (heads_s[self._set] == self._set_head_s)]
        if len(left):
            self._offered, self._offered_head_s = self._set, self._set_head_s
            return np.concatenate([left, order[~np.isin(order, left)]])
        same = (clusters == clusters[0]) & (heads_s[order] == heads_s[order[0]])
        self._offered, self._offered_head_s = order[same], float(heads_s[order[0]])
        return order
