"""Streams over files."""

from pathlib import Path
from typing import Any

from headgate import Stream

POLL_EVERY_S = 0.01
"""With 0 the thread that polls never rests: it takes a core away from the test."""


def file_stream(name: str, folder: Path, schema: str, **more: Any) -> Stream:
    """Return a stream over Parquet files, one train per file; only tuples move its event time."""
    options = {"path": str(folder), "maxFilesPerTrigger": "1"}
    settings = {"event_time": "ts", "quiet_s": None, "trigger_s": POLL_EVERY_S, **more}
    return Stream(name=name, format="parquet", schema=schema, options=options, **settings)
