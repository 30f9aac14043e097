"""Spark's own errors, in a sentence."""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What a call into Spark may raise: most errors are translated by pyspark, some are not."""


def reason_of(error: BaseException) -> str:
    """Gives what Spark says in its first line, without error class and SQLSTATE."""
    text = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    lines = [line for line in str(text).strip().splitlines() if line.strip()]
    return _sentence(lines[0]) if lines else type(error).__name__


def cause_of(error: BaseException | None) -> str:
    """Gives the sentence that says why a job or a source died."""
    if error is None:
        return "it ended"
    if isinstance(error, SPARK_ERRORS):
        for line in str(error).splitlines():
            if "SQLSTATE" in line and "[" in line and "] " in line:
                return _sentence(line[line.index("[") :])
        return reason_of(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _sentence(line: str) -> str:
    if line.startswith("[") and "] " in line:
        line = line.split("] ", 1)[1]
    return line.split(" SQLSTATE:")[0].strip().rstrip(".;")
