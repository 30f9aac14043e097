"""The page about threads and locks names every lock of the code, and an order that holds."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/threads.md").read_text()
KINDS = ("Lock", "RLock", "Condition")


@dataclass(frozen=True)
class Lock:
    """A lock in the code, or a row of the page.

    Args:
        place: the class or function that it belongs to; empty for a lock of a module.
    """

    name: str
    place: str
    file: str
    kind: str


@dataclass(frozen=True)
class Row:
    lock: Lock
    level: float
    nested: tuple[str, ...]
    """What may be taken while it is held: classes, or files without `.py`."""


def locks_of(text: str, file: str) -> Iterator[Lock]:
    """Yield the locks that a file creates."""
    yield from _locks(ast.parse(text), "", file)


def _locks(node: ast.AST, place: str, file: str) -> Iterator[Lock]:
    if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and not place):
        place = node.name
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        for name, value in _pairs(target, node.value):
            for kind in KINDS:
                if re.search(rf"\bthreading\.{kind}\b", ast.unparse(value)):
                    yield Lock(ast.unparse(name).removeprefix("self."), place, file, kind)
    for child in ast.iter_child_nodes(node):
        yield from _locks(child, place, file)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return the single assignments of an assignment to several names."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def rows() -> list[Row]:
    """Return the rows of the table of locks."""
    lines = re.findall(r"^\| ([\d.]+) \| (.*?) \| .* \| (.*) \|$", PAGE, re.MULTILINE)
    return [
        Row(_lock_of(name), float(level), tuple(re.findall(r"`(.*?)`", nested)))
        for level, name, nested in lines
    ]


def _lock_of(text: str) -> Lock:
    """Return the lock that a cell names: `Class.name` (RLock), `file` or `name` in `f`, `file`."""
    names = re.findall(r"`(.*?)`", text)
    kind = next((kind for kind in ("RLock", "Condition") if f"({kind})" in text), "Lock")
    place, _, name = names[0].rpartition(".")
    return Lock(name, place if len(names) == 2 else names[1], f"headgate/{names[-1]}", kind)


def code_locks() -> list[Lock]:
    return [
        lock
        for file in sorted((ROOT / "headgate").rglob("*.py"))
        for lock in locks_of(file.read_text(), str(file.relative_to(ROOT)))
    ]


def test_the_table_has_every_lock_of_the_code_and_no_other() -> None:
    listed = Counter(row.lock for row in rows())
    assert listed == Counter(code_locks())


def test_the_page_says_how_many_locks_there_are() -> None:
    kinds = Counter(lock.kind for lock in code_locks())
    counts = ", ".join(f"{kinds[kind]} `{kind}`" for kind in KINDS)
    assert f"**{kinds.total()} locks: {counts}**" in PAGE


def test_only_locks_of_a_higher_level_are_taken_while_one_is_held() -> None:
    faults = [
        f"{row.lock.place}.{row.lock.name} before {name}"
        for row in rows()
        for name in row.nested
        for later in _named(name)
        if later.level <= row.level
    ]
    assert faults == []


def _named(name: str) -> list[Row]:
    """Return the rows that a name in the last column stands for."""
    place, _, lock = name.partition(".")
    named = [
        row
        for row in rows()
        if place in (row.lock.place, Path(row.lock.file).stem) and lock in ("", row.lock.name)
    ]
    assert named, f"no lock is called {name}"
    return named


def test_a_lock_is_recognized_wherever_it_is_created() -> None:
    text = """
ONE = threading.Lock()
class A:
    field: threading.Lock = field(default_factory=threading.Lock)
    def __init__(self):
        self.two, self.three = threading.RLock(), 3
def f():
    four = threading.Condition()
    getCondition()
"""
    assert [(lock.place, lock.name, lock.kind) for lock in locks_of(text, "a.py")] == [
        ("", "ONE", "Lock"), ("A", "field", "Lock"), ("A", "two", "RLock"),
        ("f", "four", "Condition"),
    ]  # fmt: skip
