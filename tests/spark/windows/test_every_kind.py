"""What every kind of query must satisfy: a file in each of two folders, and they agree."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import headgate.language.kinds
import headgate.spark.windows
from headgate.language.kinds.interface import StatefulKind
from headgate.language.kinds.registry import KINDS
from headgate.model.window import Input, Join, Window

SHARED = {
    "headgate.language.kinds": {"__init__", "interface", "registry"},
    "headgate.spark.windows": {"__init__", "bad_row_filter", "computation", "queries", "results"},
}
"""The files that belong to no kind."""


@pytest.mark.parametrize("package", [headgate.language.kinds, headgate.spark.windows])
def test_a_kind_is_a_file_in_each_of_two_folders(package: object) -> None:
    (folder,) = package.__path__  # type: ignore[attr-defined]
    name = package.__name__  # type: ignore[attr-defined]
    files = {file.stem for file in Path(folder).glob("*.py")} - SHARED[name]
    assert files == {kind.__module__.rpartition(".")[2] for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_names_the_class_that_computes_it(kind: type[StatefulKind]) -> None:
    module, _, name = kind.computed_by.partition(":")
    assert module.rpartition(".")[2] == kind.__module__.rpartition(".")[2]
    computation = getattr(import_module(module), name)
    assert {"__call__", "needs_job"} <= set(vars(computation))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_explains_itself_and_reads_a_timeline(kind: type[StatefulKind]) -> None:
    inputs = (Input(stream="a", view="a", window=Window(axis="time", size=9)),)
    more: dict[str, Any] = {"join": Join(reach=9)} if "join" in kind.__dataclass_fields__ else {}
    query = kind(inputs=inputs, **more)
    assert query.way
    assert query.streams == ("a",)
    assert not query.takes_single_tuples
