"""Lines of JSON: a line that is an array has a row for every element."""

import re

_JSON_MARK = re.compile(r"""[][{},]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
"""What divides JSON, and texts, in which the same letters divide nothing."""

BLANK = "".join(map(chr, range(33)))
"""What Java's trim() takes away."""


def elements_of(line: str) -> list[str]:
    """Gives the objects of a line that is an array, each a row to Spark; else the line itself.

    An array that does not end, or has something else in it, is no row at all.

    >>> elements_of('[{"a": "x, [y"}, {"a": [1, {"b": 2}]}]')
    ['{"a": "x, [y"}', '{"a": [1, {"b": 2}]}']
    >>> elements_of("[]"), elements_of('{"a": [1, 2]}'), elements_of("[1, 2]")
    ([], ['{"a": [1, 2]}'], ['['])
    """
    text = line.strip(BLANK)
    if not text.startswith("["):
        return [line]
    found: list[str] = []
    depth = whole = 0
    begins_at = 1
    for token in _JSON_MARK.finditer(text):
        mark = token.group()
        depth += (mark in ("[", "{")) - (mark in ("]", "}"))
        whole += mark == "}" and depth == 1
        if depth == 0 or (mark == "," and depth == 1):
            found.append(text[begins_at : token.start()].strip(BLANK))
            begins_at = token.end()
        if depth == 0:
            objects = all(each[:1] == "{" and each[-1:] == "}" for each in found)
            return found if objects and whole == len(found) else [] if found == [""] else ["["]
    return ["["]
