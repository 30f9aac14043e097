"""The command `why`: why did my query wait?"""

import json
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from headgate.cli.operate import JSON, PIPELINE, STATE, state_of
from headgate.cli.tables import out, show
from headgate.errors import ConfigRefused
from headgate.server import Client

MEANINGS = {
    "source": "until it was in the log",
    "turn": "until its turn",
    "running": "in a call",
    "retry": "until it was tried again",
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

    Example: headgate why night_frost --state state/forest
    """
    answer = Client(state_of(state, pipeline)).why(query, _instant(moment))
    if as_json:
        print(json.dumps(answer))
        return
    began_s = answer["arrival"]
    out.print(
        f"{query}: {_s(answer['response_s'])} from {_clock(began_s)} to {_clock(answer['commit'])},"
        f" call {answer['call']} over stream {answer['stream']}, {answer['lane']} lane,"
        f" policy {answer['policy']}", highlight=False, markup=False,
    )  # fmt: skip
    parts = Table("part", "after", "for", "waited")
    for part in answer["parts"]:
        duration_s = part["to"] - part["from"]
        parts.add_row(
            part["kind"], _s(part["from"] - began_s), _s(duration_s), MEANINGS[part["kind"]]
        )
    show(parts)
    if answer["instead"]:
        calls = Table("ran instead", "class", "after", "for", "why")
        for call in answer["instead"]:
            calls.add_row(
                _names(call["queries"]), call["class"], _s(max(0.0, call["from"] - began_s)),
                _s(call["to"] - max(call["from"], began_s)), call["reason"],
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


def _names(queries: list[Any]) -> str:
    more = f" and {len(queries) - MOST_NAMES} more" if len(queries) > MOST_NAMES else ""
    return ", ".join(map(str, queries[:MOST_NAMES])) + more


def _clock(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s).astimezone():%H:%M:%S.%f}"[:-3]


def _s(seconds: float) -> str:
    return f"{seconds:.3f} s"
