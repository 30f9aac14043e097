"""Quiet streams: how far the clock has advanced their event time."""

from collections.abc import Iterable, Mapping

from headgate.model.stream import Stream
from headgate.model.window_ends import NEVER
from headgate.spark.event_time.timeline_entries import Stand


def passed_in_quiet(
    streams: Iterable[Stream],
    stands: Mapping[str, Stand],
    heard_at_s: dict[str, float],
    now_s: Mapping[str, float],
) -> dict[str, int]:
    """Return the times that quiet streams have reached, by name, if they are new.

    Once a stream has been quiet for its `quiet_s`, its time advances with the clock. A stream that
    has had no tuple yet takes the greatest time of the others.

    Args:
        heard_at_s: since when each stream is quiet; one that is missing is added, quiet from now.
        now_s: the time, by the clock of each stream.
    """
    passed: dict[str, int] = {}
    without_tuples: list[str] = []
    for stream in streams:
        name = stream.name
        quiet_s = now_s[name] - heard_at_s.setdefault(name, now_s[name])
        if stream.quiet_s is None or quiet_s < stream.quiet_s:
            continue
        if stands[name].heard == NEVER:
            without_tuples.append(name)
        else:
            passed[name] = stands[name].heard + round(quiet_s * 1e6)
    tops = {name: stand.top for name, stand in stands.items()}
    passed |= dict.fromkeys(without_tuples, max({**tops, **passed}.values(), default=NEVER))
    return {name: top for name, top in passed.items() if top > tops[name]}
