"""The settings that decide the time of a timeline's streams, on record in the journal."""

import json
from collections.abc import Mapping, Sequence

from headgate.errors import RecoveryRefused
from headgate.model.stream import Stream
from headgate.spark.journal.derived_trains import DerivedTrains
from headgate.spark.journal.journal import Journal

Settings = Mapping[str, tuple[str, float]]
"""By stream, its event_time in lower case ("none" if it has none), and its lateness_s."""


def begins_anew(journal: Journal, timeline: str, streams: Sequence[Stream]) -> bool:
    """Record by which settings a timeline places tuples; return True if it has to begin anew.

    Its entries say how far the streams have come by these settings. If they are others now, the
    entries of a timeline that no query reads are dropped.

    Raises:
        RecoveryRefused: a query reads it, and would put out windows twice, or never.
    """
    settings = {
        stream.name: ((stream.event_time or "none").lower(), stream.lateness_s)
        for stream in streams
    }
    last_settings = _recorded(journal, timeline)
    others = [
        name for name in settings if last_settings.get(name, settings[name]) != settings[name]
    ]
    if others:
        _refuse_readers(journal, timeline, others[0], last_settings, settings)
        DerivedTrains(journal).forget([timeline])
    if others or not last_settings:
        with journal.transaction() as db:
            row = _key(timeline), json.dumps(settings)
            db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", row)
    return bool(others)


def _recorded(journal: Journal, timeline: str) -> Settings:
    rows = journal.read("SELECT value FROM about WHERE key = ?", (_key(timeline),))
    settings = json.loads(rows[0][0]) if rows else {}
    return {name: (event_time, lateness_s) for name, (event_time, lateness_s) in settings.items()}


def _key(timeline: str) -> str:
    return f"time settings of {timeline}"


def _refuse_readers(
    journal: Journal, timeline: str, stream: str, last_settings: Settings, settings: Settings
) -> None:
    rows = journal.read("SELECT query FROM cursors WHERE stream = ? ORDER BY query", (timeline,))
    if rows:
        readers = ", ".join(query for (query,) in rows)
        raise RecoveryRefused(
            subject=f"stream '{stream}'",
            expected=f"{_words(*last_settings[stream])}, as when the windows of {readers} began",
            found=_words(*settings[stream]),
            fix="restore them; to change them, drop these queries first, or use a new stream name"
            " or state directory",
        )


def _words(event_time: str, lateness_s: float) -> str:
    return f"event_time: {event_time} and lateness_s: {lateness_s:g}"
