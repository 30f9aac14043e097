"""The entry point to `spark`: the names that the runtime imports, only when it needs Spark."""

from headgate.spark.engine.assembly import open_engine
from headgate.spark.engine.history import (
    history_of,
    kept_trains,
    other_texts,
    refuse_failure,
    versions_of,
)
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.jvm.jvm_watch import noticed_end
from headgate.spark.jvm.query.analysis import Analyst
from headgate.spark.jvm.session import (
    local_session,
    own_session,
    quiet_python,
    stop_session,
)
from headgate.spark.jvm.types import refuse_outputs
from headgate.spark.sinks.query_sink import refuse_sink
from headgate.spark.sources.stream_source import source_of

__all__ = [
    "Analyst",
    "collected",
    "history_of",
    "kept_trains",
    "local_session",
    "noticed_end",
    "open_engine",
    "other_texts",
    "own_session",
    "quiet_python",
    "refuse_failure",
    "refuse_outputs",
    "refuse_sink",
    "source_of",
    "stop_session",
    "versions_of",
]
