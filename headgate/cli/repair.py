"""The commands that repair single queries of a run: restart, pause, resume, alter."""

from typing import Annotated

import typer

from headgate.cli.operate import PIPELINE, STATE, state_of
from headgate.server import Client

QUERY = Annotated[str, typer.Argument(metavar="QUERY", help="The query's name.")]


def restart(query: QUERY, state: STATE = None, pipeline: PIPELINE = None) -> None:
    """Start a query again where it stands; for one that has failed, once its cause is repaired.

    Other queries go on. Nothing is lost and nothing comes twice.

    Example: headgate restart fire_alarm --state state/forest
    """
    Client(state_of(state, pipeline)).repair(query, "restart")
    print(f"restarted: query {query}")


def pause(query: QUERY, state: STATE = None, pipeline: PIPELINE = None) -> None:
    """Pause a query until `headgate resume`, also in later runs.

    Its tuples wait in the log for as long as `retention_s` keeps them; later they count as missed.

    Example: headgate pause fire_alarm --state state/forest
    """
    Client(state_of(state, pipeline)).repair(query, "pause")
    print(f"paused: query {query}")


def resume(query: QUERY, state: STATE = None, pipeline: PIPELINE = None) -> None:
    """Start a paused query again where it stands.

    Example: headgate resume fire_alarm --state state/forest
    """
    Client(state_of(state, pipeline)).repair(query, "resume")
    print(f"resumed: query {query}")


def alter(
    query: QUERY,
    sql: Annotated[str, typer.Option("--sql", metavar="SELECT", help="The new text.")],
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="Where the new text begins: oldest, now, or a time such as 2026-03-01T09:30."
            " Default: where the query stands.",
        ),
    ] = None,
    state: STATE = None,
    pipeline: PIPELINE = None,
) -> None:
    """Give a query another text while all others go on.

    The results of version 2 are in a folder of their own, NAME.v2. Write the new text into the
    pipeline file, too: the next start compares it. If the text is refused, nothing changes.

    Example: headgate alter hot --sql "SELECT * FROM sensors WHERE heat > 70" --state state/forest
    """
    version = Client(state_of(state, pipeline)).alter(query, sql, start_from)
    print(f"altered: query {query}, version {version}")
