"""A topic of Kafka as the input of a chain, and its broker, which goes away and comes back."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from independent import committed_rows, expected_rows
from kafka_broker import Broker

from chaos.chain import Chain
from chaos.pipeline import Differences

RECORDS = 200
QUERIES = {
    "place": "SELECT r.topic, r.partition, r.offset FROM readings r",
    "large": "SELECT r.offset, CAST(CAST(value AS STRING) AS INT) AS number FROM readings r"
    " WHERE CAST(CAST(value AS STRING) AS INT) % 3 = 0",
}
"""Queries that mean the same to Spark and to DuckDB."""


class Topic:
    """Records of a topic with three partitions, and files of them as the broker took them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._produced = folder, folder / "produced"
        self._produced.mkdir(parents=True)
        self.broker = Broker(folder)
        self._topic = self.broker.new_topic(3)
        self._records = 0

    def offer(self, files: int) -> dict[str, int]:
        values = range(self._records, self._records + files * RECORDS)
        records = [{"value": str(value).encode()} for value in values]
        rows = self.broker.produce(self._topic, records)
        columns = {
            name: [row[name] for row in rows] for name in ("value", "topic", "partition", "offset")
        }
        pq.write_table(pa.table(columns), self._produced / f"{self._records:06d}.parquet")
        self._records += len(rows)
        return dict.fromkeys(QUERIES, self._records)

    def write(self, state: Path, versions: Mapping[str, int]) -> Path:
        source = self.broker.source(self._topic, maxOffsetsPerTrigger="100")
        pipeline = {
            "state": str(state), "rehearsal_s": 0, "spark": {"master": "local[2]"},
            "classes": {"H": 1},
            "streams": {"readings": {"format": "kafka", "options": source, "ingest": "driver"}},
            "queries": {name: {"class": "H", "sql": sql} for name, sql in QUERIES.items()},
        }  # fmt: skip
        file = self._folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump(pipeline))
        return file

    def differences(self, state: Path, versions: Mapping[str, int]) -> Differences:
        answers = Differences()
        for name, sql in QUERIES.items():
            expected = expected_rows(sql, self._produced, "readings")
            answers.compare(name, committed_rows(state / "results" / name), expected)
        return answers


def broker_away(chain: Chain, rng: Random) -> None:
    """Kill the broker, and start it again after some seconds, or after a minute."""
    assert isinstance(chain.world, Topic)
    broker = chain.world.broker
    chain.offer(2)
    chain.run.ended(rng.uniform(0.0, 1.0))
    broker.kill()
    chain.run.ended(rng.choice((3.0, 10.0, 60.0)))
    broker.start_again()
    chain.offer(2)
