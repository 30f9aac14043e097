"""The visible files of a results folder: those in its manifest or, without one, all of them."""

import os
from collections.abc import Iterator
from pathlib import Path

MANIFEST = "_manifest"
"""The file that lists the visible files of a folder, a line for each; readers of a folder skip
names that begin with an underscore."""


def listed(folder: Path) -> list[str]:
    """Return the names of the files that hold each result once, relative to the folder."""
    names = manifest_names(folder)
    return sorted(visible(folder)) if names is None else names


def manifest_names(folder: Path) -> list[str] | None:
    """Return the names in the manifest of a folder; None if it has none.

    A last line without an end is being written at this moment, and does not count yet.
    """
    try:
        lines = (folder / MANIFEST).read_text().split("\n")[:-1]
    except FileNotFoundError:
        return None
    return list(dict.fromkeys(lines))


def visible(folder: Path, prefix: str = "") -> Iterator[str]:
    """Yield the names of all files in a folder, and in its folders `column=value`."""
    with os.scandir(folder / prefix) as entries:
        for entry in entries:
            if entry.is_dir():
                if "=" in entry.name:
                    yield from visible(folder, f"{prefix}{entry.name}/")
            elif not entry.name.startswith((".", "_")):
                yield prefix + entry.name
