"""Results go to a Kafka topic through Spark's connector; repeated records have the same key."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from independent import expected_rows
from kafka_broker import Broker, jars
from sources import write_readings

from headgate.workloads.testbeds.forest import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.long]  # two starts of Spark

CONNECTOR = Path(__file__).with_name("kafka-connector-jars.lock")
"""The newest connector whose jars can all be downloaded from Maven Central."""

HOT = "SELECT location, temperature FROM sensors WHERE temperature > 35"
MANY = "SELECT location, count(*) AS n FROM sensors [RANGE 1 SECONDS] GROUP BY location"
LAST = "(SELECT max(epoch_us(ts)) // 1000000 FROM sensors)"
ORACLES = {
    HOT: HOT,
    MANY: f"SELECT location, count(*) FROM sensors WHERE epoch_us(ts) // 1000000 < {LAST}"
    " GROUP BY location, epoch_us(ts) // 1000000",
}


def _pipeline(folder: Path, broker: Broker, topic: str, sql: str) -> Path:
    options = {"path": str(folder / "source"), "maxFilesPerTrigger": 1}
    stream = {
        "format": "parquet", "schema": SCHEMA, "options": options, "event_time": "ts",
        "quiet_s": None,
    }  # fmt: skip
    target = {"kafka.bootstrap.servers": broker.servers, "topic": topic}
    pipeline = {
        "state": str(folder / "state"), "rehearsal_s": 0, "train_tuples": 50, "classes": {"H": 1},
        "spark": {
            "master": "local[2]", "config": {"spark.jars": ",".join(map(str, jars(CONNECTOR)))}
        },
        "streams": {"sensors": stream},
        "queries": {
            "hot": {"class": "H", "sql": sql, "sink": {"format": "kafka", "options": target}}
        },
    }  # fmt: skip
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    return file


@pytest.mark.parametrize("sql", ORACLES)
def test_records_that_come_again_after_a_kill_are_known_by_their_key(
    broker: Broker, tmp_path: Path, sql: str
) -> None:
    topic = broker.new_topic(3)
    offered = write_readings(tmp_path / "source", files=4, rows=50)
    command = [
        sys.executable, str(Path(__file__).with_name("consumer.py")),
        str(_pipeline(tmp_path, broker, topic, sql)), str(offered),
    ]  # fmt: skip
    for more, code in ((["result delivered", "2"], -signal.SIGKILL), ([], 0)):
        process = subprocess.run(
            [*command, *more], capture_output=True, text=True, start_new_session=True, timeout=300
        )
        assert process.returncode == code, process.stderr
    times: Counter[str] = Counter()
    rows: dict[str, str] = {}
    for record in broker.records(topic):
        key = dict(record.headers() or [])["headgate_key"].decode()
        assert record.key().decode() == key
        assert rows.setdefault(key, record.value().decode()) == record.value().decode()
        times[key] += 1
    values = Counter(tuple(json.loads(row).values()) for row in rows.values())
    assert values == expected_rows(ORACLES[sql], tmp_path / "source")
    assert values
    # Only the result that was delivered but not yet removed from the outbox is delivered again.
    repeated = {key.rpartition("/")[0] for key, count in times.items() if count > 1}
    assert len(repeated) == 1
    assert {times[key] for key in rows if key.rpartition("/")[0] in repeated} == {2}
