"""What a query, a stream and an operator refuse."""

from math import inf
from typing import Any

import pytest

from headgate.errors import ConfigRefused, HeadgateError, QueryRefused
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryStatistics, Sink
from headgate.model.stream import Stream


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "two words"}, "query 'two words': name must be letters, digits and _"),
        ({"name": "../up"}, "query '../up': name must be letters, digits and _"),
        ({"name": ""}, "query '': name must be letters, digits and _, at most 100"),
        ({"weight": -0.5}, "query 'fire': weight is -0.5.\nFix: give a finite"),
        ({"weight": inf}, "query 'fire': weight is inf.\nFix: give a finite weight of 0 or more"),
        ({"deadline_s": inf}, "query 'fire': deadline_s is inf"),
        ({"name": "n" * 101}, f"query '{'n' * 101}': name must be letters, digits and _, at most"),
        ({"sql": "SELECT '\ud800'"}, "query 'fire': sql is not valid Unicode"),
        ({"deadline_s": 0.0}, "query 'fire': deadline_s is 0.0"),
        ({"sql": " \n"}, "query 'fire': sql is empty"),
        (
            {"sink": Sink(format="jdcb")},
            "query 'fire': sink format is 'jdcb'.\nFix: it must be one of parquet, json, csv,"
            " console, memory, callback, jdbc, kafka, stream",
        ),
        (
            {"sink": Sink(format="kafka", options={"topic": "fires"})},
            "query 'fire': sink options.kafka.bootstrap.servers is missing.\nFix: it must be given",
        ),
        (
            {"sink": Sink(format="jdbc", options={"url": "u", "table": "t", "key": " , "})},
            "query 'fire': sink options.key is missing",
        ),
        (
            {"sink": Sink(options={"compresion": "zstd"})},
            "query 'fire': sink options.compresion is 'zstd'.\nFix: it must be left out: format"
            " 'parquet' takes only compression",
        ),
        (
            {"sink": Sink(format="stream", options={"lateness_s": "soon"})},
            "query 'fire': sink options.lateness_s is 'soon'.\nFix: it must be 0 or more seconds",
        ),
        (
            {"sink": Sink(format="stream", options={"stream": "a b"})},
            "query 'fire': sink options.stream is 'a b'.\nFix: it must be letters, digits and _",
        ),
    ],
)
def test_a_query_that_cannot_be_is_refused_with_clause_and_fix(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(QueryRefused) as refused:
        Query(**{"name": "fire", "sql": "SELECT 1", "query_class": "H", **change})
    assert str(refused.value).startswith(message)
    assert "\nFix: " in str(refused.value)


def test_a_weight_of_zero_is_allowed() -> None:
    assert Query(name="fire", sql="SELECT 1", query_class="H", weight=0).weight == 0


def test_a_password_is_not_printed() -> None:
    options = {"url": "u", "table": "t", "key": "a, b", "password": "secret"}
    sink = Sink(format="jdbc", options=options)
    query = Query(name="fire", sql="SELECT 1", query_class="H", sink=sink)
    assert repr(query) == (
        "Query(name='fire', sql='SELECT 1', query_class='H', sink=Sink(format='jdbc'))"
    )
    assert "secret" not in repr(Stream(name="s", format="kafka", options=options))


def test_a_query_cannot_be_changed() -> None:
    query = Query(name="fire", sql="SELECT 1", query_class="H")
    with pytest.raises(AttributeError):
        query.weight = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"name": "1st"},
            "streams: name is '1st', but must be letters, digits and _, at most 100 of them.",
        ),
        ({"trigger_s": inf}, "stream 's': trigger_s is inf, but must be 0 or more seconds."),
        ({"trigger_s": -1.0}, "stream 's': trigger_s is -1.0, but must be 0 or more seconds."),
    ],
)
def test_a_stream_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigRefused) as refused:
        Stream(**{"name": "s", "format": "rate", **change})
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("cost_s", 0.0, "above 0 seconds"),
        ("cost_s", -1.0, "above 0 seconds"),
        ("selectivity", -0.1, "between 0 and 1"),
        ("selectivity", 1.1, "between 0 and 1"),
        ("selectivity", float("nan"), "between 0 and 1"),
    ],
)
def test_an_operator_that_cannot_be_is_refused(key: str, value: float, expected: str) -> None:
    with pytest.raises(ConfigRefused, match=f"operator 'select': {key} is .*{expected}"):
        Operator(kind="select", **{key: value})


@pytest.mark.parametrize(
    ("key", "value"), [("cost_s", 0.0), ("selectivity", -0.5), ("overhead_s", -0.1)]
)
def test_figures_that_cannot_be_are_refused(key: str, value: float) -> None:
    with pytest.raises(HeadgateError, match=key):
        QueryStatistics(**{"cost_s": 0.001, "selectivity": 0.5, "overhead_s": 0.0, key: value})
