"""Plain English: docstrings of functions are imperative, and variables are nouns."""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("headgate", "tests", "bench")

OPENINGS = {
    "Gives", "Tells", "Says", "Has", "Hears", "Lets", "Makes", "Goes", "Is", "Brings", "Puts",
    "Knows", "Keeps",
}  # fmt: skip
"""No docstring of a function begins with one of these: it begins with an imperative."""

NO_NOUNS = {
    "made", "found", "told", "given", "known", "taken", "kept", "shown", "asked", "said", "own",
    "each", "those", "which", "there", "back", "how", "of", "at",
}  # fmt: skip
"""No local variable, parameter or loop variable has one of these names: it is a noun."""

PUBLIC = {
    ("headgate/errors.py", "parameter 'known'"),
    ("headgate/errors.py", "parameter 'found'"),
    ("headgate/runtime/what_if/compare.py", "parameter 'of'"),
}
"""Parameters of the public API, whose names stay: UnknownName, RecoveryRefused and compare."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Fault = tuple[int, str]


def openings(tree: ast.AST) -> Iterator[Fault]:
    """Yield the line of every docstring of a function that begins with a word of OPENINGS."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and (docstring := ast.get_docstring(node)):
            first = docstring.split(maxsplit=1)[0].rstrip(".,:;")
            if first in OPENINGS:
                yield node.body[0].lineno, f"docstring of {node.name} begins with {first!r}"


def variables(tree: ast.AST) -> Iterator[Fault]:
    """Yield the line of every variable of a function or loop whose name is in NO_NOUNS.

    Names in the body of a class are fields, and those of a module are not local: both may stay.
    """
    nodes = [(tree, False)]
    while nodes:
        node, local = nodes.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if local and node.id in NO_NOUNS:
                yield node.lineno, f"variable {node.id!r}"
        elif isinstance(node, ast.arg) and node.arg in NO_NOUNS:
            yield node.lineno, f"parameter {node.arg!r}"
        elif isinstance(node, ast.ExceptHandler) and node.name in NO_NOUNS:
            yield node.lineno, f"variable {node.name!r}"
        loop_variable = node.target if isinstance(node, ast.For | ast.AsyncFor) else None
        inside = (local or isinstance(node, SCOPES)) and not isinstance(node, ast.ClassDef)
        for child in ast.iter_child_nodes(node):
            nodes.append((child, inside or child is loop_variable))


@cache
def trees(folder: str) -> dict[str, ast.Module]:
    files = sorted((ROOT / folder).rglob("*.py"))
    return {str(file.relative_to(ROOT)): ast.parse(file.read_text()) for file in files}


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("check", [openings, variables])
def test_functions_are_described_by_imperatives_and_variables_named_by_nouns(
    check: Callable[[ast.AST], Iterator[Fault]], folder: str
) -> None:
    faults = [
        f"{file}:{line}: {fault}"
        for file, tree in trees(folder).items()
        for line, fault in check(tree)
        if (file, fault) not in PUBLIC
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ('def f():\n    """Gives the rows."""', [(2, "docstring of f begins with 'Gives'")]),
        ('async def f():\n    """Hears."""', [(2, "docstring of f begins with 'Hears'")]),
        ('class A:\n    def f(self):\n        """\n        Is it?"""',
         [(3, "docstring of f begins with 'Is'")]),
        ("def f():\n    found = 1", [(2, "variable 'found'")]),
        ("def f():\n    with g() as own, h() as (a, back):\n        pass",
         [(2, "variable 'own'"), (2, "variable 'back'")]),
        ("def f(how, *of, at=1, **given):\n    pass",
         [(1, f"parameter {name!r}") for name in ("how", "of", "at", "given")]),
        ("X = [each for each in range(3)]", [(1, "variable 'each'")]),
        ("X = sorted(Y, key=lambda which: which)", [(1, "parameter 'which'")]),
        ("for there in range(3):\n    pass", [(1, "variable 'there'")]),
        ("class A:\n    def f(self):\n        if made := g():\n            pass",
         [(3, "variable 'made'")]),
        ("try:\n    f()\nexcept OSError as told:\n    pass", [(3, "variable 'told'")]),
        ("class A:\n    known: int\n    kept = 1", []),
        ("def f():\n    class A:\n        known: int", []),
        ("def f(rows):\n    rows.taken = g(found=rows.shown)", []),
        ('def f():\n    """Return what g gives."""\n    return g(X)', []),
        ('class A:\n    """Keeps nothing."""', []),
    ],
)  # fmt: skip
def test_the_checks_find_what_is_no_plain_english(source: str, faults: list[Fault]) -> None:
    tree = ast.parse(source)
    assert {*openings(tree), *variables(tree)} == set(faults)
