"""Statistics that runs have measured, in a file of the state directory."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path as File

from headgate.model.query import QueryStatistics

FILE = "statistics.json"


def recorded_statistics(state: File) -> dict[str, QueryStatistics]:
    """Return the statistics that runs in a state directory have measured, by query."""
    try:
        text = (state / FILE).read_text()
        queries = json.loads(text)["queries"]
        return {name: QueryStatistics(**figures) for name, figures in queries.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # no file yet, or a broken one after a power failure: they are measured again


def record_statistics(
    state: File, statistics: Mapping[str, QueryStatistics], dropped: Collection[str] = ()
) -> None:
    """Add measured statistics to the file, atomically, for the next run and for simulations.

    Args:
        dropped: names of queries whose statistics are removed.
    """
    merged = {**recorded_statistics(state), **statistics}
    queries = {name: asdict(figures) for name, figures in merged.items() if name not in dropped}
    temporary = state / f".{FILE}"
    temporary.write_text(json.dumps({"queries": queries}, indent=1))
    temporary.replace(state / FILE)
