"""A catalog never changes: whoever holds one sees the streams and queries of one moment."""

import pytest
from pyspark.sql.types import StructType

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import DERIVED, Stream
from headgate.runtime.members.catalog import Catalog

COLUMNS = StructType().add("a", "integer")
EMPTY = Catalog((QueryClass(name="N", priority=1.0),))


def with_stream(catalog: Catalog, name: str) -> Catalog:
    _, streams = catalog.with_stream(Stream(name=name, format="rate"))
    return catalog.add_stream(streams, name, COLUMNS)


def with_query(
    catalog: Catalog, name: str, stream: str, number: int, into: str | None = None
) -> Catalog:
    query = Query(name=name, sql=f"SELECT * FROM {stream}", query_class="N")
    select = Operator(kind="select", cost_s=1.0, selectivity=1.0)
    path = Path(query=query, stream=stream, operators=(select,), into=into)
    queues = [] if into is None else [Stream(name=into, format=DERIVED)]
    streams, paths = catalog.with_query(queues, [path])
    schemas = {} if into is None else {into: COLUMNS}
    return catalog.add_query(streams, paths, [path], {name: number}, schemas)


def test_a_change_leaves_the_catalog_before_it_as_it_was() -> None:
    one = with_query(with_stream(EMPTY, "s"), "q", "s", 7)
    none = one.remove("q")
    assert one.ids_of("q") == [7]
    assert [path.query.name for path in one.network.paths] == ["q"]
    assert one.network.ids == (7,)
    assert (none.paths, none.ids) == ((), {})
    with pytest.raises(UnknownName, match="there is no query 'q'"):
        none.ids_of("q")
    assert EMPTY.streams == ()


def test_a_stream_that_was_dropped_in_a_run_keeps_its_number_and_comes_back() -> None:
    both = with_stream(with_stream(EMPTY, "a"), "b")
    gone = both.drop_stream("a", runs=True)
    assert list(gone.readable) == ["b"]
    assert [stream.name for stream in gone.streams] == ["a", "b"]
    number, _ = gone.with_stream(Stream(name="a", format="rate"))
    assert number == 0
    assert list(with_stream(gone, "a").readable) == ["a", "b"]
    assert [stream.name for stream in both.drop_stream("a", runs=False).streams] == ["b"]


def test_a_stream_whose_source_did_not_start_has_a_number_and_cannot_be_read() -> None:
    _, streams = EMPTY.with_stream(Stream(name="s", format="rate"))
    catalog = EMPTY.add_stream(streams, "s", None)
    assert (list(catalog.readable), catalog.schemas) == ([], {})
    assert list(with_stream(catalog, "s").readable) == ["s"]


def test_a_stream_goes_with_the_query_that_fills_it() -> None:
    before = with_stream(EMPTY, "s")
    catalog = with_query(before, "view", "s", 1, into="v")
    assert list(catalog.readable) == ["s", "v"]
    with pytest.raises(ConfigRefused, match="another stream has it"):
        with_query(catalog, "other", "s", 2, into="v")
    dropped = catalog.without_schema("v").remove("view")
    assert (list(dropped.readable), list(dropped.schemas)) == (["s"], ["s"])
    assert [stream.name for stream in dropped.streams] == ["s", "v"]  # the number of v stays taken
    assert list(with_query(dropped, "again", "s", 3, into="v").readable) == ["s", "v"]
    never_run = catalog.without_schema("v").forget("view")
    assert [stream.name for stream in never_run.streams] == ["s"]


def test_the_next_version_of_a_query_has_its_own_id() -> None:
    catalog = with_query(with_query(with_stream(EMPTY, "s"), "q", "s", 1), "r", "s", 2)
    new = catalog.segments_of("q")[0]
    altered = catalog.replace_query("q", catalog.streams, new, {"q": 3})
    assert [path.query.name for path in altered.paths] == ["r", "q"]
    assert altered.network.ids == (2, 3)
    assert catalog.network.ids == (1, 2)
