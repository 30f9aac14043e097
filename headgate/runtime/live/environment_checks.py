"""What a pipeline needs around it: directories that can be written, jars, free ports."""

import socket
from collections.abc import Iterator
from glob import glob
from pathlib import Path as File
from tempfile import TemporaryDirectory

JARS = {"spark.jars": ",", "spark.driver.extraClassPath": ":", "spark.executor.extraClassPath": ":"}
"""Settings of Spark that name jars, and what separates them."""


def unwritable(folder: File) -> str | None:
    """Return why a directory, or the one that it would be created in, cannot be written."""
    try:
        place = folder.absolute()
        while not place.exists():
            place = place.parent
        with TemporaryDirectory(prefix=".headgate-check-", dir=place):
            return None
    except (OSError, ValueError) as error:
        return (getattr(error, "strerror", None) or str(error)).lower()


def missing_jars(setting: str, value: str) -> Iterator[str]:
    """Yield the jars on this machine that a setting of Spark names and that do not exist."""
    for name in value.split(JARS[setting]) if setting in JARS else ():
        path = name.strip().removeprefix("file://").removeprefix("file:")
        if path and "://" not in path and not glob(path):
            yield path


def ports_in_use(setting: str, value: str) -> str | None:
    """Return why a port that a setting of Spark names cannot be used."""
    if not (setting.startswith("spark.") and setting.endswith(".port")) or value in ("", "0"):
        return None
    try:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("", int(value)))
    except (OSError, OverflowError, ValueError) as error:
        return (getattr(error, "strerror", None) or str(error)).lower()
    return None
