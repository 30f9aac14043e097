"""What is left of a conjunction when the constants of its comparisons are taken out."""

from dataclasses import dataclass
from typing import Literal

Comparison = Literal["=", "<", "<=", ">", ">="]
Constant = int | float | str


@dataclass(frozen=True)
class Test:
    """A comparison of something with a constant; `kind` is what the constant is written as."""

    left: str
    comparison: Comparison
    kind: Literal["int", "decimal", "string"]


@dataclass(frozen=True)
class Form:
    """A conjunction without its constants: the tests, and the conditions that have none."""

    tests: tuple[Test, ...]
    rest: tuple[str, ...]
