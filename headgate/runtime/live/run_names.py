"""What the streams, queries and segments of a run are called, also of those that are gone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headgate.model.query import QueryClass
from headgate.runtime.members.membership import Membership
from headgate.runtime.run.run import Running


@dataclass(frozen=True)
class Members:
    """What a run's units and streams are called, and which unit fills which stream.

    Args:
        ids: by query, the id of the unit whose results are its results.
        names: by id of a unit, its query.
        segments: by id of a unit, its name: that of its query, unless the query was cut.
        streams: by number, their names.
        producers: by number of a stream that a query fills, the id of that query's unit.
        sources: by number of a timeline over other streams, their numbers.
    """

    ids: Mapping[str, int]
    names: Mapping[int, str]
    classes: Mapping[str, QueryClass]
    segments: Mapping[int, str] = field(default_factory=dict)
    streams: Sequence[str] = ()
    producers: Mapping[int, int] = field(default_factory=dict)
    sources: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, membership: Membership, run: Running) -> "Members":
        """Return the names of the streams and queries of a run, also of queries that are gone."""
        catalog = membership.catalog
        segments = catalog.all_segments()
        by_name = {query_class.name: query_class for query_class in catalog.classes}
        numbers = {stream.name: number for number, stream in enumerate(catalog.streams)}
        paths = [path for path in catalog.paths if path.query.name in catalog.ids]
        return cls(
            {query: catalog.ids[query_paths[-1].query.name]
             for query, query_paths in segments.items()
             if query_paths[-1].query.name in catalog.ids},
            run.names
            | {catalog.ids[path.query.name]: path.first_of or path.query.name for path in paths},
            {query: by_name[catalog.class_of(query)] for query in segments},
            {catalog.ids[path.query.name]: path.query.name for path in paths},
            [stream.name for stream in catalog.streams],
            {numbers[path.into]: catalog.ids[path.query.name] for path in paths
             if path.into in numbers},
            {numbers[stream.name]: tuple(numbers[name] for name in stream.of if name in numbers)
             for stream in catalog.streams if stream.of},
        )  # fmt: skip

    def class_of(self, units: Sequence[int]) -> QueryClass | None:
        """Return the class of a call, which is that of its first unit whose query is not gone."""
        names = (self.names.get(unit, "") for unit in units)
        return next((self.classes[name] for name in names if name in self.classes), None)
