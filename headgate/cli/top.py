"""The command `top`: the overview of a run, live, in the terminal."""

from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.cli.operate import PIPELINE, STATE, lag_text, state_of
from headgate.cli.output.tables import out
from headgate.server import Client

MOST_QUERIES = 15


def top(state: STATE = None, pipeline: PIPELINE = None) -> None:
    """Show the classes and the slowest queries of a run until Ctrl-C; once, if not to a terminal.

    Example: headgate top --state state/forest
    """
    overviews = Client(state_of(state, pipeline)).overviews()
    if not out.is_terminal:
        out.print(screen(next(overviews)))
        return
    with Live(console=out, auto_refresh=False, screen=True) as live:
        for overview in overviews:
            live.update(screen(overview), refresh=True)


def screen(overview: dict[str, Any]) -> Group | Text:
    """Return what is shown of an overview."""
    if (starting := overview.get("starting")) is not None:
        return Text(f"starting: {starting['rehearsed']} of {starting['of']} queries rehearsed")
    used = overview["used"]
    head = Text(
        f"policy {overview['policy']}, {overview['busy']} of {overview['workers']} workers busy,"
        f" {used['memory']:.0%} of memory and {used['log']:.0%} of the log in use"
    )
    problems = [
        Text(f"query {name}: {query.get('cause', '')}", style="red")
        for name, query in overview["queries"].items()
        if query["state"] == "FAILED"
    ]
    problems += [
        Text("stream {stream} is {state}: {cause}".format_map(trouble), style="red")
        for trouble in overview["troubles"]
    ]
    problems += [
        Text(lag_text(stream, **lag), style="yellow") for stream, lag in overview["lags"].items()
    ]
    return Group(head, *problems, _classes(overview["classes"]), _queries(overview["queries"]))


def _classes(rows: dict[str, dict[str, Any]]) -> Table:
    table = _table("class", "queries", "mean", "p95", "waiting", "results/s", "QoS", "shed", "late")
    for name, row in sorted(rows.items(), key=lambda item: -item[1]["priority"]):
        table.add_row(
            name, f"{row['queries']:,}", _s(row.get("mean_response_s")),
            _s(row.get("p95_response_s")), f"{row['waiting']:,}", _number(row["results_per_s"]),
            _number(row.get("qos")), f"{row['shed']:,}", f"{row['late']:,}",
        )  # fmt: skip
    return table


def _queries(rows: dict[str, dict[str, Any]]) -> Table:
    slowest = sorted(rows.items(), key=lambda item: -(item[1].get("p95_response_s") or 0.0))
    table = _table("slowest queries", "class", "state", "mean", "p95", "waiting", "oldest")
    for name, row in slowest[:MOST_QUERIES]:
        table.add_row(
            name, row["class"], row["state"].lower(), _s(row.get("mean_response_s")),
            _s(row.get("p95_response_s")), f"{row['waiting']:,}", _s(row.get("oldest_waiting_s")),
        )  # fmt: skip
    return table


def _table(*names: str) -> Table:
    table = Table()
    for name in names:
        is_text = name in ("class", "state", names[0])
        table.add_column(name, justify="left" if is_text else "right")
    return table


def _s(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.2f} s"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
