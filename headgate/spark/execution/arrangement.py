"""The arrangement of queries: which share their code, and the plan that each one runs as."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from headgate.model.network.network import Path
from headgate.model.plan import Share
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.query.plans import Parts, Plan
from headgate.spark.output import numbered
from headgate.spark.sharing.constants_group import constants_group
from headgate.spark.sharing.group_plan import Prepared
from headgate.spark.sharing.mask_group import mask_group
from headgate.spark.sharing.sharing_plan import Member, Part, parts_of, shared_by
from headgate.spark.sharing.whole_query import WholeQuery
from headgate.spark.sinks.files.file_sink import FileSink

Order = tuple[int, ...] | None
"""The numbers of a query's conditions in the order chosen for them; None: as they are written."""


class Arrangement:
    """The plans of queries, alone and together; safe to use from several workers.

    Workers read the arrangement without a lock: a new one replaces the old one as a whole.

    A call may need only some of the queries that share their code. The shared code then runs for
    all of them and the other results are ignored: that is cheaper than separate code for every
    choice of members.

    Args:
        sinks: those of the queries; a text sink takes one column.
        share: between which queries equal parts run once.
    """

    def __init__(self, driver: DriverLane, sinks: Mapping[str, FileSink], share: Share) -> None:
        self._driver, self._sinks, self._share = driver, sinks, share
        self._shared: dict[str, Prepared] = {}
        self._alone: dict[str, tuple[object, Order, Prepared]] = {}
        self._arranging = threading.Lock()
        self._parts_by_query: dict[str, tuple[Path, Parts]] = {}
        self._orders: dict[str, Order] = {}
        self._arranged: list[Path] = []
        self._left_out: dict[str, object] = {}
        """By query that shares no code, its plan: the query of this name may be another later."""
        self._is_stale = False

    def arrange(self, paths: Iterable[Path], costly: Callable[[Path], bool]) -> None:
        """Decide again which queries share their code."""
        with self._arranging:
            self._arranged, self._costly = list(paths), costly
            for name in self._left_out.keys() - {path.query.name for path in self._arranged}:
                del self._left_out[name]
            self._rearrange()

    def _rearrange(self) -> None:
        """Replace the plans of groups; the caller holds the lock."""
        self._is_stale = False
        members = [
            Member(path, self._ordered(path))
            for path in self._arranged
            if not path.runs_whole and not self._is_left_out(path)
        ]
        shared: dict[str, Prepared] = {}
        for part in parts_of(members, self._costly, self._share):
            prepared = self._shared.get(part.names[0])
            if prepared is None or prepared.part != part:
                prepared = self._prepare(part)
            shared.update(dict.fromkeys(part.names, prepared))
        self._shared = shared

    def group_numbers(self, paths: Sequence[Path]) -> list[int]:
        """Return a number for each path, equal for paths that share their code or their answer."""
        numbers: dict[object, int] = {}
        twins, shared = self.twins(paths), self._shared
        return [
            numbers.setdefault(
                id(prepared) if prepared else self.group_key(path, twins), len(numbers)
            )
            for path in paths
            for prepared in (shared.get(path.query.name),)
        ]

    def group_key(self, path: Path, twins: Mapping[str, str]) -> object:
        """Return a key that is equal for queries that had better run in one call.

        Such queries have an answer, a join, or an aggregate in common. The windows of the aggregate
        may have different sizes.
        """
        if (in_common := path.kind.in_common) is not None:
            return shared_by(path, self._share), path.stream, in_common
        return twins.get(path.query.name, path.query.name)

    def twins(self, paths: Iterable[Path]) -> dict[str, str]:
        """Return, for each query that runs whole, the query whose answer it uses.

        Equal queries use the answer of the first of them. Queries that do not run whole are in
        groups, which compute equal parts once.
        """
        first: dict[object, str] = {}
        twin_by_query = {}
        for path in paths:
            if path.runs_whole:
                shared = shared_by(path, self._share)
                windows, names = path.kind.windows, path.columns
                text = self._whole_text(path)
                # A query with dead letters has its own: it may have begun to take them later.
                alone = path.query.name if path.query.on_error == "dead_letter" else ""
                key = shared, path.stream, path.key, windows, path.query.apply, names, text, alone
                twin_by_query[path.query.name] = first.setdefault(key, path.query.name)
        return twin_by_query

    def is_costly(self, path: Path) -> bool:
        """Return True if a query takes so long alone that others should not wait for it."""
        return self._costly(path)

    def prepared(self, path: Path) -> Prepared:
        """Return the plan that a query runs as when other queries are in its call."""
        return self._shared.get(path.query.name) or self.solo(path)

    def solo(self, path: Path) -> Prepared:
        """Return the plan that a query runs as when it is alone in its call."""
        name, order = path.query.name, self._orders.get(path.query.name)
        entry = self._alone.get(name)
        if entry is None or entry[0] is not path.plan or entry[1] != order:
            entry = self._alone[name] = path.plan, order, self._prepare_alone(path)
        return entry[2]

    def leave_out(self, path: Path) -> None:
        """Have a query that fails by itself share no code, so that it does not fail others.

        The next call plans their code again.
        """
        self._left_out[path.query.name] = path.plan
        if path.query.name in self._shared:
            self._is_stale = True

    def _is_left_out(self, path: Path) -> bool:
        name = path.query.name
        return name in self._left_out and self._left_out[name] is path.plan

    def forget(self, query: str) -> None:
        """Forget the plans of a query that was dropped."""
        for path in self._arranged:
            if path.query.name == query:  # its code goes when the others are arranged again
                self._left_out[query] = path.plan
        self._alone.pop(query, None)
        self._parts_by_query.pop(query, None)
        self._orders.pop(query, None)

    def readmit(self, query: str) -> None:
        """Let a query share its code again from the next arrangement on."""
        self._left_out.pop(query, None)

    def renew(self, paths: Iterable[Path]) -> None:
        """Have the code of queries generated again."""
        names = [path.query.name for path in paths]
        plans = [self._shared[name] for name in names if name in self._shared]
        plans += [entry[2] for name in names if (entry := self._alone.get(name)) is not None]
        for prepared in plans:
            prepared.renew()

    def reorder(self, orders: Mapping[str, tuple[int, ...]]) -> None:
        """Make conditions run in another order, and leave out queries that fail by themselves.

        Args:
            orders: by query, the numbers of its conditions.
        """
        changed = {name: order for name, order in orders.items() if self._orders.get(name) != order}
        if changed or self._is_stale:
            with self._arranging:
                self._orders.update(changed)
                self._rearrange()

    def _prepare_alone(self, path: Path) -> Prepared:
        if not path.runs_whole:
            return self._prepare(Part((Member(path, self._ordered(path)),)))
        plan = self._output_plan(path)
        whole = WholeQuery(path.stream, plan, {path.query.name: 0}, path.query.sql)
        return Prepared(None, whole, self._driver)

    def _prepare(self, part: Part) -> Prepared:
        paths = [member.path for member in part.members]
        parts = [member.parts for member in part.members]
        group = (constants_group if part.table else mask_group)(paths, parts)
        return Prepared(part, group, self._driver)

    def _ordered(self, path: Path) -> Parts:
        """Return the parts of a query, with its conditions in the order chosen for it."""
        parts, order = self.parts(path), self._orders.get(path.query.name)
        if order is None or len(order) != len(path.conditions):
            return parts
        return parts.ordered(order)

    def parts(self, path: Path) -> Parts:
        """Return the parts of a query. With a text sink, a query has one output column."""
        cached = self._parts_by_query.get(path.query.name)
        if cached is None or cached[0].plan is not path.plan:
            parts = self._output_plan(path).parts
            assert parts is not None
            cached = self._parts_by_query[path.query.name] = path, parts
        return cached[1]

    def _output_plan(self, path: Path) -> Plan:
        """Return the plan of a query's output columns. With a text sink there is one column."""
        assert isinstance(path.plan, Plan)
        text = self._whole_text(path)
        if text is None:
            return path.plan
        return path.plan.named(numbered(len(path.columns))).select(text)

    def _whole_text(self, path: Path) -> str | None:
        """Return the SQL of the one column that a text sink takes, or None for other sinks."""
        sink = self._sinks.get(path.query.name)  # the first segment of a cut query has none
        return None if sink is None else sink.text(numbered(len(path.columns)), path.columns)
