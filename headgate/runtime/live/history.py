"""SQL over the retained past of streams, from a state directory alone."""

from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any

from headgate.model.settings import Settings
from headgate.runtime.run.spark_room import spark_room


def past(
    state: File, text: str, limit: int, settings: Settings | None = None
) -> tuple[list[str], list[tuple[Any, ...]], bool]:
    """Return the columns and rows of a SELECT over the retained past, and whether rows are missing.

    It runs in a local Spark session that is stopped afterwards.

    Args:
        limit: most rows that are returned.
        settings: among them, the limits that the text must meet.

    Raises:
        RecoveryRefused: the directory has no journal.
        UnknownName: the text names a table or stream that does not exist.
        QueryRefused: Spark cannot parse or run the text, it is not a SELECT, or it breaks a rule.
    """
    room = spark_room()
    room.kept_trains(state)  # raises before Spark is started in vain
    # The state directory itself is only read.
    with TemporaryDirectory() as folder, room.noticed_end():
        session = room.local_session(File(folder), "local[*]", {})
        try:
            frame = room.history_of(session, state, text, settings)
            with room.refuse_failure():
                table = room.collected(frame.limit(limit + 1))
        finally:
            room.stop_session(session)
    columns = [column.to_pylist() for column in table.slice(0, limit).columns]
    return table.column_names, list(zip(*columns, strict=True)), table.num_rows > limit
