"""The tables of the journal, and how a journal of an older release is upgraded."""

import sqlite3

VERSION = 4

TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS streams (name TEXT PRIMARY KEY, schema TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS trains (
  stream TEXT, number INTEGER, source_batch INTEGER, tuples INTEGER, bytes INTEGER,
  head_arrived_at_s REAL, mean_arrived_at_s REAL, first_tuple INTEGER, kept INTEGER DEFAULT 1,
  first_letter INTEGER DEFAULT 0, top INTEGER, origin INTEGER, checksum INTEGER,
  PRIMARY KEY (stream, number), UNIQUE (stream, source_batch));
CREATE TABLE IF NOT EXISTS cursors (
  query TEXT PRIMARY KEY, sql TEXT, stream TEXT, first_train INTEGER, next_train INTEGER,
  first_tuple INTEGER, tuples_in INTEGER DEFAULT 0, tuples_out INTEGER DEFAULT 0,
  delivered INTEGER DEFAULT 0, shed INTEGER DEFAULT 0, missed INTEGER DEFAULT 0,
  late INTEGER DEFAULT 0, version INTEGER DEFAULT 1, paused INTEGER DEFAULT 0,
  dead INTEGER DEFAULT 0, letters_to INTEGER, backfill_end INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS ids (id INTEGER PRIMARY KEY AUTOINCREMENT, query TEXT UNIQUE);
CREATE TABLE IF NOT EXISTS entries (
  timeline TEXT, number INTEGER, stream TEXT, train INTEGER, tuples INTEGER, first_tuple INTEGER,
  before INTEGER, top INTEGER, arrived_at_s REAL, reach INTEGER,
  PRIMARY KEY (timeline, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS positions (
  stream TEXT, key TEXT, value TEXT, PRIMARY KEY (stream, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS letters (
  stream TEXT PRIMARY KEY, records INTEGER DEFAULT 0, bytes INTEGER, source_batch INTEGER);
CREATE TABLE IF NOT EXISTS beginnings (
  query TEXT, stream TEXT, first_letter INTEGER, PRIMARY KEY (query, stream)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS intents (step INTEGER, query TEXT, temporary TEXT, final TEXT);
CREATE TABLE IF NOT EXISTS replaced (
  file TEXT PRIMARY KEY, modified_ns INTEGER, remove_at_s REAL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shedding (
  query TEXT, stream TEXT, train INTEGER, fraction REAL, value_column TEXT, points TEXT,
  threshold REAL, reason TEXT, at_s REAL, PRIMARY KEY (query, stream, train)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS replaced_due ON replaced (remove_at_s);
"""

LATER_COLUMNS = (
    ("trains", "first_letter", "INTEGER DEFAULT 0"),
    ("trains", "top", "INTEGER"),
    ("trains", "origin", "INTEGER"),
    ("trains", "checksum", "INTEGER"),
    ("entries", "reach", "INTEGER"),
    ("cursors", "version", "INTEGER DEFAULT 1"),
    ("cursors", "paused", "INTEGER DEFAULT 0"),
    ("cursors", "backfill_end", "INTEGER DEFAULT 0"),
    ("cursors", "dead", "INTEGER DEFAULT 0"),
    ("cursors", "letters_to", "INTEGER"),
)
"""Columns that a journal of an older release does not have: table, name and type."""


def create_tables(db: sqlite3.Connection) -> None:
    """Create the tables and columns that a journal does not have yet."""
    db.executescript(TABLES)
    for table, column, kind in LATER_COLUMNS:
        columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
        if column not in columns:
            db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    db.execute("INSERT OR IGNORE INTO about VALUES ('generation', 0)")


def generation_of(db: sqlite3.Connection) -> int:
    """Return how many durable transactions the journal has had."""
    return int(db.execute("SELECT value FROM about WHERE key = 'generation'").fetchone()[0])


def next_generation(db: sqlite3.Connection) -> int:
    """Count the transaction under way, and return its number."""
    sql = "UPDATE about SET value = value + 1 WHERE key = 'generation' RETURNING value"
    return int(db.execute(sql).fetchall()[0][0])


def upgrade(db: sqlite3.Connection) -> str:
    """Record the version of a new journal, and upgrade one of version 3; return the version."""
    db.execute("INSERT OR IGNORE INTO about VALUES ('version', ?)", (str(VERSION),))
    version = str(db.execute("SELECT value FROM about WHERE key = 'version'").fetchone()[0])
    if version == "3":
        # Until version 4 all queries ran in UTC, whatever the session's zone was.
        version = str(VERSION)
        db.execute("INSERT OR IGNORE INTO about VALUES ('zone', 'UTC')")
        db.execute("UPDATE about SET value = ? WHERE key = 'version'", (version,))
    return version
