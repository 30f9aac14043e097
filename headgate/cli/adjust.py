"""The commands that change the policy of a running Headgate, its specification, and queries."""

import json
from typing import Annotated, Any

import typer

from headgate.cli.operate import PIPELINE, STATE, state_of
from headgate.server import Client

set_app = typer.Typer(
    no_args_is_help=True,
    help="Change the policy of a run, its performance specification, or a query."
    "\n\nExample: headgate set policy hnr --state state/forest",
)


@set_app.command("policy")
def set_policy(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY", help="A policy with its parameters, such as cqc(inner=hr)."
        ),
    ],
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Change the policy of a run. Nothing is lost and nothing runs twice.

    Example: headgate set policy "cqc(inner=hr)" --state state/forest
    """
    print(f"policy: {Client(state_of(state, pipeline)).set_policy(policy)}")


@set_app.command("library")
def add_to_library(
    policy: Annotated[
        str, typer.Argument(metavar="POLICY", help="The policy to add, with its parameters.")
    ],
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Add a policy to those among which a running `amos` chooses, until the run ends.

    Example: headgate set library "bsd(search=log)" --state state/forest
    """
    Client(state_of(state, pipeline)).add_policy(policy)
    print(f"added: {policy}")


@set_app.command("specification")
def set_specification(
    rows: Annotated[
        str,
        typer.Argument(
            metavar="ROWS", help="Rows of METRIC:minimize|maximize:WEIGHT, separated by commas."
        ),
    ],
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Change the performance specification of a run under the policy `amos`.

    Example: headgate set specification "pending:minimize:0.75,mean_response_s:minimize:0.25"
    """
    Client(state_of(state, pipeline)).set_specification(rows)
    print(f"specification: {rows}")


@set_app.command("query")
def set_query(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of a query.")],
    query_class: Annotated[
        str | None, typer.Option("--class", metavar="CLASS", help="Its new class.")
    ] = None,
    weight: Annotated[float | None, typer.Option(help="Its new weight.")] = None,
    deadline: Annotated[
        str | None,
        typer.Option(metavar="SECONDS", help="Seconds until a result is due, or `none`."),
    ] = None,
    qos: Annotated[
        str | None,
        typer.Option(
            metavar="POINTS", help='QoS graph, such as "[[0, 1], [2, 1], [5, 0]]", or `none`.'
        ),
    ] = None,
    on_error: Annotated[
        str | None,
        typer.Option(
            metavar="fail|dead_letter",
            help="What happens if an expression fails on a tuple: the query fails, or the tuple"
            " goes to its dead letters.",
        ),
    ] = None,
    commit_every: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS",
            help="Seconds for which results are collected before they become visible, or `none`.",
        ),
    ] = None,
    target_file_mb: Annotated[
        str | None,
        typer.Option(
            metavar="MB",
            help="Megabytes at which collected results become visible at once, and up to which"
            " files are compacted, or `none`.",
        ),
    ] = None,
    compact: Annotated[
        bool | None,
        typer.Option("--compact/--no-compact", help="Whether small files of results are merged."),
    ] = None,
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Change what a query is worth, its on_error, or how its results become files.

    The next start keeps the change. For other files, a query that runs is restarted.

    Example: headgate set query night_frost --class C --deadline 1.5 --state state/forest
    """
    options: dict[str, Any] = {
        "class": query_class,
        "weight": weight,
        "deadline_s": deadline,
        "qos": qos,
        "on_error": on_error,
    }
    rhythm: dict[str, Any] = {
        "commit_every_s": commit_every,
        "target_file_mb": target_file_mb,
        "compact": compact,
    }
    values = _values(options)
    if sink := _values(rhythm):
        values["sink"] = sink
    changed = Client(state_of(state, pipeline)).set_query(name, values)
    deadline_s, points = changed["deadline_s"], changed["qos"]
    print(
        f"{name}: class {changed['class']}, weight {changed['weight']:g},"
        f" {'no deadline' if deadline_s is None else f'deadline {deadline_s:g} s'},"
        f" {'no QoS graph' if points is None else f'QoS graph {points}'},"
        f" on_error {changed['on_error']}",
        *(f"{key} {json.dumps(changed['sink'][key])}" for key in sink),
        sep=", ",
    )


def _values(options: dict[str, Any]) -> dict[str, Any]:
    """Return what was set, by key."""
    texts = ("deadline_s", "qos", "commit_every_s", "target_file_mb")
    return {
        key: _value(value) if key in texts else value
        for key, value in options.items()
        if value is not None
    }


def _value(text: str) -> object:
    """Return what an option says: a number, a list, or None for `none`; else its text.

    >>> _value("none"), _value("1.5"), _value("[[0, 1]]"), _value("soon")
    (None, 1.5, [[0, 1]], 'soon')
    """
    try:
        return None if text == "none" else json.loads(text)
    except ValueError:
        return text
