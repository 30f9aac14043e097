"""The command `why`: why did my query wait?"""

import json
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from headgate.cli.operate import JSON, PIPELINE, STATE, state_of
from headgate.cli.output.tables import out, show
from headgate.errors import ConfigRefused, RecoveryRefused
from headgate.runtime import past_why
from headgate.server import Client

MEANINGS = {
    "source": "until its source's log had it",
    "backpressure": "until a budget had room again",
    "partner": "until the other streams had come as far",
    "bound": "until a silent stream was known to have come as far",
    "window": "until the order of its window's stream was certain",
    "log": "until the log of a view or segment had it",
    "turn": "until its turn",
    "running": "in a call",
    "committing": "until its results were visible",
    "retry": "until it was tried again",
    "paused": "until the query went on",
}
MOST_NAMES = 4


def why(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query's name.")],
    moment: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="When the results were committed, as 2026-03-01T09:30:05 or in seconds since 1970."
            " Default: the worst of the last minute.",
        ),
    ] = None,
    state: STATE = None,
    pipeline: PIPELINE = None,
    as_json: JSON = False,
) -> None:
    """Explain why the slowest result of a query's call took so long, and which calls ran instead.

    It also answers after the run has ended, for its last hour.

    Example: headgate why night_frost --state state/forest
    """
    folder = state_of(state, pipeline)
    try:
        answer = Client(folder).why(query, _instant(moment))
    except RecoveryRefused:
        past = past_why(folder, query, _instant(moment))
        if past is None:
            raise
        answer = past
    if as_json:
        print(json.dumps(answer))
        return
    began_s = answer["arrival"]
    out.print(
        f"{query}: {_s(answer['response_s'])} from {_clock(began_s)} to {_clock(answer['commit'])},"
        f" call {answer['call']} over stream {answer['stream']}, {answer['lane']} lane,"
        f" policy {answer['policy']}", highlight=False, markup=False,
    )  # fmt: skip
    parts = Table("part", "of", "after", "for", "waited")
    for part in answer["parts"]:
        duration_s = part["to"] - part["from"]
        parts.add_row(
            part["kind"], part["segment"], _s(part["from"] - began_s), _s(duration_s),
            MEANINGS[part["kind"]],
        )  # fmt: skip
    show(parts)
    if answer["instead"]:
        calls = Table("ran instead", "class", "after", "for", "priority", "own", "why")
        for call in answer["instead"]:
            calls.add_row(
                _names(call["queries"]), call["class"], _s(max(0.0, call["from"] - began_s)),
                _s(call["to"] - max(call["from"], began_s)), _priority(call["priority"]),
                _priority(call["own_priority"]), call["reason"],
            )  # fmt: skip
        show(calls)


def _instant(text: str | None) -> float | None:
    """Return the seconds since 1970 that a text means.

    >>> _instant("12.5"), _instant("1970-01-01T00:00:07+00:00")
    (12.5, 7.0)
    """
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        raise ConfigRefused(
            path="headgate why", key="--at", value=text,
            expected="a time, as 2026-03-01T09:30:05, or seconds since 1970",
        ) from error  # fmt: skip


def _priority(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _names(queries: list[Any]) -> str:
    more = f" and {len(queries) - MOST_NAMES} more" if len(queries) > MOST_NAMES else ""
    return ", ".join(map(str, queries[:MOST_NAMES])) + more


def _clock(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s).astimezone():%H:%M:%S.%f}"[:-3]


def _s(seconds: float) -> str:
    return f"{seconds:.3f} s"
