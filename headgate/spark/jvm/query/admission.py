"""Admission: a text becomes a DataFrame only if it is small, harmless, and analyzed in time."""

from pathlib import Path
from typing import Any

from pyspark.errors import ParseException, PySparkValueError
from pyspark.sql import DataFrame, SparkSession

from headgate.errors import QueryRefused
from headgate.model.query import Query
from headgate.model.settings import Settings
from headgate.spark.jvm.java_classes import java_class
from headgate.spark.jvm.query.text_limits import refuse_text, too_deep

LEVELS_PER_NESTING = 3
"""Levels of a plan's tree per level of brackets; a chain of operators also adds levels."""

MOST_TYPE_LEVELS = 100
"""The most levels of a type's JSON that PySpark can read without exhausting Python's stack."""

_FUNCTIONS = "use functions of Spark SQL, or register your own in the session that you pass in"
_REASONS = {
    "node": ("is not a SELECT: a query only reads",
             "write one SELECT ... FROM a stream; change tables outside Headgate"),
    "script": ("starts a program on the machine, which no query may do", _FUNCTIONS),
    "hidden": ("hides the name of what it stands for", "write the name itself"),
    "expression": ("is not an expression of Spark SQL", _FUNCTIONS),
    "reflection": ("can call any Java method, which is off by default",
                   f"{_FUNCTIONS}; an administrator can set allows_reflection"),
    "path": ("reads files by their path, which is off by default",
             "read a stream, table or view by its name; an administrator can set allows_paths"),
    "file": ("opens a file by its path, which is off by default",
             "leave that argument out; an administrator can set allows_paths"),
    "state": ("reaches the state directory, which no query may read",
              "read streams by their names; keep other files outside of the state directory"),
    "memory": ("needs more memory to be analyzed than the JVM has",
               "make it shorter, or raise spark.driver.memory"),
}  # fmt: skip


class Admission:
    """The parser and analyzer of texts, which refuses a text that the settings do not allow.

    The whole plan is checked after parsing and again after analysis, including subqueries, common
    table expressions and the texts of views.

    Args:
        session: a session of Headgate's own; one of its settings is changed.
        state: the state directory. No text may read its files, even if the settings allow paths.
    """

    def __init__(self, session: SparkSession, settings: Settings, state: Path | None) -> None:
        self._session, self._settings = session, settings
        if not settings.allows_paths:
            session.conf.set("spark.sql.runSQLOnFiles", "false")
        self._java: Any = java_class(session, "Admission").newInstance()
        self._java.set(
            session._jsparkSession, settings.most_plan_nodes,
            LEVELS_PER_NESTING * settings.most_nesting, round(1e3 * settings.analysis_timeout_s),
            settings.allows_paths, settings.allows_reflection,
            None if state is None else str(state.absolute()),
        )  # fmt: skip

    def parse(self, query: Query, text: str) -> Any:
        """Return the parsed plan of a text.

        Raises:
            QueryRefused: the text breaks a rule.
            ParseException: Spark cannot parse the text.
        """
        refuse_text(query, self._settings)
        try:
            return self._admitted(query, self._java.parse(text))
        except ParseException as error:
            if error.getCondition() == "FAILED_TO_PARSE_TOO_COMPLEX":
                raise self._refusal(query, "depth", "", "") from None
            raise

    def analyze(self, query: Query, parsed: Any) -> DataFrame:
        """Return a parsed plan as a DataFrame; nothing is executed.

        Raises:
            QueryRefused: the plan breaks a rule.
            AnalysisException: Spark refuses the plan.
        """
        frame = DataFrame(self._admitted(query, self._java.analyze(parsed)), self._session)
        try:
            _ = frame.schema
        except PySparkValueError:
            # PySpark raises the same error for an unknown type, which is later refused by its name.
            if _depth(frame._jdf.schema().json()) > MOST_TYPE_LEVELS:
                raise too_deep(query, "has a result whose type is nested too deep") from None
        return frame

    def _admitted(self, query: Query, outcome: Any) -> Any:
        if isinstance(outcome, str):
            raise self._refusal(query, *outcome.split("\t"))
        return outcome

    def functions(self) -> list[str]:
        """Return the names of the session's functions."""
        return str(self._java.functions()).split()

    def path_refused(self, query: Query, name: str) -> QueryRefused:
        """Return the error for a table that is named by its path."""
        return self._refusal(query, "path", name, "")

    def _refusal(self, query: Query, code: str, name: str, line: str) -> QueryRefused:
        settings, at_line = self._settings, int(line) if line else None
        if code == "depth":
            levels = LEVELS_PER_NESTING * settings.most_nesting
            reason = f"makes a plan of more than {levels:,} levels: long chains of operators count"
            return too_deep(query, reason, at_line)
        clause = name or "the text"
        if code == "size":
            clause, count = "the text", f"{int(name):,}" if len(name) < 16 else "endless"
            reason = (
                f"makes a plan of {count} operators and expressions, and"
                f" {settings.most_plan_nodes:,} are allowed"
            )
            fix = "keep long lists of values in a table and join it, or raise most_plan_nodes"
        elif code == "time":
            reason = f"takes Spark more than {settings.analysis_timeout_s:g} s to analyze"
            fix = "make it shorter, or write several queries, or raise analysis_timeout_s"
        else:
            reason, fix = _REASONS[code]
        return QueryRefused(query=query.name, clause=clause, reason=reason, fix=fix, line=at_line)


def _depth(text: str) -> int:
    """Return how deep the brackets of a JSON text are nested."""
    depth = deepest = 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        deepest = max(deepest, depth)
    return deepest
