"""Whether jobs run, or wait for a core that others hold."""

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

TAGS = "spark.job.tags"


def waits_for_cores(session: SparkSession, tag: str) -> bool:
    """Return True if jobs with a tag have tasks to run, and none of them runs.

    Spark's scheduler of tasks is asked: the figures that Spark publishes may be ten seconds old.
    """
    context: Any = session.sparkContext
    try:
        queue = context._jsc.sc().taskScheduler().rootPool().getSortedTaskSetQueue()
        task_sets = [queue.apply(number) for number in range(queue.size())]
        tagged = [tasks for tasks in task_sets if tag in _tags_of(tasks)]
        return bool(tagged) and not any(tasks.runningTasks() for tasks in tagged)
    except Py4JError:  # another version of Spark, or a set that has just ended
        return False


def _tags_of(tasks: Any) -> list[str]:
    text: str = tasks.taskSet().properties().getProperty(TAGS) or ""
    return text.split(",")
