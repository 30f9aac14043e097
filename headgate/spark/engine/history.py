"""SQL over the past: each stream of a state directory is a view over the trains it still has."""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.errors import QueryRefused, RecoveryRefused, TrainUnreadable, UnknownName
from headgate.model.network.network import REST
from headgate.model.query import Query
from headgate.model.settings import Settings
from headgate.model.stream import ARRIVED_AT
from headgate.spark.journal.cursors import other_text
from headgate.spark.jvm.arrow_frames import frame_of
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of
from headgate.spark.jvm.query.analysis import Analyst
from headgate.spark.jvm.time_zone import SESSION_ZONE
from headgate.spark.jvm.types import arrow_schema
from headgate.spark.log.files import verify_train
from headgate.spark.log.stream_log import train_file

MANY_FILES, MOST_BYTES = 32, 64 << 20
"""The driver reads the trains of a stream itself if they are at least this many files, which take
at most this many bytes together."""

NAME = "sql"
"""The name of a text over the past in refusals."""


def history_of(
    session: SparkSession, state: Path, text: str, settings: Settings | None = None
) -> DataFrame:
    """Return the rows that a SELECT finds in the trains of a state directory.

    Each stream is a view of that name in the session; the column `_arrived_at_s` holds the arrival.
    The journal is only read, so another process may run in the directory.

    Args:
        session: a session that nobody else uses: its settings and views are changed.
        settings: among them, what the text may cost and do.

    Raises:
        RecoveryRefused: the directory has no journal.
        UnknownName: the text names a table or stream that does not exist.
        QueryRefused: Spark cannot read the text, it is not a SELECT, or it breaks a rule.
        TrainUnreadable: the file of a train that the text reads has changed.
    """
    streams = kept_trains(state)
    # Trains are small and many: Spark would make one task per few dozen of them.
    session.conf.set("spark.sql.files.openCostInBytes", "4096")
    session.conf.set(SESSION_ZONE, recorded_zone(state))
    named = {name for name in streams if name.lower() in text.lower()}  # others are not read
    _verify(state, named)
    for name, (schema, files) in streams.items():
        _view(session, name, schema, files if name in named else [])
    try:
        analyst = Analyst(session, settings, state)
        return analyst.frame(Query(name=NAME, sql=text, query_class=""))
    except QueryRefused as error:
        cause = error.__cause__
        condition = cause.getCondition() if isinstance(cause, AnalysisException) else ""
        if isinstance(cause, AnalysisException) and condition == "TABLE_OR_VIEW_NOT_FOUND":
            name = (cause.getMessageParameters() or {}).get("relationName", "").strip("`")
            if "/" not in name:  # else it is a path
                raise UnknownName(kind="table or stream", name=name, known=streams) from error
        raise


@contextmanager
def refuse_failure() -> Iterator[None]:
    """Turn Spark's error for a text that fails while it runs into a refusal."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise QueryRefused(
            query=NAME, clause="the text", reason=f"failed: {cause_of(error)}",
            fix="correct the text, or leave out the rows that it fails on",
        ) from error  # fmt: skip


def kept_trains(state: Path) -> dict[str, tuple[str, list[str]]]:
    """Return the schema of each stream and its train files, in order.

    Raises:
        RecoveryRefused: the directory has no journal.
    """
    file = state / "journal.db"
    if not file.exists():
        raise RecoveryRefused(
            subject=f"state directory {state}",
            expected="a journal.db",
            found="none",
            fix="name the state directory of a pipeline that has run, by --state or --pipeline",
        )
    with _reading(state) as db:
        # Leave out the hidden streams between the segments of a query that is cut.
        hidden = {query + REST for (query,) in db.execute("SELECT query FROM cursors")}
        schemas = {
            name: schema
            for name, schema in db.execute("SELECT name, schema FROM streams ORDER BY name")
            if name not in hidden
        }
        rows = db.execute("SELECT stream, number FROM trains WHERE kept ORDER BY number").fetchall()
    files: dict[str, list[str]] = {name: [] for name in schemas}
    for stream, number in rows:
        # Retention may have removed the file since; timelines have no files.
        if stream in files and (train := train_file(state / "log" / stream, number)).exists():
            files[stream].append(str(train))
    return {name: (schema, files[name]) for name, schema in schemas.items()}


def _verify(state: Path, streams: Collection[str]) -> None:
    """Raise TrainUnreadable unless the trains of streams are those that were written."""
    with _reading(state) as db:
        if not any(row[1] == "checksum" for row in db.execute("PRAGMA table_info(trains)")):
            return  # of an older release
        rows = db.execute(
            "SELECT stream, number, checksum FROM trains WHERE kept AND checksum IS NOT NULL"
        ).fetchall()
    for stream, number, checksum in rows:
        path = train_file(state / "log" / stream, number)
        try:
            if stream in streams and path.exists():
                verify_train(path, stream, number, checksum)
        except TrainUnreadable:
            if path.exists():  # retention has not removed it meanwhile
                raise


def versions_of(state: Path) -> dict[str, int]:
    """Return how many texts each query of a state directory has had; none without a journal.

    A journal that SQLite cannot read has none either: the start refuses it when it opens it.
    """
    file = state / "journal.db"
    if not file.exists():
        return {}
    with _reading(state) as db:
        try:
            if not any(row[1] == "version" for row in db.execute("PRAGMA table_info(cursors)")):
                return {}  # of an older release
            return dict(db.execute("SELECT query, version FROM cursors"))
        except sqlite3.DatabaseError:
            return {}


def other_texts(state: Path, texts: Mapping[str, str]) -> dict[str, RecoveryRefused]:
    """Return, by query, the refusal of each text that is not that of the last run.

    Nothing is changed in the state directory. Without a journal that SQLite can read there is none.

    Args:
        texts: by query, the text with which it is about to start.
    """
    if not (state / "journal.db").exists():
        return {}
    with _reading(state) as db:
        try:
            old_texts = dict(db.execute("SELECT query, sql FROM cursors"))
        except sqlite3.DatabaseError:
            return {}
    return {
        query: other_text(query, old_texts[query], sql)
        for query, sql in texts.items()
        if old_texts.get(query, sql) != sql
    }


@contextmanager
def _reading(state: Path) -> Iterator[sqlite3.Connection]:
    """Open the journal of a state directory for reading.

    A journal in WAL mode cannot be read without two more files, which SQLite would create and leave
    there. Without them nobody writes, and the journal is read as it is.
    """
    file = state / "journal.db"
    is_open = file.with_name("journal.db-wal").exists()
    mode = "mode=ro" if is_open else "mode=ro&immutable=1"
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True)) as db:
        yield db


def recorded_zone(state: Path) -> str:
    """Return the time zone in which the queries of a state directory run."""
    with _reading(state) as db:
        row = db.execute("SELECT value FROM about WHERE key = 'zone'").fetchone()
    return str(row[0]) if row else "UTC"  # an earlier version wrote it, and knew only UTC


def _view(session: SparkSession, name: str, schema: str, files: list[str]) -> None:
    try:
        columns = cast(StructType, StructType.fromDDL(schema)).add(ARRIVED_AT, "double")
        reader = session.read.schema(columns)
    except SPARK_ERRORS:  # a column name needs quotes, which the journal does not store
        columns, reader = StructType().add(ARRIVED_AT, "double"), session.read
    frame = _read_in_driver(session, columns, files) if len(columns) > 1 else None
    if frame is None and files:
        frame = reader.option("ignoreMissingFiles", "true").parquet(*files)
    elif frame is None:
        frame = session.createDataFrame([], columns)
    frame.createOrReplaceTempView(name)


def _read_in_driver(
    session: SparkSession, columns: StructType, files: Sequence[str]
) -> DataFrame | None:
    """Read many small trains in the driver and return them as one frame.

    Return None if Spark must read them. Spark takes 2 to 5 ms per file, however small the file is;
    pyarrow takes a fraction of a millisecond. A text over 3 000 trains of 50 rows took half to two
    thirds of the time in all, on two busy cores.
    """
    small = [file for file in files if Path(file).is_file()]  # a large train is a folder
    try:
        if len(small) < MANY_FILES or sum(Path(file).stat().st_size for file in small) > MOST_BYTES:
            return None
        wanted = arrow_schema(columns)
        table = pa.concat_tables([_read(file) for file in small]).combine_chunks()
        frame = frame_of(session, table.select(wanted.names), columns)
    except (OSError, KeyError, pa.ArrowException, *SPARK_ERRORS):
        return None  # retention has just removed a file, for example
    large = sorted(set(files).difference(small))
    if not large:
        return frame
    rest = session.read.schema(columns).option("ignoreMissingFiles", "true").parquet(*large)
    return frame.unionByName(rest)


def _read(file: str) -> pa.Table:
    # A dataset of all files takes 1.5 times as long, with threads too.
    with pq.ParquetFile(file, memory_map=True) as train:
        return train.read(use_threads=False)
