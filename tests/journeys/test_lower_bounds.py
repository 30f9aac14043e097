"""Unions and outer joins of a busy and a silent stream answer at once (BZ §4.1)."""

from pathlib import Path

import pytest
from kit.gates import balanced, until
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TUPLES = 300
QUERIES = {
    "union": "SELECT ts, location FROM sensors UNION ALL SELECT ts, place FROM alarms",
    "outer": "SELECT s.ts, a.place FROM sensors s LEFT JOIN alarms a ON a.place = s.location"
    " AND a.ts BETWEEN s.ts - INTERVAL 1 SECOND AND s.ts",
}


def test_a_silent_stream_with_a_declared_delay_keeps_nobody_waiting(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Without `quiet_s`, only the lower bounds of the two streams can release anything.
    gate = Headgate(spark, state=tmp_path / "state", classes={"N": 1}, rehearsal_s=0)
    options = {"rate_per_s": "100", "tuples": str(TUPLES), "seed": "1"}
    gate.add_stream(
        Stream(
            name="sensors", format="headgate", options=options, event_time="ts",
            arrival_time="ts", quiet_s=None,
        )
    )  # fmt: skip
    gate.add_stream(
        Stream(
            name="alarms", format="python", schema="place STRING, ts TIMESTAMP", event_time="ts",
            quiet_s=None, max_delay_s=0.2,
        ),
        rows=lambda first: iter(()),
    )  # fmt: skip
    for name, sql in QUERIES.items():
        gate.add_query(Query(name=name, sql=sql, query_class="N"))
    gate.start()
    until(lambda: all(count == TUPLES for _, count in gate.totals().values()), gate)
    reply = gate.why("union")
    parts = reply["parts"]
    assert "bound" in {part["kind"] for part in parts}
    assert sum(part["to"] - part["from"] for part in parts) == pytest.approx(reply["response_s"])
    report = gate.stop()
    assert report is not None
    balanced(gate)
    assert [account.late for account in gate.accounts().values()] == [0, 0]
    union, outer = report.queries
    assert union.response_s.count == TUPLES
    assert 0 < union.idle_wait_s <= union.response_s.mean
    assert "idle_wait_s" not in outer.applicable
