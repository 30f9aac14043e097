"""STATE/control.json: where a running Headgate listens, and the token for requests."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from headgate.errors import RecoveryRefused

FILE = "control.json"

BODY_BYTES = 8 << 20
"""Most bytes of a request's body: eight queries of the greatest length, thousands of usual ones."""


@dataclass(frozen=True)
class Control:
    """What a client needs to know about a running Headgate."""

    port: int
    token: str
    pid: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write(self, state: Path) -> None:
        """Write the file atomically; only its owner may read it."""
        temporary = state / f".{FILE}"
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(self), file)
        temporary.replace(state / FILE)

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
        if not _lives(control.pid):
            raise nothing_runs(state, f"the {FILE} of process {control.pid}, which is gone")
        return control


def nothing_runs(state: Path, reason: str) -> RecoveryRefused:
    """Return the error for a state directory in which no Headgate answers."""
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


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # the process lives, and belongs to another user
    return True
