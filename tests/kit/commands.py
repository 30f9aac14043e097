"""Commands of `headgate` as a user types them: their output and exit code."""

import subprocess
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from headgate.cli import main
from headgate.server import Client
from kit.pipelines import SPARK_NOISE

Done = subprocess.CompletedProcess[str]


def headgate(*words: str) -> Done:
    """Run a command in this process, which saves two seconds of imports.

    A command that starts Spark needs a `Terminal`: it would stop the session of the tests.
    """
    code: str | int | None = 0
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as errors:
        try:
            main(words)
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Done(words, code, out.getvalue(), errors.getvalue())


def refused(done: Done, message: str) -> None:
    """Fail unless a command refused the request with this message, without noise of Spark."""
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert not any(noise in done.stderr for noise in SPARK_NOISE)
    assert done.stdout == ""


def status_of(state: str | Path) -> dict[str, Any]:
    """Return the status of each query of a run, by name."""
    return {query["query"]: query for query in Client(Path(state)).status()["queries"]}
