"""Expressions of Spark's plans, as far as we look into them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

WINDOW = "window"
"""The column with the window of a row."""


def items_of(sequence: Any) -> list[Any]:
    """Gives a sequence of Scala's as a list."""
    return [sequence.apply(number) for number in range(sequence.size())]


def references_of(expression: Any) -> list[int]:
    """Gives the numbers of the attributes that an expression names."""
    return [each.exprId().id() for each in items_of(expression.references().toSeq())]


def struct_of(expressions: Any) -> StructType:
    """Gives the types of expressions, as columns that are numbered."""
    fields = ",".join(
        f'{{"name":"c{number}","type":{each.dataType().json()},"nullable":true,"metadata":{{}}}}'
        for number, each in enumerate(items_of(expressions))
    )
    found: StructType = StructType.fromJson(json.loads(f'{{"type":"struct","fields":[{fields}]}}'))
    return found


def text_of(expression: Any, names: Mapping[int, str]) -> str:
    """Gives an expression as a text in which attributes are named by where they come from."""
    nodes = json.loads(expression.toJSON())
    for node in nodes:
        if (number := node.pop("exprId", None)) is not None:
            node["from"] = names.get(number["id"], number["id"])
    # Sets are not in the one, sources of attributes not in the other.
    return json.dumps(nodes) + str(expression.sql())


def place_of(expression: Any, places: Mapping[int, int]) -> int | None:
    """Gives which attribute an expression only passes on; None where it does more."""
    while expression.nodeName() == "Alias":
        expression = expression.child()
    return (
        places.get(expression.exprId().id())
        if expression.nodeName() == "AttributeReference"
        else None
    )


def pick_of(expression: Any, places: Mapping[int, int]) -> Callable[[pa.Table], Any] | None:
    """Gives what picks the column that an expression only passes on, or a field of it, the end of a
    window say; None where it does more.
    """
    if (place := place_of(expression, places)) is not None:
        return lambda rows: rows.column(place)
    while expression.nodeName() == "Alias":
        expression = expression.child()
    if expression.nodeName() != "GetStructField":
        return None
    whole, field = place_of(expression.child(), places), expression.ordinal()
    return None if whole is None else lambda rows: pc.struct_field(rows.column(whole), field)


def not_null(condition: Any, places: Mapping[int, int]) -> list[int] | None:
    """Gives the attributes of which a condition asks no more than that they are not NULL.

    Spark puts such a one below every join of equal keys, and Arrow knows the answer.
    """
    if condition.nodeName() == "And":
        found = [not_null(each, places) for each in items_of(condition.children())]
        return None if None in found else [at for each in found for at in each or ()]
    place = place_of(condition.child(), places) if condition.nodeName() == "IsNotNull" else None
    return None if place is None else [place]


def is_window(expression: Any) -> bool:
    """Tells whether an expression is the window of a row."""
    return bool(expression.nodeName() == "AttributeReference" and expression.name() == WINDOW)


def window_in(keys: Any) -> int | None:
    """Gives which of the keys is the window; None where none is, or several are."""
    places = [at for at, each in enumerate(items_of(keys)) if is_window(each)]
    return places[0] if len(places) == 1 else None
