"""A text over small tables, as a job."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.spark.small_query import SmallQuery

pytestmark = pytest.mark.spark


def test_a_job_takes_a_table_of_maps_of_which_a_filter_has_left_nothing(
    spark: SparkSession,
) -> None:
    rows = pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))})
    nothing = pa.concat_tables([rows, rows]).filter(pa.array([False, False]))
    assert nothing["m"].num_chunks == 0
    fields = StructType.fromDDL("m MAP<STRING, INT>").fields
    query = SmallQuery("SELECT m['a'] AS a FROM s", ["a"], None, lambda view: fields, "job")
    assert query(spark, {"s": nothing}).num_rows == 0
    assert query(spark, {"s": rows})["a"].to_pylist() == [1]
