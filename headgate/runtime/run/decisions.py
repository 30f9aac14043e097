"""What decided each call: the policy, its quotas, and the rows of the units that waited."""

import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from headgate.model.arrays import Ints
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UNIT, UnitTable
from headgate.model.plan import BoxCall
from headgate.policies import Policy
from headgate.policies.interface import Ranking

WORDS = UNIT.itemsize // 8
BLOCKS_A_PAGE = 500
"""After so many blocks all rows are stored again, so that older pages can be dropped whole."""

DECISION_BYTES, BLOCK_BYTES = 500, 300
"""What a decision and a block take beside their rows, at most."""


RankingOf = Callable[[str], Ranking | None]
"""Returns the policy that ranked units, from the text of the policy in charge."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The account of a class under `cqc` at a decision."""

    granted_s: float
    used_s: float


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a call was chosen, and over which rows.

    Args:
        policy: as it was written.
        ranking: the policy whose priorities order units; None if the policy orders them otherwise,
            or if the call measures a new query.
        measures: whether the call measures a query without statistics, whatever the policy.
        quotas: by class, under `cqc`.
        places: by id of a unit, its row then.
    """

    number: int
    at_s: float
    policy: str
    ranking: Ranking | None
    measures: bool
    quotas: Mapping[str, Quota]
    places: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that have changed since the block before, compressed."""

    number: int
    units: Ints
    data: bytes

    def row(self, unit: int) -> Any:
        """Return the row of a unit; None if the block does not have it."""
        place = int(np.searchsorted(self.units, unit))
        if place == len(self.units) or self.units[place] != unit:
            return None
        return np.frombuffer(zlib.decompress(self.data), dtype=UNIT)[place]

    @property
    def size_bytes(self) -> int:
        return BLOCK_BYTES + len(self.data) + self.units.nbytes


@dataclass(slots=True)
class Page:
    """Blocks of one network. The first one in which a unit occurs has its whole row."""

    places: Mapping[int, int]
    class_priorities: Sequence[float]
    first: int
    stored: Any
    blocks: list[Block] = field(default_factory=list)

    def row(self, call: int, unit: int) -> Any:
        """Return the row of a unit that a decision saw; None if the unit did not wait then."""
        for block in reversed(list(self.blocks)):  # at once: the loop's thread adds blocks
            if block.number <= call and (row := block.row(unit)) is not None:
                return row
        return None


class Decisions:
    """The decisions of the run, by number of the call, until they are forgotten.

    A row is stored when a decision sees it changed, so that the priority of any unit that waited
    can be computed again from what the policy saw.
    """

    def __init__(self) -> None:
        self._decisions: OrderedDict[int, Decision] = OrderedDict()
        self._pages: deque[Page] = deque()
        self.size_bytes = 0

    def note(
        self,
        call: BoxCall,
        policy: Policy,
        visible: UnitTable | None,
        waiting: Ints,
        network: Network,
        now_s: float,
    ) -> None:
        """Take note of a decision, just after it.

        Args:
            call: with rows for ids.
            policy: the one that has decided.
            visible: the table that it saw; None if it was not asked.
            waiting: the units that stay ready.
        """
        quotas = {
            network.classes[number].name: Quota(*seconds)
            for number, seconds in policy.quotas().items()
        }
        ranking = None if visible is None else policy.ranking(now_s)
        self._decisions[call.number] = Decision(
            call.number, now_s, policy.spelled or policy.name, ranking, visible is None, quotas,
            network.places,
        )  # fmt: skip
        self.size_bytes += DECISION_BYTES
        if visible is not None and ranking is not None and len(waiting):
            chosen = np.array(call.units)
            self._store(call.number, np.sort(np.append(waiting, chosen)), chosen, visible, network)

    def of(self, call: int) -> Decision | None:
        """Return the decision for a call; None if it is forgotten."""
        return self._decisions.get(call)

    def priority(self, call: int, number: int) -> float | None:
        """Return the priority of a unit, by its id, at the decision for a call.

        It is computed from the recorded row by the policy's compiled function. None: the policy
        does not rank by priorities, or the unit did not wait then.
        """
        decision = self.of(call)
        if decision is None or decision.ranking is None:
            return None
        unit = decision.places.get(number)
        page = self._page(call)
        row = None if unit is None or page is None else page.row(call, unit)
        if unit is None or page is None or row is None or not np.isfinite(row["head_arrived_at_s"]):
            return None
        value = decision.ranking.priority_of(row, unit, decision.at_s, page.class_priorities)
        return value if -inf < value < inf else None

    def forget(self, first: int) -> None:
        """Forget all decisions before a call."""
        while self._decisions and next(iter(self._decisions)) < first:
            self._decisions.popitem(last=False)
            self.size_bytes -= DECISION_BYTES
        while len(self._pages) > 1 and self._pages[1].first <= first:
            page = self._pages.popleft()
            self.size_bytes -= page.stored.nbytes + sum(block.size_bytes for block in page.blocks)

    def to_dict(self, encoded: Callable[[bytes], str]) -> dict[str, Any]:
        """Return all of it as plain data, as `CallLog.to_dict`."""
        decisions = [
            [entry.number, entry.at_s, entry.policy, entry.ranking is not None, entry.measures,
             {name: [quota.granted_s, quota.used_s] for name, quota in entry.quotas.items()}]
            for entry in self._decisions.values()
        ]  # fmt: skip
        pages = [
            [page.first, list(page.places.items()), page.class_priorities,
             [[block.number, block.units.tolist(), encoded(block.data)] for block in page.blocks]]
            for page in self._pages
        ]  # fmt: skip
        return {"decisions": decisions, "pages": pages}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], decoded: Callable[[str], bytes], ranking: RankingOf
    ) -> "Decisions":
        """Return the decisions whose `to_dict` this is."""
        result, nothing = cls(), np.zeros((0, WORDS), dtype=np.uint64)
        for first, places, priorities, blocks in data["pages"]:
            page = Page(dict(places), priorities, first, nothing)
            page.blocks = [
                Block(number, np.array(units, dtype=np.int32), decoded(text))
                for number, units, text in blocks
            ]
            result._pages.append(page)
        for number, at_s, policy, ranks, measures, quotas in data["decisions"]:
            by_class = {name: Quota(*values) for name, values in quotas.items()}
            page_of = result._page(number)
            result._decisions[number] = Decision(
                number, at_s, policy, ranking(policy) if ranks else None, measures, by_class,
                {} if page_of is None else page_of.places,
            )  # fmt: skip
        return result

    def _page(self, call: int) -> Page | None:
        """Return the page with the rows that a decision saw."""
        pages = reversed(list(self._pages))  # at once: the loop's thread adds pages
        return next((page for page in pages if page.first <= call), None)

    def _store(
        self, number: int, units: Ints, chosen: Ints, visible: UnitTable, network: Network
    ) -> None:
        page, places = self._pages[-1] if self._pages else None, network.places
        if page is None or page.places is not places or len(page.blocks) >= BLOCKS_A_PAGE:
            priorities = [query_class.priority for query_class in network.classes]
            page = Page(
                places, priorities, number, np.zeros((len(visible), WORDS), dtype=np.uint64)
            )
            if self._pages:  # only the last page is compared with
                last = self._pages[-1]
                self.size_bytes -= last.stored.nbytes
                last.stored = np.zeros((0, WORDS), dtype=np.uint64)
            self._pages.append(page)
            self.size_bytes += page.stored.nbytes
        words = visible.view(np.uint64).reshape(-1, WORDS)
        # Units that were chosen are compared with their rows after the choice, and so stored again.
        changed = units[(page.stored[units] != words[units]).any(axis=1)]
        if not len(changed):
            return
        rows = visible[changed]
        rows["ready"][np.isin(changed, chosen)] = True  # they were, when it was decided
        page.stored[changed] = rows.view(np.uint64).reshape(-1, WORDS)
        data = zlib.compress(rows.tobytes(), 1)
        block = Block(number, changed.astype(np.int32), data)
        page.blocks.append(block)
        self.size_bytes += block.size_bytes
