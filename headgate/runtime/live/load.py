"""A Headgate from a pipeline file."""

from dataclasses import asdict
from pathlib import Path as File
from typing import TYPE_CHECKING

from headgate.config import Pipeline
from headgate.model.plan import ALL
from headgate.runtime.live.headgate import Headgate
from headgate.runtime.pipeline import policy_of
from headgate.runtime.views import reading_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def load(
    pipeline: Pipeline,
    *,
    spark: "SparkSession | None" = None,
    policy: str | None = None,
    state: File | None = None,
) -> Headgate:
    """Return a Headgate with all that a pipeline file contains, ready to start."""
    headgate = Headgate(
        spark,
        state=state or File(pipeline.state),
        policy=policy_of(pipeline, policy),
        classes=pipeline.classes,
        workers=pipeline.workers,
        train_tuples=pipeline.train_tuples or ALL,
        most_fused=pipeline.most_fused,
        retention_s=pipeline.retention_s,
        share=pipeline.share,
        shared_priority=pipeline.shared_priority,
        rehearsal_s=pipeline.rehearsal_s,
        memory_bytes=pipeline.memory_bytes,
        log_bytes=pipeline.log_bytes,
        record=pipeline.record,
        call_timeout_s=pipeline.call_timeout_s,
        **asdict(pipeline.admission_rules()),
        master=pipeline.spark.master,
        spark_config=pipeline.spark.config,
    )
    try:
        for stream in pipeline.stream_models():
            headgate.add_stream(stream)
        for query in reading_order(pipeline.query_models()):
            headgate.add_query(query)
    except BaseException:
        headgate.stop()
        raise
    return headgate
