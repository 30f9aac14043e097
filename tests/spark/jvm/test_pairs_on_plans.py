"""Golden pairs: a query and, under the line `-- expect`, what Spark's plan of it leads to.

`-- admitted`: it is not refused. `-- refused: START` and `-- fix: START`: the message of the
refusal and its fix begin with START. Adding a case needs no Python.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.errors import QueryRefused
from headgate.model.query import Query
from headgate.model.stream import Stream
from headgate.runtime.members.query_paths import segments_of
from headgate.spark.jvm.query.analysis import Analyst
from headgate.spark.jvm.session import own_session

pytestmark = pytest.mark.spark

SCHEMAS = {
    "sensors": "location STRING, temperature INT, humidity INT, ts TIMESTAMP",
    "parcels": "location STRING",
}
STREAMS = [Stream(name=name, format="rate") for name in SCHEMAS]
PAIRS = sorted((Path(__file__).parent / "pairs").glob("*.sql"))


@pytest.fixture(scope="module")
def analyst(spark: SparkSession) -> Analyst:
    analyst = Analyst(own_session(spark))
    for name, schema in SCHEMAS.items():
        analyst.add_stream(name, StructType.fromDDL(schema))
    return analyst


def read(pair: Path) -> tuple[str, dict[str, str]]:
    text, _, comments = pair.read_text().partition("\n-- expect\n")
    lines = [line.removeprefix("-- ").partition(": ") for line in comments.splitlines()]
    return text, {key: value for key, _, value in lines}


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.stem for pair in PAIRS])
def test_a_plan_leads_to_what_stands_under_its_text(analyst: Analyst, pair: Path) -> None:
    text, expected = read(pair)
    query = Query(name="q", sql=text, query_class="H")
    columns = {name: StructType.fromDDL(schema).names for name, schema in SCHEMAS.items()}
    if "admitted" in expected:
        assert segments_of(query, analyst, columns, STREAMS)[1]
        return
    with pytest.raises(QueryRefused) as refused:
        segments_of(query, analyst, columns, STREAMS)
    sentence, _, fix = str(refused.value).partition("\nFix: ")
    assert sentence.startswith(expected["refused"])
    assert fix.startswith(expected.get("fix", ""))
