"""Errors for texts that Spark cannot parse, with the place and a fix."""

from pyspark.errors import ParseException

from headgate.errors import QueryRefused
from headgate.model.query import Query
from headgate.model.window import WRITTEN
from headgate.spark.jvm.errors import reason_of


def unparsed(query: Query, error: ParseException) -> QueryRefused:
    """Return the error for a text that Spark cannot parse."""
    message = str(error).strip()
    line = column = None
    if "(line " in message:
        place = message.split("(line ", 1)[1].split(")", 1)[0]
        first, _, second = place.partition(", pos ")
        line, column = int(first), int(second) + 1
    reason = reason_of(error)
    fix = "correct the text"
    if ";" in query.sql.rstrip().rstrip(";"):
        fix = "write one statement; register the others as queries of their own"
    elif "near '['" in reason:
        fix = f"write a window behind a stream as {WRITTEN}"
    return QueryRefused(
        query=query.name, clause="the text", reason=f"cannot be parsed: {reason}", fix=fix,
        line=line, column=column,
    )  # fmt: skip
