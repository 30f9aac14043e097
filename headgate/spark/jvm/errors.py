"""Short messages for errors that Spark raises."""

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from headgate.errors import RowFailed

PYTHON_ERROR = re.compile(r"\w+(\.\w+)*(Error|Exception|Refused): ")
STATE = re.compile(r"SQLSTATE: (\w{5})\b")
OF_ROWS = re.compile(r"22\w{3}|P0001|38000|39000")
"""The SQLSTATEs of errors that the values of a row cause: data exceptions, raise_error, and errors
of Python, Java and Scala functions."""
OF_PYTHON = re.compile(r"^(ModuleNotFoundError|ImportError|MemoryError)\b", re.MULTILINE)
"""Errors of a Python worker that say nothing about a row."""
CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ")
SPARK_ERRORS = (PySparkException, Py4JJavaError, RowFailed)
"""Errors that a call into Spark may raise. PySpark translates most of Java's errors, but not all.
`RowFailed` is an error with the row at which it occurred."""


def reason_of(error: BaseException) -> str:
    """Return the first line of Spark's message, without error class and SQLSTATE."""
    text = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
    lines = [line for line in str(text).strip().splitlines() if line.strip()]
    if "Traceback" in str(text):
        # A Python worker died: the last line that names an error is the cause.
        named = [line for line in lines if PYTHON_ERROR.match(line)]
        missing = "ModuleNotFoundError" in str(text)
        hint = " (start Spark with PYSPARK_PYTHON set to the Python that has it)" if missing else ""
        return (named[-1].strip() if named else "a Python worker died") + hint
    return _sentence(lines[0]) if lines else type(error).__name__


def cause_of(error: BaseException | None) -> str:
    """Return one sentence that says why a job or a source failed."""
    if error is None:
        return "it ended"
    if isinstance(error, RowFailed):
        return str(error)
    if isinstance(error, SPARK_ERRORS):
        for line in str(error).splitlines():
            if "SQLSTATE" in line and "[" in line and "] " in line:
                return _sentence(line[line.index("[") :])
        causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
        if causes and "Traceback" not in str(error):
            kind, _, what = causes[-1].removeprefix("Caused by: ").partition(": ")
            return f"{kind.rsplit('.', 1)[-1]}: {what}".strip(": ")
        return reason_of(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]


def is_of_row(error: BaseException | None) -> bool:
    """Return True if the values of a row can have caused an error, whatever the row."""
    if isinstance(error, RowFailed):
        return is_of_row(error.__cause__)
    if not isinstance(error, SPARK_ERRORS):
        return False
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    states = [state] if state else STATE.findall(str(error))
    return any(map(OF_ROWS.fullmatch, states)) and not OF_PYTHON.search(str(error))


def condition_of(error: BaseException) -> str:
    """Return Spark's name for an error, such as DIVIDE_BY_ZERO; "" if it has none."""
    for line in str(error).splitlines():
        if "SQLSTATE" in line and (condition := CONDITION.search(line)):
            return condition.group(1)
    return ""


def _sentence(line: str) -> str:
    if line.startswith("[") and "] " in line:
        line = line.split("] ", 1)[1]
    return line.split(" SQLSTATE:")[0].strip().rstrip(".;")
