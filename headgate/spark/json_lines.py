"""JSON Lines: a line that is an array holds one row per element."""

import re

_JSON_MARK = re.compile(r"""[][{},]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
"""The characters that divide JSON, and string literals, inside which they divide nothing."""

BLANK = "".join(map(chr, range(33)))
"""The characters that Java's trim() removes."""


def elements_of(line: str) -> list[str]:
    """Return the objects of a line that is an array, or else the line itself.

    Spark reads each object of an array as a row. An array that does not end, or that holds anything
    but objects, becomes one malformed row, `[`.

    >>> elements_of('[{"a": "x, [y"}, {"a": [1, {"b": 2}]}]')
    ['{"a": "x, [y"}', '{"a": [1, {"b": 2}]}']
    >>> elements_of("[]"), elements_of('{"a": [1, 2]}'), elements_of("[1, 2]")
    ([], ['{"a": [1, 2]}'], ['['])
    """
    text = line.strip(BLANK)
    if not text.startswith("["):
        return [line]
    items: list[str] = []
    depth = objects = 0
    begin = 1
    for token in _JSON_MARK.finditer(text):
        mark = token.group()
        depth += (mark in ("[", "{")) - (mark in ("]", "}"))
        objects += mark == "}" and depth == 1
        if depth == 0 or (mark == "," and depth == 1):
            items.append(text[begin : token.start()].strip(BLANK))
            begin = token.end()
        if depth == 0:
            braced = all(item[:1] == "{" and item[-1:] == "}" for item in items)
            return items if braced and objects == len(items) else [] if items == [""] else ["["]
    return ["["]
