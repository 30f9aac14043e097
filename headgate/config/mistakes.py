"""Mistakes of a pipeline file: each with its line and its key, and all of them as one refusal."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.errors import ConfigRefused


@dataclass(frozen=True)
class Mistake:
    """A mistake of a pipeline file.

    Args:
        file: the file, or the place that a value comes from instead, such as the environment.
        line: its line in the file; None if the value is not from the file.
        key: the whole path of the key.
        text: what is wrong with which key, and the fix.
    """

    file: str
    line: int | None
    key: str
    text: str

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.file}{line}: {self.text}"


class Mistakes(ConfigRefused):
    """A pipeline file with mistakes; it names all of them."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        first = mistakes[0]
        super().__init__(path=first.file, key=first.key, value=None, expected="", line=first.line)
        self.mistakes = tuple(mistakes)
        self.args = (self.mistakes,)

    def __str__(self) -> str:
        return "\n".join(map(str, self.mistakes))


class WrongType(ConfigRefused):
    """A value of the wrong type, such as a text where a number is expected."""

    @property
    def fault(self) -> str:
        words = {dict: "a mapping", list: "a list", type(None): "nothing", str: f'"{self.value}"'}
        value = words.get(type(self.value), str(self.value).lower())
        return f"{self.key}: expected {self.expected}, got {value}"
