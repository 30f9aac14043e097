"""Statistics that runs have measured, in a file of the state directory."""

from collections.abc import Collection, Mapping
from pathlib import Path as File

from pydantic import TypeAdapter, ValidationError

from headgate.access import PRIVATE
from headgate.model.query import QueryStatistics

FILE = "statistics.json"

_CONTENT = TypeAdapter(dict[str, dict[str, QueryStatistics]])


def recorded_statistics(state: File) -> dict[str, QueryStatistics]:
    """Return the statistics that runs in a state directory have measured, by query."""
    try:
        return _CONTENT.validate_json((state / FILE).read_bytes())["queries"]
    except (OSError, ValidationError, KeyError):
        return {}  # no file yet, or a broken one after a power failure: they are measured again


def record_statistics(
    state: File, statistics: Mapping[str, QueryStatistics], dropped: Collection[str] = ()
) -> None:
    """Add measured statistics to the file, atomically, for the next run and for simulations.

    Args:
        dropped: names of queries whose statistics are removed.
    """
    merged = {**recorded_statistics(state), **statistics}
    queries = {name: figures for name, figures in merged.items() if name not in dropped}
    temporary = state / f".{FILE}"
    PRIVATE.write(temporary, _CONTENT.dump_json({"queries": queries}, indent=1))
    temporary.replace(state / FILE)
