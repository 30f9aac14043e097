"""Paths as Spark's readers take them: brackets, braces and wildcards in a path are a pattern."""

import re

_OF_PATTERNS = re.compile(r"[\[\]{}*?\\]")


def literal_path(path: str) -> str:
    r"""Return the text by which a reader finds exactly the file or folder of a path.

    >>> literal_path("/data/local[2]/{a,b}")
    '/data/local\\[2\\]/\\{a,b\\}'
    """
    return _OF_PATTERNS.sub(r"\\\g<0>", path)
