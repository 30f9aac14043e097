"""Spark's own examples of its functions, as a corpus of typed expressions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from differential.exclusions import EXCLUDED

CHUNK = 40
"""How many expressions Spark analyzes in one text."""

SPARK_ERRORS = (PySparkException, Py4JError)
"""The exceptions of Spark; PySpark has no class for some internal errors."""

_OTHERS = re.compile(rf"\b(?:{'|'.join(EXCLUDED)})\(")
_EXAMPLE = re.compile(r"> (SELECT .*?);[ ]*\n", re.S)
_OVER_VALUES = re.compile(r"SELECT (?P<call>.*) FROM (?P<rows>VALUES .*)", re.S)
_CALL = re.compile(r"(\w+)\((.*)\)", re.S)
_LITERAL = re.compile(
    r"\b(?P<typed>(?:DATE|TIMESTAMP|TIMESTAMP_NTZ|TIME|INTERVAL) ?'[^']*'(?: \w+ TO \w+| \w+)?)"
    r"|(?P<text>'(?:[^'\\]|\\.)*')|(?<![\w.])(?P<number>\d+(?:\.\d+)?)(?![\w.])",
    re.I,
)


@dataclass(frozen=True)
class Example:
    """An expression that calls a function, cut into text and arguments.

    Args:
        pieces: pieces of text, with the arguments at odd positions.
        kinds: the type of every argument; empty if Spark cannot resolve the argument alone.
        kind: the type of the whole expression.
    """

    function: str
    group: str
    pieces: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    kind: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.pieces[1::2]


def read(spark: SparkSession) -> list[Example]:
    """Return the examples of all functions that Spark lists and the generator does not exclude."""
    utilities = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    names = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect()}
    examples: list[Example] = []
    for information in utilities.listBuiltinFunctionInfos():
        name = information.getName()
        if name in names and name not in EXCLUDED:
            texts = _EXAMPLE.findall(information.getExamples())
            for text in texts:
                if not _OTHERS.search(_blank(text)):
                    examples += _cut(spark, name, information.getGroup(), text)
    return _typed(spark, sorted(examples, key=lambda example: (example.function, example.text)))


def _cut(spark: SparkSession, name: str, group: str, text: str) -> Iterator[Example]:
    over_values = _OVER_VALUES.fullmatch(text)
    if over_values is not None:
        yield from _over_values(spark, name, group, over_values["call"], over_values["rows"])
    elif not re.search(r"\bFROM\b(?! *')|\bOVER\b|\bLATERAL\b", _blank(text)):
        for call in split(text.removeprefix("SELECT ").strip()):
            whole = _CALL.fullmatch(call)
            if whole is not None and len(split(whole[2])) and _balanced(whole[2]):
                yield Example(name, group, _joined(whole[1] + "(", split(whole[2]), ")"))
            yield Example(name, group, _literals(call))


def _over_values(
    spark: SparkSession, name: str, group: str, call: str, rows: str
) -> Iterator[Example]:
    """Yield an aggregate's example, whose arguments are the columns of its rows."""
    try:
        fields = spark.sql(f"SELECT * FROM {rows}").schema.fields
    except SPARK_ERRORS:
        return
    columns = {field.name: field.dataType.simpleString() for field in fields}
    pattern = r"\b(" + "|".join(map(re.escape, columns)) + r")\b"
    pieces = tuple(re.split(pattern, call))
    if "OVER" in call or len(pieces) < 3 or "(SELECT" in call:
        return
    yield Example(name, group, pieces, tuple(columns[piece] for piece in pieces[1::2]), "?")


def _literals(text: str) -> tuple[str, ...]:
    """Cut a text at its literals."""
    pieces, end = [], 0
    for match in _LITERAL.finditer(text):
        pieces += [text[end : match.start()], match.group()]
        end = match.end()
    return (*pieces, text[end:])


def _joined(start: str, arguments: Sequence[str], end: str) -> tuple[str, ...]:
    pieces = [start]
    for argument in arguments:
        pieces += [argument, ", "]
    return (*pieces[:-1], end)


def split(text: str) -> list[str]:
    """Split a text at its top-level commas.

    >>> split("a, f(b, ','), c")
    ['a', "f(b, ',')", 'c']
    """
    parts, depth, start = [], 0, 0
    blank = _blank(text)
    for place, letter in enumerate(blank):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [part for part in (*parts, text[start:].strip()) if part]


def _balanced(text: str) -> bool:
    depth = 0
    for letter in _blank(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def _blank(text: str) -> str:
    """Replace every character of a string literal by a quote."""
    return re.sub(r"'(?:[^'\\]|\\.)*'|\"[^\"]*\"", lambda match: "'" * len(match.group()), text)


def _typed(spark: SparkSession, examples: list[Example]) -> list[Example]:
    """Return the examples that Spark resolves, with the types of arguments and result."""
    texts = sorted(
        {
            text
            for example in examples
            for text in (example.text, *example.arguments)
            if not (example.kind or (text in example.arguments and "->" in text))
        }
    )
    kinds: dict[str, str] = {}
    for start in range(0, len(texts), CHUNK):
        _learn(spark, texts[start : start + CHUNK], kinds)
    typed = []
    for example in examples:
        if example.kind:  # an aggregate, whose types come from its rows
            typed.append(example)
        elif example.text in kinds:
            arguments = tuple(kinds.get(argument, "") for argument in example.arguments)
            typed.append(
                Example(
                    example.function, example.group, example.pieces, arguments, kinds[example.text]
                )
            )
    return typed


def _learn(spark: SparkSession, texts: Sequence[str], kinds: dict[str, str]) -> None:
    """Add the types of expressions, many at a time; halve the list if Spark rejects one of them."""
    try:
        columns = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
        fields = spark.sql(f"SELECT {columns}").schema.fields
    except SPARK_ERRORS:
        if len(texts) > 1:
            half = len(texts) // 2
            _learn(spark, texts[:half], kinds)
            _learn(spark, texts[half:], kinds)
        return
    if len(fields) == len(texts):
        kinds.update(
            (text, field.dataType.simpleString()) for text, field in zip(texts, fields, strict=True)
        )
