"""A Structured Streaming query that dies, or cannot start, is started again; others go on."""

from collections import Counter
from pathlib import Path

import pytest
from kit.engines import engine_of
from kit.gates import balanced, consume, new_gate, until
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def write(folder: Path, number: int, text: str = "") -> None:
    (folder / f".{number}").write_text(text or f'{{"i": {number}}}\n')
    (folder / f".{number}").rename(folder / f"{number:04d}.json")


def rows_of(gate: Headgate, spark: SparkSession, query: str) -> Counter[int]:
    rows = spark.read.parquet(str(gate.state / "results" / query)).collect()
    return Counter(row.i for row in rows)


def test_a_streaming_query_is_started_again_and_nothing_is_lost_or_comes_twice(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("headgate.spark.sources.poller.PAUSE_S", 0.05)
    crashes = ["train journalled", "train named", "train written"]

    def reached(point: str) -> None:
        if crashes and point == crashes[-1] and next(log.glob("*[0-9].parquet"), None):
            crashes.pop()
            raise OSError(f"at {point}")

    def causes() -> dict[str, tuple[str, str]]:
        troubles = gate.status()["stream_troubles"]
        return {trouble["stream"]: (trouble["state"], trouble["cause"]) for trouble in troubles}

    state, log = tmp_path / "state", tmp_path / "state/log/s"
    folders = {name: tmp_path / name for name in ("s", "t")}
    options = {"maxFilesPerTrigger": "1", "mode": "FAILFAST"}
    for folder in folders.values():
        folder.mkdir()
        write(folder, 0)
    (state / "checkpoints").mkdir(parents=True)
    (state / "checkpoints/s").write_text("in the way")
    streams = [
        Stream(
            name=name, format="json", schema="i INT", trigger_s=0.01, ingest="spark",
            options={"path": str(folder), **options},
        )
        for name, folder in folders.items()
    ]  # fmt: skip
    queries = [Query(name=f"q_{s}", sql=f"SELECT i FROM {s}", query_class="H") for s in folders]
    gate = new_gate(spark, tmp_path, streams, queries, classes={"H": 1}, reached=reached)
    gate.start()
    until(lambda: gate.totals()["q_t"][0] == 1, gate)
    assert causes()["s"][0] == "FAILING"
    assert "t" not in causes()
    (state / "checkpoints/s").unlink()
    consume(gate, 1)
    until(lambda: not causes(), gate)

    for number in range(1, 5):
        write(folders["s"], number)
    consume(gate, 5, but=("q_t",))
    assert not crashes  # it has died three times, once after its batch was in the log

    write(folders["s"], 5, "nonsense")
    until(lambda: "s" in causes(), gate)
    assert causes()["s"][0] == "FAILING"
    assert "0005.json" in causes()["s"][1]
    write(folders["t"], 1)
    consume(gate, 2, but=("q_s",))
    write(folders["s"], 5)
    write(folders["s"], 6)
    consume(gate, 7, but=("q_t",))
    until(lambda: not causes(), gate)

    engine_of(gate).parts.ingest.drop("t")
    report = gate.stop()
    assert report is not None
    assert not report.errors
    balanced(gate)
    assert rows_of(gate, spark, "q_s") == Counter(range(7))
    assert rows_of(gate, spark, "q_t") == Counter(range(2))
    assert "stream 's' stopped: " in caplog.text
    assert caplog.text.count("stream 's' is back") >= 2
