"""The sweep: a Spark job in which every run is a task. Results are Parquet and stay usable."""

import time
from collections.abc import Callable, Iterator, Sequence
from math import inf
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headgate.experiments.run import Run, measured, sources
from headgate.spark.jvm.paths import literal_path

SCHEMA = "key STRING, measure STRING, at_s DOUBLE, value DOUBLE"

WAVE_S = 30.0
"""A job has as many runs as take about this long. An interrupted sweep loses one job at most."""

LEAST_A_CORE, MOST_A_WAVE = 8, 400
"""After the first job, which also compiles: most runs are so short that a job costs more."""

Progress = Callable[[int, int], None]
"""Called with the number of runs that are done, and of all."""


class OtherSources(RuntimeError):
    """An executor has another version of Headgate than the driver."""

    def __str__(self) -> str:
        return (
            "an executor runs another version of Headgate than this process. Fix: install the same"
            " version on all workers."
        )


def results(session: SparkSession, cache: str) -> DataFrame:
    """Return all results of earlier sweeps; none if there is no cache yet."""
    if not Path(cache).is_dir() or not any(Path(cache).glob("*.parquet")):
        return session.createDataFrame([], SCHEMA)
    # Two sweeps at once may have written the same runs.
    return session.read.schema(SCHEMA).parquet(literal_path(cache)).distinct()


def sweep(
    session: SparkSession, runs: Sequence[Run], cache: str, progress: Progress = lambda *_: None
) -> DataFrame:
    """Run everything that the cache does not have, and return all results.

    Args:
        cache: the folder of the results.
    """
    by_key = {run.key: run for run in runs}
    have = {row.key for row in results(session, cache).select("key").distinct().collect()}
    texts = [run.text for key, run in by_key.items() if key not in have]
    total, done, wave = len(by_key), len(by_key) - len(texts), 2 * _cores(session)
    run_s = inf
    progress(done, total)
    while texts:
        batch, texts = texts[:wave], texts[wave:]
        began_s = time.monotonic()
        _run_all(session, batch, cache)
        done += len(batch)
        progress(done, total)
        # The machine may have been busy with other work, so the fastest job counts.
        run_s = min(run_s, (time.monotonic() - began_s) / len(batch))
        wave = max(LEAST_A_CORE * _cores(session), min(MOST_A_WAVE, 4 * wave, int(WAVE_S / run_s)))
    return results(session, cache)


def _cores(session: SparkSession) -> int:
    return session.sparkContext.defaultParallelism


def _run_all(session: SparkSession, texts: Sequence[str], cache: str) -> None:
    """Run one job, a task per run, and append one file of results."""
    version = sources()

    def rows_of(text: str) -> Iterator[tuple[str, str, float | None, float]]:
        if sources() != version:
            raise OtherSources
        run = Run.of(text)
        return ((run.key, measure, at_s, value) for measure, at_s, value in measured(run))

    tasks = session.sparkContext.parallelize(texts, len(texts)).flatMap(rows_of)
    frame = session.createDataFrame(tasks, SCHEMA, verifySchema=False)
    frame.repartition(1).write.mode("append").parquet(cache)
