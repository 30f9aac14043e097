"""The command `open`, and how a run tells where its page is."""

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.operate import PIPELINE, STATE, state_of
from headgate.server import Address, Control


def open_page(
    state: STATE = None,
    pipeline: PIPELINE = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Sign in without the right to change anything.")
    ] = False,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the address, signed in, and open nothing.")
    ] = False,
) -> None:
    """Open the page of a run in a browser, signed in.

    The address with the token is printed only to a terminal, and with --print.

    Example: headgate open --state state/forest
    """
    folder = state_of(state, pipeline).absolute()
    control = Control.read(folder)
    if only_print:
        print(control.signed_in(read_only=read_only))
    elif webbrowser.open(control.write_sign_in(folder, read_only=read_only).as_uri()):
        print(f"opened: {control.page}")
    elif sys.stdout.isatty():
        print(f"no browser is here; open {control.signed_in(read_only=read_only)}")
    else:
        print(f"no browser is here; the page is {control.page}", file=sys.stderr)
        raise typer.Exit(1)


def invitation(control: Control, state: Path, *, signed_in: bool) -> str:
    """Return the line in which a run says where its page is.

    Args:
        signed_in: whether with the token, which must stand in no log.
    """
    if signed_in:
        return f"page: {control.signed_in()}"
    return f"page: {control.page}, sign in by `headgate open --state {state}`"


def flags_of(address: Address) -> list[str]:
    """Return the options of `run` that mean this address."""
    pairs = (
        ("--host", address.host), ("--port", address.port), ("--tls-cert", address.certificate),
        ("--tls-key", address.key), *(("--allow-host", name) for name in address.names),
    )  # fmt: skip
    words = [str(word) for pair in pairs if pair[1] is not None for word in pair]
    return [*words, "--allow-plain-http"] if address.allows_plain else words
