"""Files of the package: their sizes, their names, and what an `__init__` may contain."""

import ast
from pathlib import Path

import pytest

HEADGATE = Path(__file__).parents[1] / "headgate"
FILES = sorted(HEADGATE.rglob("*.py"))
WITHOUT_SUBJECT = [
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "misc",
    "base",
    "manager",
    "core",
]


@pytest.mark.parametrize(
    "file",
    [file for file in FILES if file.name == "__init__.py"],
    ids=lambda file: str(file.relative_to(HEADGATE)),
)
def test_an_init_only_re_exports_behind_a_door_plate(file: Path) -> None:
    tree = ast.parse(file.read_text())
    assert ast.get_docstring(tree)
    for node in tree.body[1:]:
        names_set = [ast.unparse(target) for target in getattr(node, "targets", [])]
        exports = isinstance(node, ast.ImportFrom) or names_set in (["__all__"], ["__version__"])
        assert exports, f"line {node.lineno}: {ast.unparse(node)}"


def test_no_file_is_named_for_having_no_subject() -> None:
    assert [file for file in FILES if file.stem in WITHOUT_SUBJECT] == []


def test_no_file_has_more_than_350_lines() -> None:
    lengths = {str(file): len(file.read_text().splitlines()) for file in FILES}
    assert {name: length for name, length in lengths.items() if length > 350} == {}
