"""Rows of the journal: trains, and dead letters that came with them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Train:
    """A train's row in the journal.

    Args:
        top: for a derived stream, the time that its producer had reached with the train.
        checksum: of its files; None if an older release has written them.
    """

    number: int
    tuples: int
    bytes: int
    head_arrived_at_s: float
    mean_arrived_at_s: float
    top: int | None = None
    checksum: int | None = None


@dataclass(frozen=True)
class NewTrain:
    """A train to add to the log, and the number of its batch in the source.

    Args:
        origin: for a derived stream, the first train of its producer's input that it comes from.
    """

    stream: str
    train: Train
    source_batch: int
    origin: int | None = None


@dataclass(frozen=True)
class NewLetters:
    """Dead letters to add to the journal: how many, and the size of their file with them.

    Args:
        stream: the name of the stream, or of a query's file.
        source_batch: the source's batch that they were in, if Structured Streaming numbers batches.
    """

    stream: str
    records: int
    end_bytes: int
    source_batch: int | None = None
