"""A process in which commands of `headgate` run one after the other, on one JVM."""

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from headgate.cli import main
from kit.commands import Done


@dataclass
class Command:
    """A command that was typed: its output is in files, its exit code comes when it has ended."""

    words: tuple[str, ...]
    folder: Path
    process: "subprocess.Popen[bytes]"
    code: int | None = None

    @property
    def stdout(self) -> str:
        return (self.folder / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def ended(self, timeout_s: float) -> bool:
        """Wait for the end, at most this long, and return True if it has come."""
        if self.code is None:
            assert self.process.stdout is not None
            if select.select([self.process.stdout], [], [], timeout_s)[0]:
                self.code = int(self.process.stdout.readline())
        return self.code is not None

    def done(self, timeout_s: float = 180.0) -> Done:
        """Wait for the end and return output and exit code."""
        assert self.ended(timeout_s), self.stderr
        assert self.code is not None
        return Done(self.words, self.code, self.stdout, self.stderr)


class Terminal:
    """A process that runs commands of `headgate`, one at a time.

    A command that starts Spark takes seconds in a process of its own, most of them for the JVM,
    which stays when a Spark session ends. Signals reach the command that runs, and all that it and
    the JVM write is in files, as from a process of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._commands = folder, 0
        self._last: Command | None = None
        self.process = self._new_process()

    def start(self, *words: str) -> Command:
        """Start a command and return at once."""
        if self._last is not None and not self._last.ended(0.0):  # a test has failed meanwhile
            self.close()
            self.process = self._new_process()
        self._commands += 1
        folder = self._folder / str(self._commands)
        folder.mkdir()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([str(folder), *words]).encode() + b"\n")
        self.process.stdin.flush()
        self._last = Command(words, folder, self.process)
        return self._last

    def run(self, *words: str) -> Done:
        """Run a command and wait for its end."""
        return self.start(*words).done()

    def interrupt(self) -> None:
        """Press Ctrl-C: the signal goes to the process and to its JVM."""
        os.killpg(self.process.pid, signal.SIGINT)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """End the process. The JVM ends with it."""
        self.process.kill()
        self.process.communicate()

    def _new_process(self) -> "subprocess.Popen[bytes]":
        folders = str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")
        return subprocess.Popen(
            [sys.executable, "-m", "kit.terminal"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
            start_new_session=True,
        )


def serve() -> None:
    """Run the commands that come on stdin, and answer each with its exit code."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        folder, *words = json.loads(line)
        for number, name in ((1, "stdout"), (2, "stderr")):
            with (Path(folder) / name).open("wb") as file:
                os.dup2(file.fileno(), number)
        code: str | int | None = 0
        try:
            main(words)
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        print(code, file=answers, flush=True)


if __name__ == "__main__":
    serve()
