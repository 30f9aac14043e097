"""STATE/control.json: where a running Headgate listens, and the token that it wants."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from headgate.errors import RecoveryRefused

FILE = "control.json"


@dataclass(frozen=True)
class Control:
    """What a client has to know of a running Headgate."""

    port: int
    token: str
    pid: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write(self, state: Path) -> None:
        """Writes the file, whole or not at all; nobody else may read it."""
        temporary = state / f".{FILE}"
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(self), file)
        temporary.replace(state / FILE)

    @classmethod
    def read(cls, state: Path) -> "Control":
        """Gives what the file says.

        Raises:
            RecoveryRefused: nothing runs there.
        """
        try:
            found = cls(**json.loads((state / FILE).read_text()))
        except FileNotFoundError as error:
            raise nothing_runs(state, f"no {FILE}") from error
        except (OSError, ValueError, TypeError) as error:
            raise nothing_runs(state, f"a {FILE} that cannot be read") from error
        if not _lives(found.pid):
            raise nothing_runs(state, f"the {FILE} of process {found.pid}, which is gone")
        return found


def nothing_runs(state: Path, found: str) -> RecoveryRefused:
    """Gives the error for a state directory in which no Headgate answers."""
    return RecoveryRefused(
        subject=f"state directory {state}",
        expected="a Headgate that runs there",
        found=found,
        fix=f"start one by `headgate run FILE --state {state}`, without --no-control; or name the"
        " directory of another by --state DIR or --pipeline FILE",
    )


def remove(state: Path) -> None:
    """Removes the file, if it is that of this process."""
    try:
        own = Control.read(state).pid == os.getpid()
    except RecoveryRefused:
        return
    if own:
        (state / FILE).unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it lives, and is somebody else's
    return True
