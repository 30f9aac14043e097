"""What golden pairs cannot express: unknown columns, and names in the spelling of the streams."""

import pytest

from headgate.errors import HeadgateError
from headgate.language.parse import path_of, stream_of, whole
from headgate.model.query import Query


def query(sql: str) -> Query:
    return Query(name="q", sql=sql, query_class="H")


def test_where_columns_are_not_known_a_star_stays_a_star() -> None:
    assert path_of(query("SELECT * FROM sensors"), {"sensors": []}).outputs == ("*",)


def test_a_stream_is_found_whatever_the_case_and_keeps_its_own() -> None:
    assert stream_of(query("SELECT 1 FROM SENSORS"), ["Sensors"]) == "Sensors"
    assert path_of(query("SELECT 1 FROM SENSORS"), {"Sensors": []}).stream == "Sensors"


def test_a_cte_is_no_stream() -> None:
    sql = "WITH hot AS (SELECT * FROM sensors) SELECT * FROM hot"
    assert stream_of(query(sql), ["sensors"]) == "sensors"


def test_a_whole_query_is_one_operator_with_the_users_text() -> None:
    path = whole(query("SELECT 1 FROM s"), "s")
    assert [(operator.kind, operator.expressions) for operator in path.operators] == [
        ("whole", ("SELECT 1 FROM s",))
    ]


@pytest.mark.parametrize(
    "sql", ["(", "SELECT", "SELECT FROM WHERE", "'", "/*", "`", ";", "--", ")"]
)
def test_no_text_makes_it_stumble(sql: str) -> None:
    with pytest.raises(HeadgateError):
        path_of(query(sql), {"sensors": []})
