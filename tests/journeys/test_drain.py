"""`drain` keeps its time limit though a source does not answer, and loses nothing of it."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

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


def test_drain_gives_up_after_its_time_and_the_source_may_still_answer(
    spark: SparkSession, tmp_path: Path
) -> None:
    hg.source("slow to answer", columns="n BIGINT")(SlowToAnswer)
    gate = hg.Headgate(spark, state=tmp_path, classes={"H": 1.0}, rehearsal_s=0)
    gate.add_stream(hg.Stream(name="s", format="slow to answer"))
    gate.add_query(hg.Query(name="q", sql="SELECT n FROM s", query_class="H"))
    gate.start()
    try:
        assert ASKED.wait(60)
        assert not gate.drain(0.1)
        ANSWERS.set()
        assert gate.wait(60)
        assert gate.totals() == {"q": (3, 3)}
    finally:
        ANSWERS.set()
        gate.stop()
