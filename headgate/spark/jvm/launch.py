"""The start of the JVM, with no setting on its command line: every user can read it, as in `ps`."""

import os
import re
import shlex
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway

from headgate.access import PRIVATE, Access
from headgate.errors import ConfigRefused

ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""The variable with the command line for Spark, of which PySpark and its users know."""

JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
"""Settings that Spark turns into words of the command line, in this order."""

PLAIN = re.compile(r"[A-Za-z0-9._/,;@*()$+-]")
"""Letters that stand for themselves in a file of Java properties, wherever they stand."""


def launch(settings: Mapping[str, str], access: Access) -> None:
    """Start a JVM, unless one runs.

    Spark reads its settings from a file, and Java its options from another. Both are then removed.

    Args:
        access: who may read the files that the JVM writes.

    Raises:
        ConfigRefused: the Java options have a quote that does not end.
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
        file, java = Path(folder) / "spark.conf", Path(folder) / "java.options"
        PRIVATE.write(java, argument_file(_java_options(settings)).encode())
        others = {key: value for key, value in settings.items() if key not in JAVA_OPTIONS}
        PRIVATE.write(file, properties({**others, JAVA_OPTIONS[1]: f'"@{java}"'}).encode())
        words = ["--properties-file", str(file), "--load-spark-defaults"]
        os.environ[ARGUMENTS] = f"{shlex.join(words)} {before or 'pyspark-shell'}"
        try:
            yield
        finally:
            del os.environ[ARGUMENTS]
            if before is not None:
                os.environ[ARGUMENTS] = before


def _java_options(settings: Mapping[str, str]) -> list[str]:
    words: list[str] = []
    for key in JAVA_OPTIONS:
        try:
            words += shlex.split(settings.get(key, ""))  # as Spark does
        except ValueError as error:
            raise ConfigRefused(
                path="spark", key=f"config.{key}", value=None,
                expected=f"a list of Java options: {str(error).lower()}",
            ) from error  # fmt: skip
    return words


def argument_file(words: Sequence[str]) -> str:
    r"""Return words of a command line as a file that `java @FILE` reads.

    >>> print(argument_file(["-Xss8m", '-Dname=a "b" \\ #c']), end="")
    "-Xss8m"
    "-Dname=a \"b\" \\ #c"
    """
    escaped = [word.replace("\\", "\\\\").replace('"', '\\"') for word in words]
    return "".join(f'"{word}"\n' for word in escaped)


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
