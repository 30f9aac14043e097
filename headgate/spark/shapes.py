"""Queries that differ in constants alone: as a table of these or as masks, whichever is quicker."""

import time
from collections.abc import Callable, Sequence
from math import inf

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.model.form import Form
from headgate.model.network import Path
from headgate.spark.arrangement import LEAST_ALIKE, Part, alike_in, divided
from headgate.spark.constants import fits
from headgate.spark.prepared import Prepared
from headgate.spark.stream_log import Trains

LEAST_COMPARED, COMPARED = 4, 3
"""So many queries of one form are tried as a table of constants and as masks, so often."""


class Shapes:
    """Measures both shapes of queries that have one form, and remembers what was found.

    Args:
        schema_of: gives the columns of a stream.
        prepare: makes what a part runs as.
        text: gives what a query for a sink of text puts out.
    """

    def __init__(
        self,
        session: SparkSession,
        schema_of: Callable[[str], StructType],
        prepare: Callable[[Part], Prepared],
        text: Callable[[Path], str | None],
    ) -> None:
        self._session, self._schema_of = session, schema_of
        self._prepare, self._text = prepare, text
        self._fitting: dict[tuple[str, Form], bool] = {}
        self._measured: dict[tuple[str, Form], tuple[float, float]] = {}

    def compare(
        self,
        paths: Sequence[Path],
        trains: Callable[[str], Trains],
        check: Callable[[], None],
    ) -> None:
        """Measures, where queries differ in constants alone, a table of them against masks.

        As they run in the driver; what cannot run there is left as it is.

        Args:
            trains: gives the tuples to measure with, of a stream.
            check: raises when nothing more may begin.
        """
        by_stream: dict[str, list[Path]] = {}
        for path in paths:
            by_stream.setdefault(path.stream, []).append(path)
        for stream, found in by_stream.items():
            texts = {path.query.name: text for path in found if (text := self._text(path))}
            for form, each in alike_in(found, texts):
                if len(each) < LEAST_COMPARED or not self._fits(stream, form):
                    continue
                shapes = [
                    [self._prepare(part) for part in divided(each, table=table)]
                    for table in (True, False)
                ]
                taken_s = [[self._timed(shape, trains(stream), check) for shape in shapes]
                           for _ in range(COMPARED)]  # fmt: skip
                table_s, mask_s = map(min, zip(*taken_s, strict=True))
                if table_s < inf and mask_s < inf:
                    self._measured[stream, form] = table_s, mask_s

    def why(self, path: Path) -> str:
        """Says why queries that differ in constants alone run as they do; empty for others."""
        measured = None if path.form is None else self._measured.get((path.stream, path.form))
        if measured is None:
            return ""
        table_ms, mask_ms = (each * 1000 for each in measured)
        return f"; measured {table_ms:.3g} ms as a table of constants, {mask_ms:.3g} ms as masks"

    def as_table(self, stream: str, form: Form, count: int) -> bool:
        """Tells whether so many queries of a form are a table of constants."""
        table_s, mask_s = self._measured.get((stream, form), (LEAST_ALIKE, count))
        return count > 1 and table_s <= mask_s and self._fits(stream, form)

    def _timed(self, shape: Sequence[Prepared], trains: Trains, check: Callable[[], None]) -> float:
        """Gives the seconds of groups in the driver, one after the other; inf: they cannot."""
        rows, taken_s = trains.table(), 0.0
        for prepared in shape:
            check()
            code, group = prepared.projection(self._session), prepared.group
            if code is None and group.items:
                return inf
            began_s = time.perf_counter()
            group.split(rows, code(rows) if code is not None else rows, group.members)
            taken_s += time.perf_counter() - began_s
        return taken_s

    def _fits(self, stream: str, form: Form) -> bool:
        key = stream, form
        if key not in self._fitting:
            self._fitting[key] = fits(self._session, form, self._schema_of(stream))
        return self._fitting[key]
