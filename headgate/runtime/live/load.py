"""A Headgate from a pipeline file."""

from pathlib import Path as File
from typing import TYPE_CHECKING

from headgate.config import Pipeline
from headgate.model.settings import Settings
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
    fresh: bool = False,
) -> Headgate:
    """Return a Headgate with all that a pipeline file contains, ready to start."""
    headgate = Headgate(
        spark,
        state=state or File(pipeline.state),
        policy=policy_of(pipeline, policy),
        classes={name: vars(section) for name, section in pipeline.classes.items()},
        master=pipeline.spark.master,
        spark_config=pipeline.spark.config,
        fresh=fresh,
        **pipeline.model_dump(include=set(Settings.model_fields)),
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
