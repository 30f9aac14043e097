"""The log of a run: for its owner alone, and never the cause of a failure."""

import json
import logging
import sys
from datetime import datetime
from pathlib import Path

import pytest

from headgate.cli.watch import JsonLines, PrivateFile


def test_a_log_that_cannot_be_opened_stops_nobody(tmp_path: Path) -> None:
    file = tmp_path / "state" / "headgate.log"
    handler = PrivateFile(file, delay=True)
    record = logging.LogRecord("headgate", logging.INFO, "", 0, "a line", None, None)
    before, logging.raiseExceptions = logging.raiseExceptions, False
    try:
        handler.emit(record)
        file.parent.mkdir()
        handler.emit(record)
    finally:
        logging.raiseExceptions = before
        handler.close()
    assert file.read_text() == "a line\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_line_of_json_has_time_level_logger_message_and_error() -> None:
    try:
        raise ValueError("a slip of the pen")
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("headgate.server", logging.WARNING, "", 0, 'a "%s"', ("b",), error)
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["logger"], line["message"]) == (
        "WARNING", "headgate.server", 'a "b"',
    )  # fmt: skip
    assert line["error"].endswith("ValueError: a slip of the pen")
    assert datetime.fromisoformat(line["time"]).timestamp() == pytest.approx(record.created)
