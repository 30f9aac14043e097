"""The start of the JVM, with no setting on its command line: every user can read it, as in `ps`."""

import os
import re
import shlex
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway

from headgate.access import PRIVATE, Access

ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""The variable with the command line for Spark, of which PySpark and its users know."""

PLAIN = re.compile(r"[A-Za-z0-9._/,;@*()$+-]")
"""Letters that stand for themselves in a file of Java properties, wherever they stand."""


def launch(settings: Mapping[str, str], access: Access) -> None:
    """Start a JVM, unless one runs. Spark reads its settings from a file, which is then removed.

    Only the Java options among them become part of the command line.

    Args:
        access: who may read the files that the JVM writes.
    """
    if SparkContext._gateway is not None:
        return
    with _arguments(settings):
        start: Any = launch_gateway  # it has no types
        gateway = start(popen_kwargs={"umask": access.umask})
    SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _arguments(settings: Mapping[str, str]) -> Iterator[None]:
    """Name a file with the settings in the environment, in front of the user's own arguments."""
    before = os.environ.get(ARGUMENTS)
    with TemporaryDirectory(prefix="headgate-") as folder:  # only its owner can read it
        file = Path(folder) / "spark.conf"
        PRIVATE.write(file, properties(settings).encode())
        words = ["--properties-file", str(file), "--load-spark-defaults"]
        os.environ[ARGUMENTS] = f"{shlex.join(words)} {before or 'pyspark-shell'}"
        try:
            yield
        finally:
            del os.environ[ARGUMENTS]
            if before is not None:
                os.environ[ARGUMENTS] = before


def properties(settings: Mapping[str, str]) -> str:
    r"""Return settings as a file of Java properties, which Spark reads if they are its own.

    >>> print(properties({"spark.a b": " x=1", "spark.c": "C:\\d", "d": "e"}), end="")
    spark.a\u0020b=\u0020x\u003d1
    spark.c=C\u003a\u005cd
    """
    return "".join(
        f"{_escaped(key)}={_escaped(value)}\n"
        for key, value in settings.items()
        if key.startswith("spark.")
    )


def _escaped(text: str) -> str:
    return "".join(
        letter if PLAIN.fullmatch(letter) else "".join(
            f"\\u{unit:04x}"
            for (unit,) in struct.iter_unpack(">H", letter.encode("utf-16-be", "surrogatepass"))
        )
        for letter in text
    )  # fmt: skip
