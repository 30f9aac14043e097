"""The script of `make docs` that fills in the output of commands in README and docs.

A `console` block begins with a command, `$ headgate ...`; its output follows. A Python block whose
first line is a comment with a file name is the content of that file.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/policies.md")
BLOCK = re.compile(r"```console\n\$ headgate (.*?)\n(?:.*?)```", re.DOTALL)
FILE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)


Run = Callable[[Sequence[str], str], "subprocess.CompletedProcess[str]"]
"""How the words of a command are run in a folder."""


def apart(words: Sequence[str], folder: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in its own process."""
    command = [sys.executable, "-m", "headgate.cli", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def filled(text: str, run: Run = apart) -> str:
    """Return a page with the current output of its commands."""
    with TemporaryDirectory() as folder:
        for name, code in FILE.findall(text):
            (Path(folder) / name).write_text(code)
        return BLOCK.sub(lambda block: _block(block.group(1), folder, run), text)


def _block(words: str, folder: str, run: Run) -> str:
    done = run(shlex.split(words), folder)
    if done.returncode:
        raise RuntimeError(f"headgate {words}: {done.stderr}")
    printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    return f"```console\n$ headgate {words}\n{printed}```"


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(filled((ROOT / page).read_text()))
