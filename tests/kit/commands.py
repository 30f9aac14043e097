"""Commands of `headgate` as a user types them: their output and exit code."""

import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from unittest import mock

from headgate.cli import main

Done = subprocess.CompletedProcess[str]


def headgate(*words: str) -> Done:
    """Run a command in this process, which saves two seconds of imports."""
    code: str | int | None = 0
    with (
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as errors,
        mock.patch.object(sys, "argv", ["headgate", *words]),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Done(words, code, out.getvalue(), errors.getvalue())


def headgate_apart(*words: str) -> Done:
    """Run a command in its own process: one that starts Spark or registers something."""
    command = [sys.executable, "-m", "headgate.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
