"""Trains as DataFrames of a job."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.model.stream import ARRIVED_AT
from headgate.spark.log.trains import NumberedTrains, Trains


@pytest.mark.parametrize("kind", [Trains, NumberedTrains])
def test_a_job_reads_trains_in_a_folder_with_brackets(
    spark: SparkSession, tmp_path: Path, kind: type[Trains]
) -> None:
    rows = pa.table({"a": pa.array([1, 2], pa.int64()), ARRIVED_AT: [0.5, 0.75]})
    folder = tmp_path / "state [2] {a,b}"
    folder.mkdir()
    pq.write_table(rows, folder / "1.parquet")
    schema = StructType().add("a", "long").add(ARRIVED_AT, "double")
    trains = kind(schema, [str(folder / "1.parquet")], 2, lambda: rows)
    assert [row.a for row in trains.frame(spark).collect()] == [1, 2]
