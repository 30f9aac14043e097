"""The protocol of sources that the driver polls: each returns tuples and its new position."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.extensions.option_values import Options

if TYPE_CHECKING:
    import pyarrow as pa

MOST_TUPLES = 100_000
"""About the most tuples of one poll; a file is never split."""

MOST_RECORD_BYTES, MOST_FILE_BYTES = 16 << 20, 1 << 30
"""The defaults of the settings `most_record_bytes` and `most_file_bytes`."""


class LeftToSpark(Exception):
    """Raised by a source that the driver cannot poll: Structured Streaming must read the stream.

    If the stream says `ingest: driver`, or if Spark has no source of this format, the stream is
    refused with the reason.
    """

    def __init__(self, reason: str = "the driver cannot poll this source") -> None:
        super().__init__(reason)


@dataclass(frozen=True)
class Letter:
    """A record that could not be parsed, a dead letter: where it was, its text, and why."""

    place: str
    record: str
    reason: str


@dataclass(frozen=True)
class Polled:
    """The result of a poll.

    Args:
        table: the tuples, a pyarrow table with the columns of `SourceContext.schema`.
        position: where to go on after these tuples, as texts by key. Keys that a later poll does
            not name keep their values.
        letters: records that could not be parsed. They become dead letters.
    """

    table: "pa.Table"
    position: Mapping[str, str]
    letters: tuple[Letter, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SourceContext:
    """What a source is created with.

    Args:
        stream: the name of the stream.
        format: the name by which the source was chosen.
        options: those of the stream. Names and numbers were checked.
        schema: the pyarrow schema of the tuples. Instants are in UTC.
        spark_schema: the same as a StructType of PySpark.
        session: a SparkSession of Headgate's own. Do not stop it.
        time_zone: the session's time zone, for timestamps without a zone.
        rows: the function that `add_stream` got, for sources that take one.
        scratch: a directory for temporary files, if there is one.
        most_record_bytes: the setting; a longer record should become a dead letter.
        most_file_bytes: the setting; a larger file should become a dead letter.
    """

    stream: str
    format: str
    options: Options
    schema: "pa.Schema"
    spark_schema: Any = None
    session: Any = None
    time_zone: str = "UTC"
    rows: Callable[[int], Iterable[Mapping[str, Any]]] | None = None
    scratch: str = ""
    most_record_bytes: int = MOST_RECORD_BYTES
    most_file_bytes: int = MOST_FILE_BYTES


class Source(ABC):
    """A source of tuples that the driver polls, and that resumes at a journaled position.

    The constructor gets a `SourceContext`. It must not wait for anybody: connect in `resume` or
    `poll`. One thread polls all sources, so a method that waits makes other streams wait. If a
    method raises, the status and the log show the error, and the source is polled again a second
    later, then less and less often. Raise `headgate.errors.StreamFailed` to end the stream instead.
    """

    @abstractmethod
    def resume(self, position: Mapping[str, str]) -> None:
        """Continue after everything that is in the journal. Called before the first poll.

        It is called again only if it raises.

        Args:
            position: the last journaled value of every key; empty if the stream is new.
        """

    @abstractmethod
    def poll(self) -> Polled | None:
        """Return what is new, or None; never wait for it.

        A poll may be repeated before `taken` is called, because a disk was full or the process
        died. It must then return the same tuples again, in the same order. At most it may add some
        at the end. So do not acknowledge, delete or skip anything here.
        """

    @abstractmethod
    def taken(self, polled: Polled) -> None:
        """Move on: the journal has committed what `poll` returned.

        Only now may the source discard it. If this raises, it is called again before the next poll.
        A crash may prevent this call although the journal has
        the tuples. What decides is therefore the position that `resume` gets.
        """

    @property
    def trouble(self) -> str:
        """What keeps the source from reading a part of its input, in a sentence; "" if nothing.

        Raise it in `poll` instead if the source can read nothing.
        """
        return ""

    @property
    def is_empty(self) -> bool:
        """Return True if nothing was left to read at the source when `poll` has returned None.

        Return False if tuples may be on their way, or if a part of the input waits to be read.
        """
        return True

    def close(self) -> None:
        """Release what the source holds; it is not polled again."""
        return  # most sources hold nothing
