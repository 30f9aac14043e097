"""SQL over the past without a Headgate: a state directory is enough."""

from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any

from headgate.model.admission import AdmissionRules


def past(
    state: File, text: str, limit: int, rules: AdmissionRules | None = None
) -> tuple[list[str], list[tuple[Any, ...]], bool]:
    """Gives the columns and rows that a SELECT finds in what the streams have kept.

    A session of its own is started for it. The third value says whether rows were left out.

    Args:
        rules: what the text may cost and do.

    Raises:
        RecoveryRefused: the directory has no journal.
        UnknownName: the text names a table or stream that does not exist.
        QueryRefused: Spark cannot read or run the text, it is no SELECT, or it breaks a rule.
    """
    from headgate.spark import room  # noqa: PLC0415  # the command line must start without Java

    room.kept_trains(state)  # refuses before Spark has been started in vain
    with TemporaryDirectory() as folder:  # the state directory itself is only read
        session = room.local_session(File(folder), "local[*]", {})
        try:
            frame = room.history_of(session, state, text, rules)
            with room.refuse_failure():
                table = room.collected(frame.limit(limit + 1))
        finally:
            session.stop()
    columns = [column.to_pylist() for column in table.slice(0, limit).columns]
    return table.column_names, list(zip(*columns, strict=True)), table.num_rows > limit
