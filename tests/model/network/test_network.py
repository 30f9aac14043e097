"""What a network refuses, and how it numbers its streams, classes and units."""

import pytest

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream

SELECT = Operator(kind="select", expressions=("a > 1",))
PROJECT = Operator(kind="project", expressions=("a", "b + 1"))


def path(name: str = "q", *, query_class: str = "H", stream: str = "s", operators: int = 1) -> Path:
    query = Query(name=name, sql="SELECT 1", query_class=query_class)
    return Path(query=query, stream=stream, operators=(SELECT,) * operators)


def network(*paths: Path, streams: str = "s", priority: float = 6.0) -> Network:
    return Network(
        tuple(Stream(name=name, format="rate") for name in streams),
        (QueryClass(name="H", priority=priority), QueryClass(name="N", priority=1)),
        paths,
    )


def test_streams_classes_and_units_are_numbered_by_position() -> None:
    net = network(path("one"), path("two", stream="t"), streams="st")
    assert [net.stream_number(name) for name in "st"] == [0, 1]
    assert [net.class_number(name) for name in "HN"] == [0, 1]
    assert [net.unit_number(name) for name in ("one", "two")] == [0, 1]


def test_two_queries_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigRefused, match=r"query 'fire': name .* unique"):
        network(path("fire"), path("fire"))


def test_two_streams_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigRefused, match=r"stream 's'.*unique"):
        network(streams="ss")


def test_a_class_that_does_not_exist_is_answered_with_query_and_known_classes() -> None:
    with pytest.raises(UnknownName) as refused:
        network(path(query_class="HH"))
    assert str(refused.value) == (
        "query 'q': there is no class 'HH'. Did you mean 'H'? Known: H, N."
    )


def test_a_stream_that_does_not_exist_is_answered_with_query_and_known_streams() -> None:
    with pytest.raises(UnknownName, match=r"query 'q': there is no stream 'x'.* Known: s"):
        network(path(stream="x"))


def test_a_query_that_does_not_exist_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'fire'"):
        network(path("fire")).unit_number("fires")


@pytest.mark.parametrize("priority", [0.0, -1.0, float("nan"), float("inf")])
def test_a_class_of_no_usable_priority_is_refused(priority: float) -> None:
    with pytest.raises(ConfigRefused, match="classes: H"):
        network(priority=priority)


def test_a_path_without_operators_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="query 'q': operators must be at least one operator"):
        network(path(operators=0))


def test_a_path_tells_its_predicate_and_its_outputs() -> None:
    query = Query(name="q", sql="SELECT 1", query_class="H")
    both = Path(query=query, stream="s", operators=(SELECT, PROJECT))
    assert (both.predicate, both.outputs, both.runs_whole) == ("a > 1", ("a", "b + 1"), False)
    all_pass = Path(query=query, stream="s", operators=(PROJECT,))
    assert all_pass.predicate is None
    whole = Path(query=query, stream="s", operators=(Operator(kind="whole"),))
    assert whole.runs_whole


def test_a_stream_is_as_important_as_the_most_important_class_that_reads_it() -> None:
    paths = (path("a", query_class="N"), path("b"), path("c", query_class="N", stream="t"))
    assert network(*paths, streams="stu").importance == {"s": 6.0, "t": 1.0}
