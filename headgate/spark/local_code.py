"""Spark's code for expressions of a plan, run over rows in the driver."""

import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.spark.passage import Passage
from headgate.spark.plan_expressions import items_of, references_of, struct_of
from headgate.spark.types import arrow_schema


class Code:
    """Expressions that Spark has compiled, for rows with some attributes."""

    def __init__(self, session: SparkSession, code: Any, expressions: Any, attributes: Any) -> None:
        # Only what is used is handed over, but one column at the least: rows must be counted.
        used = {name for each in items_of(expressions) for name in references_of(each)}
        kept = [
            at for at, each in enumerate(items_of(attributes)) if each.exprId().id() in used
        ] or [0]  # fmt: skip
        inputs = attributes.take(0)
        for at in kept:
            inputs = inputs.appended(attributes.apply(at))
        self._kept = kept
        taken, given = struct_of(inputs), struct_of(expressions)
        kind = session._jsparkSession.parseDataType(taken.json())
        self._input = arrow_schema(taken)
        # Nested values of Arrow fail on a NULL inside.
        codes = [code.create(kind)] if _nested(self._input) else []
        codes.append(code.create(expressions, inputs))
        made = session._jsparkSession.parseDataType(given.json())
        back_as = arrow_schema(given)
        self._passage = Passage(session, kind, codes, made, back_as)
        self._turn = threading.Lock()  # generated code keeps its row between calls

    def __call__(self, rows: pa.Table) -> pa.Table:
        taken = numbered([rows.column(at) for at in self._kept]).cast(self._input)
        with self._turn:
            return self._passage(taken)


def _nested(schema: pa.Schema) -> bool:
    return any(pa.types.is_nested(kind) for kind in schema.types)


def numbered(columns: Sequence[Any]) -> pa.Table:
    """Gives a table of columns that are named by their number."""
    return pa.Table.from_arrays(
        list(columns), names=[f"c{number}" for number in range(len(columns))]
    )
