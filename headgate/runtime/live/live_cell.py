"""A run in a cell of a notebook: its classes, shown again until the cell is stopped."""

import time
from collections.abc import Mapping
from html import escape
from importlib import import_module
from typing import Any, Protocol

from headgate.errors import ConfigRefused
from headgate.model.display.html_table import table_html


class Watched(Protocol):
    """What can be watched: a Headgate."""

    @property
    def running(self) -> bool: ...

    def overview(self) -> dict[str, Any]: ...


def watch(gate: Watched, *, seconds: float = 60.0, every_s: float = 1.0) -> None:
    """Show a run in the cell of a notebook, until its time is up, it ends, or the cell is stopped.

    The run goes on in any case.

    Raises:
        ConfigRefused: this is no notebook.
    """
    try:
        shows: Any = import_module("IPython.display")  # only notebooks have it
    except ImportError as error:
        raise ConfigRefused(
            path="watch", key="notebook", value=None,
            expected="a notebook: elsewhere, use `headgate top`",
        ) from error  # fmt: skip
    cell_output = shows.display(shows.HTML(overview_html(gate.overview())), display_id=True)
    ends_at_s = time.monotonic() + seconds
    try:
        while gate.running and (left_s := ends_at_s - time.monotonic()) > 0:
            time.sleep(min(every_s, left_s))
            if cell_output is not None:
                cell_output.update(shows.HTML(overview_html(gate.overview())))
    except KeyboardInterrupt:  # the stop button of the cell
        return


def overview_html(overview: Mapping[str, Any]) -> str:
    """Return the classes of a run as a table."""
    title = f"{len(overview['queries'])} queries under {overview['policy']}"
    if "classes" not in overview:
        return f"<b>{escape(title)}, not running</b>"
    heads = ("class", "queries", "mean s", "p95 s", "waiting", "results/s", "failed")
    rows = [
        (name, row["queries"], row["mean_response_s"], row["p95_response_s"], row["waiting"],
         row["results_per_s"], row["failed"])
        for name, row in overview["classes"].items()
    ]  # fmt: skip
    return table_html(title, heads, rows)
