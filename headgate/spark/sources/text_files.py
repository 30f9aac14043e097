"""JSON and CSV files, read line by line in the driver as Spark reads them."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from headgate.extensions import Letter
from headgate.spark.json_lines import BLANK, elements_of
from headgate.spark.jvm.lane.compatibility import driver_lane
from headgate.spark.jvm.lane.small_query import SmallQuery
from headgate.spark.jvm.query.plans import Plans, ddl
from headgate.spark.jvm.session import own_session

CORRUPT = "_corrupt_record"
_LINE_END = re.compile("\r\n|\n|\r")


class TextReader:
    """Reads lines of JSON or CSV with Spark's own functions, in the driver and without a job.

    Args:
        kind: `json` or `csv`.
        options: the options of Spark's reader that apply to lines, by name in lower case.
    """

    def __init__(
        self, session: SparkSession, kind: str, options: Mapping[str, str], schema: StructType
    ) -> None:
        self._kind, self._names = kind, schema.names
        self._header = options.get("header", "false").lower() == "true"
        without_header = {key: value for key, value in options.items() if key != "header"}
        arguments = {**without_header, "columnNameOfCorruptRecord": CORRUPT}
        pairs = ", ".join(f"{_quoted(item)}" for pair in arguments.items() for item in pair)
        fields = StructType([*schema.fields, StructField(CORRUPT, StringType())])
        session = own_session(session)
        plans, lines = Plans(session), StructType([StructField("line", StringType())])
        text = f"from_{self._kind}(line, {_quoted(ddl(session, fields))}, map({pairs})) AS parsed"
        plan = plans.of(plans.relation("lines", lines).selectExpr(text))
        self._session, self._parse = session, SmallQuery(plan, driver_lane(session))

    def __call__(
        self, file: Path, schema: pa.Schema, whole: bool
    ) -> tuple[pa.Table, tuple[Letter, ...]]:
        with pa.input_stream(str(file), compression="detect") as source:
            text = source.read().decode("utf-8-sig", errors="replace")
        if text and text[-1] not in "\r\n" and not whole:
            raise ValueError("its last line has no end")
        numbered = [(number, line) for number, line in enumerate(_LINE_END.split(text), 1)]
        numbered = [(number, line) for number, line in numbered if line.strip(BLANK)]
        if self._header and self._kind == "csv":
            numbered = numbered[1:]
        split = elements_of if self._kind == "json" else lambda line: [line]
        pieces = [(index, row) for index, (_, line) in enumerate(numbered) for row in split(line)]
        lines = pa.table({"line": pa.array([row for _, row in pieces], "str")})
        parsed = self._parse(self._session, "driver", {"lines": lines})
        columns = parsed.flatten()
        line_of_row = np.array([index for index, _ in pieces], dtype=np.int64)
        corrupt = np.unique(line_of_row[columns[f"parsed.{CORRUPT}"].is_valid().to_numpy()])
        good = pa.array(~np.isin(line_of_row, corrupt))
        values = [columns[f"parsed.{name}"] for name in self._names]
        table = pa.Table.from_arrays(values, schema=schema)
        reason = f"it is not {self._kind.upper()} of the stream's schema"
        letters = tuple(
            Letter(f"{file}:{numbered[index][0]}", numbered[index][1], reason) for index in corrupt
        )
        return table.filter(good), letters


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
