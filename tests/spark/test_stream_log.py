"""Trains of both writers are one log."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from headgate.spark.stream_log import ARRIVED, Trains


@pytest.mark.parametrize("nullable", [[False, True], [True, False]])
def test_the_mean_arrival_over_trains_of_spark_and_of_the_driver(
    tmp_path: Path, nullable: list[bool]
) -> None:
    files = []
    for number, may_be_null in enumerate(nullable):
        schema = pa.schema([pa.field(ARRIVED.name, pa.float64(), nullable=may_be_null)])
        files.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(
            pa.table([pa.array([1.0 + number] * (number + 1))], schema=schema), files[-1]
        )
    trains = Trains(StructType([ARRIVED]), files, 3, lambda: pa.table({}))
    assert trains.mean_arrived_at_s() == pytest.approx(5 / 3)
