"""Lines of JSON or CSV, read in the driver as Spark reads them."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from headgate.spark.json_lines import BLANK, elements_of
from headgate.spark.jvm.lane.compatibility import driver_lane
from headgate.spark.jvm.lane.small_query import SmallQuery
from headgate.spark.jvm.query.plans import Plans, ddl
from headgate.spark.jvm.session import own_session
from headgate.spark.log.dead_letters import Letter

CORRUPT = "_corrupt_record"
_LINE_END = re.compile("\r\n|\n|\r")


class TextReader:
    """Reads lines of JSON or CSV by Spark's own functions, in the driver and without a job.

    Args:
        kind: `json` or `csv`.
        options: those of Spark's reader that are about lines, by their names in lower case.
    """

    def __init__(
        self, session: SparkSession, kind: str, options: Mapping[str, str], schema: StructType
    ) -> None:
        self._kind, self._names = kind, schema.names
        self._header = options.get("header", "false").lower() == "true"
        of_function = {key: value for key, value in options.items() if key != "header"}
        told = {**of_function, "columnNameOfCorruptRecord": CORRUPT}
        pairs = ", ".join(f"{_quoted(each)}" for pair in told.items() for each in pair)
        fields = StructType([*schema.fields, StructField(CORRUPT, StringType())])
        own = own_session(session)
        plans, lines = Plans(own), StructType([StructField("line", StringType())])
        text = f"from_{self._kind}(line, {_quoted(ddl(own, fields))}, map({pairs})) AS parsed"
        plan = plans.of(plans.relation("lines", lines).selectExpr(text))
        self._session, self._parse = own, SmallQuery(plan, driver_lane(own))

    def __call__(
        self, file: Path, schema: pa.Schema, whole: bool
    ) -> tuple[pa.Table, tuple[Letter, ...]]:
        with pa.input_stream(str(file), compression="detect") as source:
            text = source.read().decode("utf-8-sig", errors="replace")
        if text and text[-1] not in "\r\n" and not whole:
            raise ValueError("its last line has no end")
        numbered = [(n, line) for n, line in enumerate(_LINE_END.split(text), 1)]
        numbered = [(n, line) for n, line in numbered if line.strip(BLANK)]
        if self._header and self._kind == "csv":
            numbered = numbered[1:]
        split = elements_of if self._kind == "json" else lambda line: [line]
        pieces = [(at, each) for at, (_, line) in enumerate(numbered) for each in split(line)]
        lines = pa.table({"line": pa.array([piece for _, piece in pieces], "str")})
        parsed = self._parse(self._session, "driver", {"lines": lines})
        columns = parsed.flatten()
        line_of = np.array([at for at, _ in pieces], dtype=np.int64)
        corrupt = np.unique(line_of[columns[f"parsed.{CORRUPT}"].is_valid().to_numpy()])
        good = pa.array(~np.isin(line_of, corrupt))
        kept = [columns[f"parsed.{name}"] for name in self._names]
        table = pa.Table.from_arrays(kept, schema=schema)
        reason = f"it is not {self._kind.upper()} of the stream's schema"
        letters = tuple(
            Letter(f"{file}:{numbered[at][0]}", numbered[at][1], reason) for at in corrupt
        )
        return table.filter(good), letters


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
