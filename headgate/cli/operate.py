"""The commands for a running Headgate, and SQL over the stored tuples."""

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from headgate.cli.output.policy_tables import show_policy
from headgate.cli.output.tables import out, show
from headgate.config import Pipeline, read_mapping, read_pipeline
from headgate.errors import ConfigRefused, RecoveryRefused
from headgate.runtime import Drawing, Explanation, drawn, explained, past, write_page
from headgate.server import Client

STATE = Annotated[
    str | None, typer.Option(metavar="DIR", help="State directory of the run. Default: `state`.")
]
PIPELINE = Annotated[
    str | None, typer.Option(metavar="FILE", help="Pipeline file whose state directory is used.")
]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def add(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="YAML file with streams, views and queries.")
    ],
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Add streams, views and queries to a run: all of them, or none if one is refused.

    The file has only `streams`, `views` and `queries`, written as in a pipeline file.

    Example: headgate add more.yaml --state state/forest
    """
    added = Client(state_of(state, pipeline)).add(read_mapping(file), file)
    print(f"added: {', '.join(added)}")


def drop(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of a query or a stream.")],
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Drop a query of a run, or a stream that no query reads. Results stay.

    Example: headgate drop night_frost --state state/forest
    """
    kind = Client(state_of(state, pipeline)).drop(name)
    print(f"dropped: {kind} {name}")


def status(state: STATE = None, pipeline: PIPELINE = None, as_json: JSON = False) -> None:
    """Show every query of a run: state, waiting tuples, response times, lane, tuples lost.

    The age of the oldest waiting tuple is that of now; tuples per second, mean and 95th percentile
    of the response time are of the last minute. With --json they are also of the whole run.

    Below the table is what requests have changed of the pipeline file, the causes of failed
    queries, what is dropped in overload and why, what
    cannot be delivered as it is asked, and the causes of streams whose sources do not deliver.
    While a run is starting, show how many of its queries have been rehearsed. The exit
    code is 3 while a query has failed or a stream has stopped.

    Example: headgate status --state state/forest
    """
    client = Client(state_of(state, pipeline))
    answer = client.status()
    code = 3 if is_unhealthy(answer) else 0
    if as_json:
        print(json.dumps(answer))
        raise typer.Exit(code)
    if (starting := answer.get("starting")) is not None:
        progress = f"{starting['rehearsed']} of {starting['of']} queries rehearsed"
        print(f"starting: {progress} by process {client.pid}")
        return
    table = Table()
    texts = ("query", "class", "state", "lane")
    for name in (*texts, "waiting", "oldest s", "per s", "mean s", "p95 s", "shed", "missed"):
        table.add_column(name, justify="left" if name in texts else "right")
    for query in answer["queries"]:
        minute, account = query["last_minute"], query["account"] or {}
        table.add_row(
            query["query"], query["class"], query["state"], query["lane"] or "–",
            f"{query['waiting']:,}", _short(query["oldest_waiting_s"]),
            _short(minute["tuples_per_s"]), _short(minute["mean_response_s"]),
            _short(minute["p95_response_s"]),
            f"{account.get('shed', 0):,}", f"{account.get('missed', 0):,}",
        )  # fmt: skip
    out.print(f"policy {answer['policy']}", highlight=False, markup=False)
    show(table)
    for text in answer["differs"]:
        out.print(text, highlight=False, markup=False, soft_wrap=True)
    for query in answer["queries"]:
        if query["cause"]:
            out.print(query["cause"], highlight=False, markup=False)
    for query in answer["queries"]:
        if (shedding := query["shedding"]) is not None:
            text = f"{query['query']} drops {shedding['fraction']:.0%} of its tuples:"
            out.print(text, shedding["reason"], highlight=False, markup=False)
        if query["unmet"] is not None:
            text = f"{query['query']} cannot deliver what is asked: {query['unmet']}"
            out.print(text, highlight=False, markup=False)
    for query in answer["queries"]:
        if (delay_s := query["added_delay_s"]) is not None:
            text = f"results of {query['query']} are visible up to {delay_s:.1f} s after the commit"
            out.print(text, highlight=False, markup=False)
    for query in answer["queries"]:
        if results := query["backfilled"]:
            text = f"results of {query['query']} from before it was added: {results:,}"
            out.print(text, highlight=False, markup=False)
    for trouble in answer["stream_troubles"]:
        text = "stream {stream} is {state}: {cause}".format_map(trouble)
        out.print(text, highlight=False, markup=False, soft_wrap=True)
    for lag in answer["stream_lags"]:
        out.print(lag_text(**lag), highlight=False, markup=False)
    for stream, letters in answer["dead_letters"].items():
        out.print(f"dead letters of {stream}: {letters:,}", highlight=False, markup=False)
    for query in answer["queries"]:
        if letters := query["dead_letters"]:
            text = f"dead letters of query {query['query']}: {letters:,}"
            out.print(text, highlight=False, markup=False)
    raise typer.Exit(code)


def lag_text(stream: str, behind_s: float, since_s: float) -> str:
    """Return in words how far a stream lags behind its source."""
    since = datetime.fromtimestamp(since_s).astimezone()
    return f"stream {stream} lags {behind_s:,.1f} s behind its source since {since:%H:%M:%S}"


def _short(value: float | None) -> str:
    """Return a number with two decimals if it is small, and without if it is large.

    >>> _short(None), _short(0.123), _short(54.32), _short(1234.5)
    ('–', '0.12', '54.3', '1,234')
    """
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def is_unhealthy(status: dict[str, Any]) -> bool:
    """Return True if a query has failed or a stream has stopped."""
    failed = any(query["state"] == "FAILED" for query in status["queries"])
    return failed or any(trouble["state"] == "STOPPED" for trouble in status["stream_troubles"])


def health(state: STATE = None, pipeline: PIPELINE = None, as_json: JSON = False) -> None:
    """Ask whether a run is healthy: it goes on, no query has failed, no stream has stopped.

    The exit code is 0 if it is, 3 if it is not or if nothing runs.

    Example: headgate health --state state/forest
    """
    folder = state_of(state, pipeline)
    try:
        answer = Client(folder).health()
    except RecoveryRefused as error:
        print(error, file=sys.stderr)
        raise typer.Exit(3) from error
    if as_json:
        print(json.dumps(answer))
    else:
        failed, stopped = answer["failed_queries"], answer["stopped_streams"]
        word = "healthy" if answer["healthy"] else "unhealthy"
        ready = "ready" if answer["ready"] else "not ready"
        print(f"{word}, {ready}: {failed} queries have failed, {stopped} streams have stopped")
    raise typer.Exit(0 if answer["healthy"] else 3)


def explain(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="The query's name.")] = None,
    state: STATE = None,
    pipeline: PIPELINE = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Draw the network: which query reads which stream, and what is shared."
        ),
    ] = False,
    html: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a picture of the network to this file."),
    ] = None,
    policy: Annotated[
        bool,
        typer.Option(
            "--policy", help="Explain the policy of a run: of `amos`, who was in charge, and why."
        ),
    ] = False,
    as_json: JSON = False,
) -> None:
    """Explain how a query runs: operators, shared code, lane, figures, sink, cursor, policy.

    With --all or --html, explain the whole network: streams, the parts that queries share, queries,
    sinks. If nothing runs, the explanation comes from the file of --pipeline and the statistics of
    its last run.

    Example: headgate explain fire_alarm --pipeline examples/forest.yaml
    """
    if policy and query is None and not everything and html is None:
        show_policy(Client(state_of(state, pipeline)).policy_explanation(), as_json=as_json)
        return
    if policy or (query is None) != (everything or html is not None):
        raise ConfigRefused(
            path="headgate explain", key="QUERY", value=query,
            expected="the name of a query, or --all, --html FILE or --policy and no name",
        )  # fmt: skip
    file = _pipeline(state, pipeline)
    try:
        client = Client(state_of(state, pipeline))
    except RecoveryRefused as error:
        if file is None:
            raise
        print(f"{error.subject}: {error.found}; explained by {pipeline}", file=sys.stderr)
        result = drawn(file) if query is None else explained(file, query)
    else:
        result = (
            Drawing.from_dict(client.drawing())
            if query is None
            else Explanation.from_dict(client.explanation(query))
        )
    if html is not None and isinstance(result, Drawing):
        write_page(result, html)
        print(f"written: {html}")
    if html is None or everything:
        print(json.dumps(result.to_dict()) if as_json else result.text())


def sql(
    text: Annotated[str, typer.Argument(metavar="SELECT", help="A SELECT over the streams.")],
    state: STATE = None,
    pipeline: PIPELINE = None,
    limit: Annotated[int, typer.Option(min=1, help="Most rows to show.")] = 100,
    as_json: JSON = False,
) -> None:
    """Run SQL over the stored tuples of the streams, in a separate Spark, even during a run.

    Every stream is a table; `_arrived_at_s` is when a tuple arrived, in seconds since 1970. The
    limits and permissions of the --pipeline file apply, or the defaults without one.

    Example: headgate sql "SELECT count(*) FROM sensors" --state state/forest
    """
    file = _pipeline(state, pipeline)
    columns, rows, cut = past(state_of(state, pipeline), text, limit, file)
    if as_json:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], default=str))
    else:
        table = Table(*columns)
        for row in rows:
            table.add_row(*("NULL" if value is None else str(value) for value in row))
        show(table, markup=False)
    if cut:
        print(f"cut after {limit} rows; --limit N shows more", file=sys.stderr)


def stop(state: STATE = None, pipeline: PIPELINE = None) -> None:
    """Stop a run cleanly and wait for its end. A new start resumes it.

    Example: headgate stop --state state/forest
    """
    folder = state_of(state, pipeline)
    if not Client(folder).stop():
        print(f"{folder}: the run has not stopped yet; see headgate.log", file=sys.stderr)
        raise typer.Exit(1)
    print(f"stopped: {folder}")


def _pipeline(state: str | None, file: str | None) -> Pipeline | None:
    flags: dict[str, Any] = {"state": state} if state else {}
    return None if file is None else read_pipeline(file, os.environ, **flags)


def state_of(state: str | None, file: str | None) -> Path:
    """Return the state directory: that of --state, of the pipeline file, or `state`."""
    pipeline = _pipeline(state, file)
    return Path(state or "state") if pipeline is None else Path(pipeline.state)
