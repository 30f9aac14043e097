"""The QoS monitor: what queries delivered lately, compared with what was asked (Aurora §2.2)."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from headgate.model.arrays import Bools, Floats, Ints, moved
from headgate.model.events import StepFinished
from headgate.model.network.network import Network, Path
from headgate.model.network.unit_table import UnitTable

SPANS = 30
"""Results of so many seconds count."""

IN_TIME, IN_TIME_AGAIN = 0.9, 0.95
"""The share of results that must keep their deadline: below the first, QoS is poor; from the second
on it is acceptable again."""

USEFUL, USEFUL_AGAIN = 0.8, 0.9
"""The same for the mean utility by a QoS graph, relative to that with nobody else running."""

FAST_AGAIN = 0.8
"""From this share of a class's `target_s` on, its mean response is acceptable again."""

COUNT, RESPONSES_S, PROMPT, WORTH = range(4)
"""What is added up: results, response times, results within the deadline, utilities."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is delivered below what was asked, in words; and whether all is well, with a margin."""

    poor: str = ""
    acceptable: bool = True


class QoSMonitor:
    """What each unit delivered in the last 30 s, against `target_s`, deadlines and QoS graphs.

    What the measured costs cannot meet even with nobody else running does not count, as no drop
    would help (`infeasible`).
    """

    def __init__(self, network: Network, table: UnitTable) -> None:
        self._span = 0
        self._sums = np.zeros((SPANS, WORTH + 1, len(table)))
        self.change(network, table)

    def change(self, network: Network, table: UnitTable, before: Ints | None = None) -> None:
        """Follow a network that has changed.

        Args:
            before: for each unit, its row before; −1 for a new one.
        """
        if before is not None:
            self._sums = moved(self._sums, before)
        self._network, self._table = network, table
        ends = [path.into is None for path in network.paths]
        self._deadlines_s = [
            asked_deadline_s(path) if end else None
            for path, end in zip(network.paths, ends, strict=True)
        ]
        self._graphs = [
            path.query.qos if end else None for path, end in zip(network.paths, ends, strict=True)
        ]
        self._members = [
            [unit for unit, path in enumerate(network.paths)
             if ends[unit] and path.query.query_class == query_class.name]
            for query_class in network.classes
        ]  # fmt: skip

    def hear(self, step: StepFinished) -> None:
        """Add the results of a call, in which units are rows."""
        self._pass(step.at_s)
        sums = self._sums[self._span % SPANS]
        for place, unit in enumerate(step.call.units):
            responses_s = step.scheduled_s(place)  # no drop helps against idle waiting
            if not len(responses_s):
                continue
            sums[COUNT, unit] += len(responses_s)
            sums[RESPONSES_S, unit] += responses_s.sum()
            if (deadline_s := self._deadlines_s[unit]) is not None:
                sums[PROMPT, unit] += np.count_nonzero(responses_s <= deadline_s)
            if (graph := self._graphs[unit]) is not None:
                sums[WORTH, unit] += np.interp(
                    responses_s, graph.latencies_s, graph.utilities
                ).sum()

    def add(self, at_s: float, sums: Floats) -> None:
        """Add what a simulation has counted: by row of COUNT, RESPONSES_S, ..., a sum per unit."""
        self._pass(at_s)
        self._sums[self._span % SPANS] += sums

    def judge(self, now_s: float, active: Bools | None = None) -> Judgement:
        """Return what is delivered below what was asked.

        Args:
            active: by unit, whether it runs; None if all do. Nothing is asked of the others.
        """
        self._pass(now_s)
        sums = self._sums.sum(axis=0)
        poor, acceptable = "", True
        for words, good, fine in self._checks(sums, now_s, active):
            poor = poor or ("" if good else words)
            acceptable &= fine
        return Judgement(poor, acceptable)

    def _checks(
        self, sums: Floats, now_s: float, active: Bools | None
    ) -> list[tuple[str, bool, bool]]:
        """Return, for all that was asked: a text, whether it is met, and whether with a margin."""
        checks: list[tuple[str, bool, bool]] = []
        table = self._table
        runs = np.ones(len(table), dtype=np.bool_) if active is None else active
        for query_class, all_members in zip(self._network.classes, self._members, strict=True):
            target_s = query_class.target_s
            members = [unit for unit in all_members if runs[unit]]
            if target_s is not None and members and self._can(members, target_s):
                mean_s = self._mean_s(sums, members, now_s)
                words = f"class {query_class.name} has a mean response of {mean_s:.3g} s,"
                words += f" and {target_s:g} s was asked"
                checks.append((words, mean_s <= target_s, mean_s <= FAST_AGAIN * target_s))
        for unit, path in enumerate(self._network.paths):
            if not runs[unit]:
                continue
            name, ideal_s = path.query.name, float(table["ideal_s"][unit])
            deadline_s, graph = self._deadlines_s[unit], self._graphs[unit]
            if deadline_s is not None and ideal_s <= deadline_s:
                share = self._share(sums, PROMPT, unit, now_s, deadline_s)
                words = f"query '{name}' keeps its deadline for {share:.0%} of its results"
                checks.append((words, share >= IN_TIME, share >= IN_TIME_AGAIN))
            if graph is not None and isfinite(ideal_s):
                best = graph.utility(ideal_s)
                utility = sums[WORTH, unit] / sums[COUNT, unit] if sums[COUNT, unit] else best
                words = f"query '{name}' delivers a QoS of {utility:.2f}"
                checks.append((words, utility >= USEFUL * best, utility >= USEFUL_AGAIN * best))
        return checks

    def _can(self, units: list[int], target_s: float) -> bool:
        """Return True if the units would keep a target with nobody else running."""
        ideals_s = self._table["ideal_s"][units]
        return float(np.nan_to_num(ideals_s).mean()) <= target_s

    def _mean_s(self, sums: Floats, units: list[int], now_s: float) -> float:
        """Return the mean response of units; where nothing comes out, the age of what waits."""
        count = sums[COUNT, units].sum()
        if count:
            return float(sums[RESPONSES_S, units].sum() / count)
        return max(0.0, now_s - float(self._table["head_arrived_at_s"][units].min()))

    def _share(self, sums: Floats, what: int, unit: int, now_s: float, deadline_s: float) -> float:
        count = sums[COUNT, unit]
        if count:
            return float(sums[what, unit] / count)
        waits_s = now_s - float(self._table["head_arrived_at_s"][unit])
        return 0.0 if waits_s > deadline_s else 1.0

    def _pass(self, at_s: float) -> None:
        """Go on to the second of an instant; forget what is 30 seconds old."""
        span = int(at_s)
        if span > self._span:
            first = max(self._span + 1, span - SPANS + 1)
            for number in range(first, span + 1):
                self._sums[number % SPANS] = 0.0
            self._span = span


def infeasible(network: Network, table: UnitTable, unit: int) -> str:
    """Return what is asked of a unit that its costs cannot meet even alone; empty if nothing is."""
    path, ideal_s = network.paths[unit], float(table["ideal_s"][unit])
    if path.into is not None or not isfinite(ideal_s):
        return ""
    query, targets = path.query, {c.name: c.target_s for c in network.classes}
    target_s = targets.get(query.query_class)
    alone = f"a result takes {ideal_s:.3g} s with nobody else running"
    deadline_s = asked_deadline_s(path)
    if deadline_s is not None and ideal_s > deadline_s:
        return f"its deadline_s is {deadline_s:g}, but {alone}"
    if target_s is not None and ideal_s > target_s:
        return f"target_s of class {query.query_class} is {target_s:g}, but {alone}"
    if query.qos is not None and (best := query.qos.utility(ideal_s)) < 1:
        return f"its QoS is {best:.2f} at best: {alone}"
    return ""


def asked_deadline_s(path: Path) -> float | None:
    """Return the deadline that a user has set; a query over windows has their slide by itself."""
    windows, deadline_s = path.kind.windows, path.query.deadline_s
    of_windows = windows and windows[0].slide is not None and deadline_s == windows[0].slide / 1e6
    return None if of_windows else deadline_s
