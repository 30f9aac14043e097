"""Sources and sinks by name, found in three places: Headgate, decorators, installed packages."""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from headgate.errors import ConfigRefused
from headgate.extensions.built_in_sinks import SINKS
from headgate.extensions.built_in_sources import SOURCES
from headgate.extensions.declared_options import Delivery, Entry, SinkEntry, SourceEntry
from headgate.extensions.option_values import Options

AnEntry = TypeVar("AnEntry", bound=Entry)
Makes = TypeVar("Makes", bound=Callable[..., Any])


class Registry(Generic[AnEntry]):
    """The sources or the sinks by name. A package is loaded when a name of its own is asked for.

    Args:
        group: the group of the entry points of other packages.
    """

    def __init__(self, kind: str, group: str, built_in: Iterable[AnEntry]) -> None:
        self._kind, self._group = kind, group
        self._entries = {entry.name: entry for entry in built_in}
        self._built_in = tuple(self._entries)

    def add(self, entry: AnEntry) -> None:
        """Add an entry; one of the same name is replaced, unless it is Headgate's."""
        if entry.name in self._built_in:
            raise ConfigRefused(
                path=f"{self._kind} '{entry.name}'", key="name", value=entry.name,
                expected=f"another name: Headgate has a {self._kind} of this name",
            )  # fmt: skip
        self._entries[entry.name] = entry

    def names(self) -> tuple[str, ...]:
        """Return all names, Headgate's first. No package is loaded for that."""
        others = {*self._entries, *(point.name for point in self._points())} - {*self._built_in}
        return (*self._built_in, *sorted(others))

    def get(self, name: str) -> AnEntry | None:
        """Return the entry of a name, or None.

        Raises:
            ConfigRefused: an installed package has this name, but cannot be loaded.
        """
        if name not in self._entries:
            for point in self._points():
                if point.name == name:
                    self._load(point)
        return self._entries.get(name)

    def all(self) -> dict[str, AnEntry]:
        """Return every entry by name."""
        entries = {name: self.get(name) for name in self.names()}
        return {name: entry for name, entry in entries.items() if entry is not None}

    def _points(self) -> Iterable[EntryPoint]:
        return entry_points(group=self._group)

    def _load(self, point: EntryPoint) -> None:
        try:
            point.load()
            reason = f"it registers no {self._kind} of this name"
        except Exception as error:  # whatever the code of another package raises
            reason = f"loading {point.value} raises {type(error).__name__}: {error}"
        if point.name not in self._entries:
            package = point.dist.name if point.dist is not None else point.module
            raise ConfigRefused(
                path=f"package '{package}'", key=self._group, value=point.name,
                expected=f"a {self._kind} that can be loaded: {reason}",
            )  # fmt: skip


_sources: Registry[SourceEntry] = Registry("source", "headgate.sources", SOURCES)
_sinks: Registry[SinkEntry] = Registry("sink", "headgate.sinks", SINKS)


def source(
    name: str,
    *,
    options: Mapping[str, str] | None = None,
    columns: str | Callable[[Options], str] = "",
    required: Mapping[str, str] | None = None,
    other_options: bool = False,
    check: Callable[[Options], object] = lambda options: None,
    takes_function: bool = False,
    spark_reads: bool = False,
    arrivals: Callable[[Options], Any] | None = None,
) -> Callable[[Makes], Makes]:
    """Register a `Source` class, or a function that returns a source, as a format of streams.

    Args:
        options: what each option means, by name. Streams with other options are refused.
        columns: the columns as Spark DDL, or a function that returns them for the options. Without
            it, the stream declares its `schema`.
        required: an example for each option that must be set.
        other_options: whether to accept options besides these.
        check: called with the options when a stream is added. It raises `OptionRefused` or
            `ValueError` if it refuses a value.
        takes_function: whether `add_stream` must get `rows` for it.
        spark_reads: whether Spark has a source of this name too, which reads the stream where this
            one raises `LeftToSpark`.
        arrivals: returns when tuples arrive in a simulation, for the options.
    """

    def enter(make: Makes) -> Makes:
        entry = SourceEntry(
            name=name, make=make, options=options or {}, required=required or {},
            other_options=other_options, check=check, takes_function=takes_function,
            columns=columns, spark_reads=spark_reads, arrivals=arrivals,
        )  # fmt: skip
        _sources.add(entry)
        return make

    return enter


def sink(
    name: str,
    *,
    options: Mapping[str, str] | None = None,
    delivery: Delivery = "at least once",
    required: Mapping[str, str] | None = None,
    other_options: bool = False,
    check: Callable[[Options], object] = lambda options: None,
    takes_function: bool = False,
    by_position: bool = False,
) -> Callable[[Makes], Makes]:
    """Register a `Receiver` class, or a function that returns a receiver, as a format of sinks.

    Args:
        options: what each option means, by name. Queries with other options are refused.
        delivery: what a reader of the sink sees after a crash. Promise `exactly once` only if a
            result that comes again with the same key leaves no trace.
        required: an example for each option that must be set.
        other_options: whether to accept options besides these.
        check: called with the options when a query is created. It raises `OptionRefused` or
            `ValueError` if it refuses a value.
        takes_function: whether `add_query` must get `deliver` for it.
        by_position: whether it knows columns by position, so that two may share a name.
    """

    def enter(make: Makes) -> Makes:
        entry = SinkEntry(
            name=name, make=make, options=options or {}, required=required or {},
            other_options=other_options, check=check, takes_function=takes_function,
            delivery=delivery, by_position=by_position,
        )  # fmt: skip
        _sinks.add(entry)
        return make

    return enter


source_names, source_entry, sources = _sources.names, _sources.get, _sources.all
sink_names, sink_entry, sinks = _sinks.names, _sinks.get, _sinks.all
