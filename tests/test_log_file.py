"""The log of a run: for its owner alone, and never the cause of a failure."""

import logging
from pathlib import Path

from headgate.cli.watch import PrivateFile


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
