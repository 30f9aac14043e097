"""JSON and CSV files, read line by line in the driver as Spark reads them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from headgate.errors import RowFailed
from headgate.extensions import Letter, SourceContext
from headgate.spark.json_lines import BLANK, elements_of
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of
from headgate.spark.jvm.lane.compatibility import driver_lane
from headgate.spark.jvm.lane.small_query import MOST_ROWS, SmallQuery
from headgate.spark.jvm.query.plans import Plans, ddl
from headgate.spark.jvm.session import own_session
from headgate.spark.sources.files.file_bytes import contents

CORRUPT = "_corrupt_record"
BLOCK_BYTES = 32 << 20
"""About the most bytes of lines that the JVM gets at once: it holds them several times."""

SHOWN = 1000
"""How many characters of a line that is too long are in its dead letter."""

_BLANK, _BOM = BLANK.encode(), b"\xef\xbb\xbf"

Line = tuple[int, str]
"""A line with its number."""


class TextReader:
    """Reads lines of JSON or CSV with Spark's own functions, in the driver and without a job.

    Args:
        options: the options of Spark's reader that apply to lines, by name in lower case.
    """

    def __init__(self, context: SourceContext, options: Mapping[str, str]) -> None:
        schema: StructType = context.spark_schema
        self._kind, self._names = context.format, schema.names
        self._most_record_bytes = context.most_record_bytes
        self._most_file_bytes = context.most_file_bytes
        self._header = options.get("header", "false").lower() == "true"
        without_header = {key: value for key, value in options.items() if key != "header"}
        arguments = {**without_header, "columnNameOfCorruptRecord": CORRUPT}
        pairs = ", ".join(f"{_quoted(item)}" for pair in arguments.items() for item in pair)
        fields = StructType([*schema.fields, StructField(CORRUPT, StringType())])
        session: SparkSession = own_session(context.session)
        plans, lines = Plans(session), StructType([StructField("line", StringType())])
        text = f"from_{self._kind}(line, {_quoted(ddl(session, fields))}, map({pairs})) AS parsed"
        plan = plans.of(plans.relation("lines", lines).selectExpr(text))
        driver = driver_lane(session, Path(context.scratch) if context.scratch else None)
        self._session, self._parse = session, SmallQuery(plan, driver)

    def __call__(
        self,
        file: Path,
        schema: pa.Schema,
        whole: bool,
        first_byte: int = 0,
        end_byte: int | None = None,
    ) -> tuple[pa.Table, tuple[Letter, ...]]:
        data = contents(
            file, self._most_file_bytes, decompresses=True, first_byte=first_byte, end_byte=end_byte
        )
        place = f"{file}@{first_byte}" if first_byte else str(file)
        if data and data[-1:] not in b"\r\n" and not whole:
            raise ValueError("its last line has no end")
        tables, letters = [schema.empty_table()], list[Letter]()
        has_header = self._header and self._kind == "csv" and not first_byte
        for block in self._blocks(data, place, letters, has_header):
            table, unread = self._parsed(block, place, schema)
            tables.append(table)
            letters += unread
        letters.sort(key=lambda letter: int(letter.place.rpartition(":")[2]))
        return pa.concat_tables(tables), tuple(letters)

    def _blocks(
        self, data: bytes, file: str, letters: list[Letter], skips_header: bool
    ) -> Iterator[list[Line]]:
        """Yield the lines of a file in blocks; those that are too long become letters."""
        block, size_bytes = list[Line](), 0
        for number, line in enumerate(data.removeprefix(_BOM).splitlines(), 1):
            if not line.strip(_BLANK):
                continue
            if skips_header:
                skips_header = False
                continue
            if len(line) > self._most_record_bytes:
                reason = (
                    f"it has {len(line):,} bytes, more than {self._most_record_bytes:,}"
                    " (most_record_bytes); only its beginning is shown"
                )
                beginning = line[: 4 * SHOWN].decode(errors="replace")[:SHOWN]
                letters.append(Letter(f"{file}:{number}", beginning, reason))
                continue
            if block and (size_bytes + len(line) > BLOCK_BYTES or len(block) == MOST_ROWS):
                yield block
                block, size_bytes = [], 0
            block.append((number, line.decode(errors="replace")))
            size_bytes += len(line)
        if block:
            yield block

    def _parsed(
        self, lines: Sequence[Line], file: str, schema: pa.Schema
    ) -> tuple[pa.Table, list[Letter]]:
        """Parse lines; a line at which Spark itself fails becomes a letter, and no other does."""
        try:
            return self._parse_all(lines, file, schema)
        except SPARK_ERRORS as error:
            if len(lines) == 1:
                cause = error.cause if isinstance(error, RowFailed) else cause_of(error)
                return self._again(lines[0], file, schema, cause)
        middle = len(lines) // 2
        first, letters = self._parsed(lines[:middle], file, schema)
        second, more = self._parsed(lines[middle:], file, schema)
        return pa.concat_tables([first, second]), letters + more

    def _again(
        self, line: Line, file: str, schema: pa.Schema, cause: str
    ) -> tuple[pa.Table, list[Letter]]:
        """Parse a line again, and blame it only if Spark can parse an empty one meanwhile."""
        self._parse_all([(0, "")], file, schema)
        try:
            return self._parse_all([line], file, schema)
        except SPARK_ERRORS:
            number, text = line
            return schema.empty_table(), [Letter(f"{file}:{number}", text, cause)]

    def _parse_all(
        self, lines: Sequence[Line], file: str, schema: pa.Schema
    ) -> tuple[pa.Table, list[Letter]]:
        split = elements_of if self._kind == "json" else lambda line: [line]
        pieces = [(index, row) for index, (_, line) in enumerate(lines) for row in split(line)]
        rows = pa.table({"line": pa.array([row for _, row in pieces], "str")})
        columns = self._parse(self._session, "driver", {"lines": rows}).flatten()
        line_of_row = np.array([index for index, _ in pieces], dtype=np.int64)
        corrupt = np.unique(line_of_row[columns[f"parsed.{CORRUPT}"].is_valid().to_numpy()])
        good = pa.array(~np.isin(line_of_row, corrupt))
        values = [columns[f"parsed.{name}"] for name in self._names]
        table = pa.Table.from_arrays(values, schema=schema)
        reason = f"it is not {self._kind.upper()} of the stream's schema"
        letters = [Letter(f"{file}:{lines[n][0]}", lines[n][1], reason) for n in corrupt]
        return table.filter(good), letters


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
