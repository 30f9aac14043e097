"""A good pipeline file, changes of it, and what is read from it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.config import Pipeline, read_pipeline
from headgate.errors import ConfigRefused

GOOD: dict[str, Any] = {
    "state": "state/test",
    "classes": {"H": 6, "N": 1},
    "streams": {"sensors": {"format": "rate", "options": {"rowsPerSecond": 5}}},
    "queries": {"hot": {"sql": "SELECT * FROM sensors", "class": "H"}},
}


def changed(key: str, value: object) -> dict[str, Any]:
    """Return the good file with one value changed, or removed if the value is Ellipsis."""
    data = yaml.safe_load(yaml.safe_dump(GOOD))
    *folders, last = key.split(".")
    place = data
    for folder in folders:
        place = place.setdefault(folder, {})
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return dict(data)


def read(folder: Path, data: dict[str, Any] | str | bytes) -> Pipeline:
    file = folder / "pipeline.yaml"
    if isinstance(data, dict):
        data = yaml.safe_dump(data)
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_pipeline(file)


def refusal(folder: Path, data: dict[str, Any] | str | bytes) -> str:
    """Return the message of the refusal, without the file that each line must begin with."""
    with pytest.raises(ConfigRefused) as refused:
        read(folder, data)
    lines = str(refused.value).splitlines()
    file = str(folder / "pipeline.yaml")
    assert all(line.startswith((f"{file}: ", f"{file}, line ")) for line in lines)
    return "\n".join(line.removeprefix(file)[2:] for line in lines)
