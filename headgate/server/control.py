"""STATE/control.json: where a running Headgate listens, and the tokens for requests."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from headgate.errors import RecoveryRefused
from headgate.runtime import holder_of, is_alive

FILE, SIGN_IN_FILE = "control.json", "open.html"

BODY_BYTES = 8 << 20
"""Most bytes of a request's body: eight queries of the greatest length, thousands of usual ones."""


@dataclass(frozen=True)
class Control:
    """What a client needs to know about a running Headgate.

    Args:
        token: allows every request.
        read_token: allows requests that change nothing.
        host: the address that a client on this machine connects to.
        certificate: the file of the TLS certificate; "" without TLS.
    """

    port: int
    token: str
    pid: int
    read_token: str = ""
    host: str = "127.0.0.1"
    certificate: str = ""

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def page(self) -> str:
        """The address of the page."""
        return f"{self.address}/"

    def signed_in(self, *, read_only: bool = False) -> str:
        """Return the address of the page with a token in its fragment, which no server gets."""
        return f"{self.page}#token={self.read_token if read_only else self.token}"

    def write(self, state: Path) -> None:
        """Write the file atomically; only its owner may read it."""
        _write_private(state / FILE, json.dumps(asdict(self)))

    def write_sign_in(self, state: Path, *, read_only: bool = False) -> Path:
        """Write a file that leads a browser to the page, signed in, and return it.

        A command line can be read by every user of the machine, so the browser gets the name of
        this file instead of the token.
        """
        target, file = self.signed_in(read_only=read_only), state / SIGN_IN_FILE
        _write_private(
            file,
            f'<!doctype html><meta charset="utf-8"><title>Headgate</title>'
            f'<meta http-equiv="refresh" content="0;url={target}"><a href="{target}">Headgate</a>',
        )
        return file

    @classmethod
    def read(cls, state: Path) -> "Control":
        """Return the contents of the file.

        Raises:
            RecoveryRefused: nothing runs in the state directory.
        """
        try:
            control = cls(**json.loads((state / FILE).read_text()))
        except FileNotFoundError as error:
            raise nothing_runs(state, f"no {FILE}") from error
        except (OSError, ValueError, TypeError) as error:
            raise nothing_runs(state, f"a {FILE} that cannot be read") from error
        if not is_alive(control.pid):
            raise nothing_runs(state, f"the {FILE} of process {control.pid}, which is gone")
        return control


def nothing_runs(state: Path, reason: str) -> RecoveryRefused:
    """Return the error for a state directory in which no Headgate answers."""
    if (holder := holder_of(state)) is not None:
        return RecoveryRefused(
            subject=f"state directory {state}",
            expected="a Headgate that answers",
            found=f"{holder}, but {reason}: it starts Spark and analyzes its queries, or is"
            " stopping, or was started with --no-control",
            fix="ask again in some seconds: once the queries are analyzed, `headgate status` says"
            f" how many are rehearsed. To stop it, run `kill {holder.pid}`",
        )
    return RecoveryRefused(
        subject=f"state directory {state}",
        expected="a Headgate that runs there",
        found=reason,
        fix=f"start one with `headgate run FILE --state {state}`, without --no-control; or name the"
        " directory of another run with --state DIR or --pipeline FILE",
    )


def remove(state: Path) -> None:
    """Remove the file if this process has written it."""
    try:
        is_ours = Control.read(state).pid == os.getpid()
    except RecoveryRefused:
        return
    if is_ours:
        (state / FILE).unlink(missing_ok=True)
        (state / SIGN_IN_FILE).unlink(missing_ok=True)


def _write_private(file: Path, text: str) -> None:
    """Write a file atomically; only its owner may read it."""
    temporary = file.with_name(f".{file.name}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    temporary.replace(file)
