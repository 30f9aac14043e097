"""The module of a run's own sink, `receipts`: a file for each delivery, also for repeated ones."""

from pathlib import Path

import pyarrow as pa
from consumer import into_files

import headgate as hg
from headgate.extensions import SinkContext


@hg.sink(
    "receipts",
    options={"folder": "where the files are written"},
    required={"folder": "deliveries"},
    delivery="at least once",
)
class Receipts(hg.Receiver):
    """Files named by the key of a delivery and the instant at which it came."""

    def __init__(self, context: SinkContext) -> None:
        self._folder = Path(context.options["folder"])

    def deliver(self, rows: pa.Table, key: str) -> None:
        into_files(self._folder)(rows, key)
