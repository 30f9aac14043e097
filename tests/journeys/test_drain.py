"""A source that does not answer delays no other stream, nor `drain`, and nothing of it is lost."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sources import until

import headgate as hg
from headgate.extensions import SourceContext

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ASKED, ANSWERS = threading.Event(), threading.Event()


class SlowToAnswer(hg.Source):
    """A source whose one poll with tuples returns when the test allows it."""

    def __init__(self, context: SourceContext) -> None:
        self._schema = context.schema

    def resume(self, position: Mapping[str, str]) -> None:
        self._done = "done" in position

    def poll(self) -> hg.Polled | None:
        if self._done:
            return None
        ASKED.set()
        assert ANSWERS.wait(120)
        return hg.Polled(pa.table({"n": [1, 2, 3]}, schema=self._schema), {"done": "1"})

    def taken(self, polled: hg.Polled) -> None:
        self._done = True


def test_other_streams_are_read_meanwhile_and_drain_gives_up_after_its_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    hg.source("slow to answer", columns="n BIGINT")(SlowToAnswer)
    state, folder = tmp_path / "state", tmp_path / "source"
    folder.mkdir()
    gate = hg.Headgate(spark, state=state, classes={"H": 1.0}, rehearsal_s=0)
    gate.add_stream(hg.Stream(name="s", format="slow to answer"))
    files = {"path": str(folder)}
    gate.add_stream(hg.Stream(name="t", format="json", options=files, schema="n BIGINT"))
    gate.add_query(hg.Query(name="q", sql="SELECT n FROM s", query_class="H"))
    gate.add_query(hg.Query(name="r", sql="SELECT n FROM t", query_class="H"))
    gate.start()
    try:
        assert ASKED.wait(60)
        (folder / "a.json").write_text('{"n": 1}\n')
        until(lambda: gate.totals()["r"] == (1, 1), gate)
        (trouble,) = gate.status()["stream_troubles"]
        assert trouble["stream"] == "s"
        assert trouble["cause"].startswith("its source has not answered for")
        assert not gate.drain(0.1)
        ANSWERS.set()
        assert gate.wait(60)
        assert gate.totals() == {"q": (3, 3), "r": (1, 1)}
    finally:
        ANSWERS.set()
        gate.stop()
