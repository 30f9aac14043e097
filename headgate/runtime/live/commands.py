"""Operations on single queries of a Headgate that runs, while the others go on."""

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

from headgate.config import change_of, fragment_of
from headgate.model.argument_types import refuse_type
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import RHYTHM, OnError, Query
from headgate.model.stream import Stream
from headgate.policies import Policy
from headgate.runtime.live.inspection import Inspection
from headgate.runtime.members.membership import Membership
from headgate.runtime.members.repairs import Repairs
from headgate.runtime.run.rehearsal import Rehearsal


class Commands(Inspection):
    """The commands to single queries of a Headgate that runs. The arguments are `Inspection`'s."""

    def __init__(self, policy: Policy, membership: Membership, rehearsal: Rehearsal) -> None:
        super().__init__(policy, membership, rehearsal)
        self._repairs = Repairs(membership)

    def add(self, fragment: Mapping[str, Any], where: str = "fragment") -> list[str]:
        """Add streams, views and queries in the form of a pipeline file; return their names.

        All of them are checked first: if one is refused, none is added.

        Args:
            where: the origin of the fragment, for refusals.

        Raises:
            HeadgateError: one is refused, as by `add_stream` and `add_query`.
        """
        self._refuse_stopped("add")
        return self._membership.add(*self._members_of(fragment, where))

    def check(self, fragment: Mapping[str, Any], where: str = "fragment") -> list[str]:
        """Check streams, views and queries as `add` does, and add none; return their names."""
        self._refuse_stopped("check")
        streams, queries = self._members_of(fragment, where)
        self._membership.check(streams, queries)
        return [*(stream.name for stream in streams), *(query.name for query in queries)]

    def _members_of(
        self, fragment: Mapping[str, Any], where: str
    ) -> tuple[Sequence[Stream], Sequence[Query]]:
        new = fragment_of(fragment, where, self._priorities)
        return new.stream_models(), new.query_models()

    @property
    def _priorities(self) -> dict[str, float]:
        classes = self._membership.catalog.classes
        return {query_class.name: query_class.priority for query_class in classes}

    def restart_query(self, name: str) -> None:
        """Start a query again where it stands, whatever its state, with a new sink and new plans.

        Raises:
            QueryRefused: its sink cannot be created.
            RequestRefused: the run has ended.
        """
        self._refuse_stopped("restart_query")
        self._repairs.restart(name)

    def pause_query(self, name: str) -> None:
        """Pause a query, in this run and in later ones, until it is resumed or restarted.

        It holds no tuples back: those that retention drops meanwhile count as missed.

        Raises:
            RequestRefused: it has failed.
        """
        self._refuse_stopped("pause_query")
        self._repairs.pause(name)

    def resume_query(self, name: str) -> None:
        """Start a query again that was paused or stopped, where it stands.

        Raises:
            RequestRefused: it is neither paused nor stopped.
        """
        self._refuse_stopped("resume_query")
        self._repairs.resume(name)

    def alter_query(self, name: str, *, sql: str, start_from: str | None = None) -> int:
        """Give a query another text, and return the number of its version.

        Results of version 2 are in a folder of their own, `NAME.v2`. Its windows that are open are
        computed from the log with the new text. If it is refused, the query goes on as it was.

        Args:
            start_from: where the version begins: with the `oldest` tuple in the log, `now`, or with
                the first that arrived at a time or later; None: where the query stands.

        Raises:
            QueryRefused: the text cannot run, or retention has dropped tuples that open windows
                need; names the clause, the reason and the fix.
        """
        self._refuse_stopped("alter_query")
        for key, value, kind in (("sql", sql, str), ("start_from", start_from, str | None)):
            refuse_type("alter_query", key, value, kind)
        return self._repairs.alter(name, sql, start_from)

    def set_query(
        self,
        name: str,
        *,
        query_class: str | EllipsisType = ...,
        weight: float | EllipsisType = ...,
        deadline_s: float | EllipsisType | None = ...,
        qos: QoSGraph | EllipsisType | None = ...,
        on_error: OnError | EllipsisType = ...,
        commit_every_s: float | EllipsisType | None = ...,
        target_file_mb: float | EllipsisType | None = ...,
        compact: bool | EllipsisType = ...,
    ) -> Query:
        """Change what a query's results are worth, how they become files, or its `on_error`.

        Return the changed query. The change lasts until the run ends. With another rhythm of its
        sink, a query that runs is restarted: what is collected becomes visible at once.

        What is left out stays as it is. None removes a deadline or a QoS graph; a query over
        windows by time then has their slide as its deadline, as without a deadline from the start.
        The next start takes all of it from its own queries again.

        Raises:
            UnknownName: there is no such query or class.
            QueryRefused: the weight or the deadline is out of range.
            ConfigRefused: a value has the wrong type, or the class of a view is to change: that is
                the class of its readers.
        """
        self._refuse_stopped("set_query")
        values = {
            "query_class": query_class, "weight": weight, "deadline_s": deadline_s, "qos": qos,
            "on_error": on_error, "commit_every_s": commit_every_s,
            "target_file_mb": target_file_mb, "compact": compact,
        }  # fmt: skip
        new = {field: value for field, value in values.items() if value is not ...}
        return self._repairs.set_query(name, new)

    def change_query(self, name: str, keys: Any, where: str = "change") -> dict[str, Any]:
        """Change a query as `set_query` does, in the form of a pipeline file.

        Args:
            keys: a mapping with one or more of `class`, `weight`, `deadline_s`, `qos`, `on_error`
                and `sink`, which is a mapping with `commit_every_s`, `target_file_mb`, `compact`.
            where: the origin of the mapping, for refusals.
        """
        self._refuse_stopped("change_query")
        sink = self._membership.query(name).path.query.sink
        values = change_of(keys, name, where, self._priorities, sink)
        self._repairs.set_query(name, values)
        return {"query": name, **self.values_of(name)}

    def values_of(self, name: str) -> dict[str, Any]:
        """Return what `change_query` may change of a query, by the keys of a pipeline file."""
        query = self._membership.query(name).path.query
        return {
            "class": query.query_class, "weight": query.weight, "deadline_s": query.deadline_s,
            "qos": None if query.qos is None else [list(point) for point in query.qos.points],
            "on_error": query.on_error,
            "sink": {key: getattr(query.sink, key) for key in RHYTHM},
        }  # fmt: skip
