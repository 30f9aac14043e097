"""What runs have measured, kept as a file in the state directory."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path as File

from headgate.model.query import QueryStatistics

FILE = "statistics.json"


def recorded_statistics(state: File) -> dict[str, QueryStatistics]:
    """Gives what runs in a state directory have measured, by query."""
    try:
        text = (state / FILE).read_text()
        figures = json.loads(text)["queries"]
        return {name: QueryStatistics(**each) for name, each in figures.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # none yet, or not whole after a power failure: they are measured again


def record_statistics(
    state: File, known: Mapping[str, QueryStatistics], dropped: Collection[str] = ()
) -> None:
    """Keeps what has been measured, for the next run and for simulations; whole or not at all.

    Args:
        dropped: names of queries of which nothing is kept.
    """
    all_known = {**recorded_statistics(state), **known}
    figures = {name: asdict(each) for name, each in all_known.items() if name not in dropped}
    temporary = state / f".{FILE}"
    temporary.write_text(json.dumps({"queries": figures}, indent=1))
    temporary.replace(state / FILE)
