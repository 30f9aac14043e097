"""The verbs for a Headgate that runs, and SQL over its past."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from headgate.cli.tables import out
from headgate.config import Pipeline, read_mapping, read_pipeline
from headgate.errors import ConfigRefused, RecoveryRefused
from headgate.runtime import Drawing, Explanation, drawn, explained, past, write_page
from headgate.server import Client

STATE = Annotated[
    str | None, typer.Option(metavar="DIR", help="State directory of the run; else `state`.")
]
PIPELINE = Annotated[
    str | None, typer.Option(metavar="FILE", help="A pipeline file: its state directory is meant.")
]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

set_app = typer.Typer(no_args_is_help=True, help="Changes the policy of a run, or what it is for.")


def add(
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML with streams, views, queries.")],
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Adds streams, views and queries to a run; all of them, or none where one is refused.

    The file has `streams`, `views` and `queries` as a pipeline file has them, and nothing else.

    Example: headgate add more.yaml --state state/forest
    """
    added = Client(_state(state, pipeline)).add(read_mapping(file), file)
    print(f"added: {', '.join(added)}")


def drop(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A query, or a stream.")],
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Drops a query of a run, or a stream that no query reads; results stay.

    Example: headgate drop night_frost --state state/forest
    """
    kind = Client(_state(state, pipeline)).drop(name)
    print(f"dropped: {kind} {name}")


@set_app.command("policy")
def set_policy(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="As in cqc(inner=hr).")],
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Lets another policy decide from now on; nothing is lost and nothing runs twice.

    Example: headgate set policy "cqc(inner=hr)" --state state/forest
    """
    print(f"policy: {Client(_state(state, pipeline)).set_policy(policy)}")


@set_app.command("specification")
def set_specification(
    rows: Annotated[
        str, typer.Argument(metavar="ROWS", help="METRIC:minimize|maximize:WEIGHT,...")
    ],
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Changes what counts for a run under `amos`.

    Example: headgate set specification "pending:minimize:0.75,mean_response_s:minimize:0.25"
    """
    Client(_state(state, pipeline)).set_specification(rows)
    print(f"specification: {rows}")


def status(state: STATE = None, pipeline: PIPELINE = None, as_json: JSON = False) -> None:
    """Shows every query of a run: state, waiting tuples, mean response, lane, tuples lost.

    Of a run that is starting it says how many queries are rehearsed.

    Example: headgate status --state state/forest
    """
    found = Client(_state(state, pipeline)).status()
    if as_json:
        print(json.dumps(found))
        return
    if (starting := found.get("starting")) is not None:
        print(f"starting: {starting['rehearsed']} of {starting['of']} queries rehearsed")
        return
    table = Table()
    for name in ("query", "class", "state", "waiting", "mean s", "lane", "shed", "missed"):
        right = name in ("waiting", "mean s", "shed", "missed")
        table.add_column(name, justify="right" if right else "left")
    for each in found["queries"]:
        mean_s, account = each["mean_response_s"], each["account"] or {}
        table.add_row(
            each["query"], each["class"], each["state"], f"{each['waiting']:,}",
            "–" if mean_s is None else f"{mean_s:.2f}", each["lane"] or "–",
            f"{account.get('shed', 0):,}", f"{account.get('missed', 0):,}",
        )  # fmt: skip
    out.print(f"policy {found['policy']}", highlight=False, markup=False)
    out.print(table)
    for each in found["queries"]:
        if each["cause"]:
            out.print(each["cause"], highlight=False, markup=False)
    for stream, letters in found["dead_letters"].items():
        out.print(f"dead letters of {stream}: {letters:,}", highlight=False, markup=False)


def explain(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="The query's name.")] = None,
    state: STATE = None,
    pipeline: PIPELINE = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Draw the network: what reads which stream, and shares.")
    ] = False,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the network as a picture.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Explains how a query runs: operators, shared code, lane, figures, sink, cursor, policy.

    With --all or --html, how all of them do: streams, the parts that queries share, queries, sinks.
    Where nothing runs, the queries of --pipeline are explained by the file and the last run's
    record.

    Example: headgate explain fire_alarm --pipeline examples/forest.yaml
    """
    if (query is None) != (everything or html is not None):
        raise ConfigRefused(
            path="headgate explain", key="QUERY", value=query,
            expected="the name of a query, or --all or --html FILE and no name",
        )  # fmt: skip
    file = _pipeline(state, pipeline)
    try:
        client = Client(_state(state, pipeline))
    except RecoveryRefused as error:
        if file is None:
            raise
        print(f"{error.subject}: {error.found}; explained by {pipeline}", file=sys.stderr)
        found = drawn(file) if query is None else explained(file, query)
    else:
        found = (
            Drawing.from_dict(client.drawing())
            if query is None
            else Explanation.from_dict(client.explanation(query))
        )
    if html is not None and isinstance(found, Drawing):
        write_page(found, html)
        print(f"written: {html}")
    if html is None or everything:
        print(json.dumps(found.to_dict()) if as_json else found.text())


def sql(
    text: Annotated[str, typer.Argument(metavar="SELECT", help="A SELECT over the streams.")],
    state: STATE = None,
    pipeline: PIPELINE = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows to show at the most.")] = 100,
    as_json: JSON = False,
) -> None:
    """Runs SQL over what the streams have kept, in a Spark of its own, also beside a run.

    Every stream is a table; `_arrived_at_s` is when a tuple arrived, in seconds since 1970. The
    limits and allowances of --pipeline apply, else the defaults.

    Example: headgate sql "SELECT count(*) FROM sensors" --state state/forest
    """
    file = _pipeline(state, pipeline)
    rules = None if file is None else file.admission_rules()
    columns, rows, cut = past(_state(state, pipeline), text, limit, rules)
    if as_json:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], default=str))
    else:
        table = Table(*columns)
        for row in rows:
            table.add_row(*("NULL" if value is None else str(value) for value in row))
        out.print(table, highlight=False, markup=False)
    if cut:
        print(f"cut after {limit} rows; --limit N shows more", file=sys.stderr)


def stop(state: STATE = None, pipeline: PIPELINE = None) -> None:
    """Stops a run cleanly and waits for its end; a new start resumes.

    Example: headgate stop --state state/forest
    """
    folder = _state(state, pipeline)
    if not Client(folder).stop():
        print(f"{folder}: asked to stop, and has not yet; see headgate.log", file=sys.stderr)
        raise typer.Exit(1)
    print(f"stopped: {folder}")


def _pipeline(state: str | None, file: str | None) -> Pipeline | None:
    flags: dict[str, Any] = {"state": state} if state else {}
    return None if file is None else read_pipeline(file, os.environ, **flags)


def _state(state: str | None, file: str | None) -> Path:
    """Gives the directory that is meant: by itself, by a pipeline file, or `state`."""
    pipeline = _pipeline(state, file)
    return Path(state or "state") if pipeline is None else Path(pipeline.state)
