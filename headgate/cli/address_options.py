"""The options that say where the page and the control API listen."""

from typing import Annotated

import typer

from headgate.server.address import PORT as DEFAULT_PORT

HOST = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="Address that the page and the control API listen on; one other than loopback needs"
        " --tls-cert and --tls-key, or --allow-plain-http.",
    ),
]
PORT = Annotated[
    int | None,
    typer.Option(
        min=1, max=65535, help=f"Their port. Default: {DEFAULT_PORT}, or the next free one."
    ),
]
ALLOW_HOST = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Host name that browsers and proxies may use, besides localhost."
    ),
]
TLS_CERT = Annotated[
    str | None, typer.Option(metavar="FILE", help="TLS certificate of the page, in PEM.")
]
TLS_KEY = Annotated[str | None, typer.Option(metavar="FILE", help="Its private key, in PEM.")]
PLAIN_HTTP = Annotated[
    bool,
    typer.Option(
        "--allow-plain-http", help="Listen on an address other than loopback without TLS."
    ),
]
