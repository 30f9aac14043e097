"""The Spark room's door: what the runtime needs of it, imported only when Spark is asked for."""

from headgate.spark.budget import Limits
from headgate.spark.engine import SparkEngine
from headgate.spark.history import history_of, kept_trains, refuse_failure
from headgate.spark.ingest import source_of
from headgate.spark.jvm.analysis import Analyst
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.jvm.session import local_session, own_session, quiet_python
from headgate.spark.receivers import refuse_sink
from headgate.spark.types import refuse_outputs

__all__ = [
    "Analyst",
    "Limits",
    "SparkEngine",
    "collected",
    "history_of",
    "kept_trains",
    "local_session",
    "own_session",
    "quiet_python",
    "refuse_failure",
    "refuse_outputs",
    "refuse_sink",
    "source_of",
]
