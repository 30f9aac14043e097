"""Streams that are quiet: how far the clock has brought their time."""

from collections.abc import Iterable, Mapping

from headgate.model.stream import Stream
from headgate.model.window_ends import NEVER
from headgate.spark.event_time.timeline_entries import Stand


def passed_in_quiet(
    streams: Iterable[Stream],
    stands: Mapping[str, Stand],
    heard_at_s: dict[str, float],
    now_s: float,
) -> dict[str, int]:
    """Gives the times that quiet streams have come to, by name, where those are new.

    A stream that has been quiet for its `quiet_s` goes on at the pace of the clock. One that has
    had no tuple yet is where the others are.

    Args:
        heard_at_s: since when each is quiet; whatever is not in it is so from now on.
    """
    passed: dict[str, int] = {}
    without: list[str] = []
    for stream in streams:
        name, since_s = stream.name, heard_at_s.setdefault(stream.name, now_s)
        if stream.quiet_s is None or now_s - since_s < stream.quiet_s:
            continue
        if stands[name].heard == NEVER:
            without.append(name)
        else:
            passed[name] = stands[name].heard + round((now_s - since_s) * 1e6)
    tops = {name: each.top for name, each in stands.items()}
    passed |= dict.fromkeys(without, max({**tops, **passed}.values(), default=NEVER))
    return {name: top for name, top in passed.items() if top > tops[name]}
