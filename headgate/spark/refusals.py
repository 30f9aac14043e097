"""Spark's own errors, in a sentence."""

from pyspark.errors import PySparkException


def reason_of(error: PySparkException) -> str:
    """Gives what Spark says in its first line, without class name and SQLSTATE."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    if text.startswith("[") and "] " in text:
        text = text.split("] ", 1)[1]
    text = text.split(" SQLSTATE:")[0]
    return text.strip().rstrip(".;")


def cause_of(error: BaseException | None) -> str:
    """Gives the sentence that says why a job or a source died."""
    if error is None:
        return "it ended"
    if isinstance(error, PySparkException):
        text = str(error)
        for line in text.splitlines():
            if "SQLSTATE" in line and "[" in line and "] " in line:
                return line.split("] ", 1)[1].split(" SQLSTATE:")[0].strip().rstrip(".;")
        return reason_of(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]
