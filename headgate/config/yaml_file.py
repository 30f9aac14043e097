"""A YAML file: one mapping without repeated keys, and the line of each key."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

import yaml

from headgate.config.yaml_limits import TEXT_BYTES, LimitedLoader
from headgate.errors import ConfigRefused

Place = tuple[Any, ...]
"""The keys on the way to a value: `("queries", "hot", "sql")`."""


@dataclass(frozen=True)
class Document:
    """A YAML file: its values, and where they stand.

    Args:
        twins: the places of keys that appear twice, each with the lines of the two.
    """

    path: str
    data: dict[Any, Any]
    twins: tuple[tuple[Place, int, int], ...]
    _root: yaml.Node = field(repr=False)

    def line(self, place: Place) -> int | None:
        """Return the line of a key, or of the nearest one around it that the file has."""
        return self._find(place)[0]

    def line_in(self, place: Place, line: int | None) -> int | None:
        """Return the line of the file that has a line of a text, such as that of a query.

        Only a text in block style (`|`) has the lines that the file has.
        """
        first, node = self._find(place)
        is_block = isinstance(node, yaml.ScalarNode) and node.style == "|"
        return node.start_mark.line + 1 + line if is_block and line is not None else first

    def _find(self, place: Place) -> tuple[int | None, yaml.Node]:
        line, node = None, self._root
        for part in place:
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            for key, value in reversed(pairs):  # those of a merge (`<<`) come first
                if key.value == str(part):
                    line, node = key.start_mark.line + 1, value
                    break
            else:
                return line, yaml.ScalarNode("", "")
        return line, node


def read_mapping(path: str | File) -> dict[Any, Any]:
    """Read a YAML file that holds a mapping.

    Raises:
        ConfigRefused: the file cannot be read, is not YAML, or holds no mapping.
    """
    document = read_document(path)
    for refusal in twin_keys(document):
        raise refusal
    return document.data


def twin_keys(document: Document) -> Iterator[ConfigRefused]:
    """Yield a refusal for each key that appears twice, where YAML would take the last one."""
    for place, line, first_line in document.twins:
        yield ConfigRefused(
            path=document.path, key=".".join(map(str, place)), value=None, line=line,
            expected=f"given once: it is also in line {first_line}",
        )  # fmt: skip


def read_document(path: str | File) -> Document:
    """Read a YAML file that holds a mapping; keys that appear twice are reported, not refused.

    Raises:
        ConfigRefused: the file cannot be read, is not YAML, or holds no mapping.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(TEXT_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigRefused(
            path=str(path), key="", value=None, expected=f"a readable file: {reason.lower()}"
        ) from error
    if len(text) > TEXT_BYTES:
        expected = f"at most {TEXT_BYTES} letters long"
        raise ConfigRefused(path=str(path), key="", value=None, expected=expected)
    try:
        loader = LimitedLoader(text)
        try:
            root = loader.get_single_node()
            twins = tuple(() if root is None else _twins(root, (), set()))
            data = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except ValueError as error:  # a number of 5 000 digits, or the 31st of February
        raise ConfigRefused(
            path=str(path), key="", value=None, expected=f"valid YAML: {error}"
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not YAML"
        raise ConfigRefused(
            path=str(path), key="", value=None, expected=f"valid YAML: {problem}",
            line=mark.line + 1 if mark else None,
        ) from error  # fmt: skip
    if root is None or not isinstance(data, dict):
        raise ConfigRefused(path=str(path), key="", value=None, expected="a mapping of keys")
    return Document(str(path), data, twins, root)


def _twins(node: yaml.Node, place: Place, seen: set[int]) -> Iterator[tuple[Place, int, int]]:
    if id(node) in seen or not isinstance(node, yaml.MappingNode | yaml.SequenceNode):
        return
    seen.add(id(node))  # an alias is the same node again
    if isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _twins(value, (*place, number), seen)
        return
    lines: dict[tuple[str, str], int] = {}
    for key, value in node.value:
        line, name = key.start_mark.line + 1, (key.tag, str(key.value))
        if name in lines:
            yield (*place, key.value), line, lines[name]
        lines.setdefault(name, line)
        yield from _twins(value, (*place, key.value), seen)
