"""Refusals of a pipeline file: the key, its value, and what was expected instead."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from headgate.config.mistakes import WrongType
from headgate.config.query import QueryConfig
from headgate.config.yaml_file import Place
from headgate.errors import ConfigRefused, UnknownKey
from headgate.extensions.declared_options import hint
from headgate.model.drop import ValueGraph
from headgate.model.qos_graph import QoSGraph
from headgate.model.stream import NAME_RULE

SECRET = {"spark", "options"}
"""Keys whose values may hold passwords: no refusal shows them."""

TYPES = {
    "int": "a whole number", "float": "a number", "finite": "a finite number",
    "bool": "true or false", "string": "a text", "dict": "a mapping", "model": "a mapping",
    "list": "a list", "tuple": "a list",
}  # fmt: skip
"""The types of values in words, by how the names of pydantic's errors begin."""

SHORT = ("priority",)
"""The place inside a class of its one value, in the short form `H: 6`."""

MISSING = "given: it has no default"
"""What is expected of a key that is missing."""

Refusals = Iterator[tuple[Place, ConfigRefused]]
"""Refusals with the places of the wrong keys."""


def refusals_of(
    where: str, error: ValidationError, data: object, model: type[BaseModel]
) -> Refusals:
    """Yield a refusal for each wrong place of a file.

    Args:
        where: the file or request.
        data: what was validated.
        model: the model of the whole file.
    """
    places: set[Place] = set()
    for detail in error.errors():
        place = _place(data, detail["loc"], missing=detail["type"] == "missing")
        if place not in places:
            places.add(place)
            yield place, _refusal(where, place, detail, model)


def _refusal(
    where: str, place: Place, detail: Mapping[str, Any], model: type[BaseModel]
) -> ConfigRefused:
    key = ".".join(map(str, place))
    kind, expected = detail["type"], detail["msg"]
    value, is_secret = detail.get("input"), not SECRET.isdisjoint(place)
    if kind == "extra_forbidden":
        return UnknownKey(path=where, key=key, keys=_keys(model, place[:-1]))
    if type_words := _type(detail, place, key):
        if is_secret and not isinstance(value, list | dict):  # of those, only the type is shown
            return ConfigRefused(path=where, key=key, value=None, expected=type_words)
        return WrongType(path=where, key=key, value=value, expected=type_words)
    if kind == "missing":
        value, expected = None, MISSING
    elif kind == "greater_than" and (unit := _unit(key)):
        expected = f"above {detail['ctx']['gt']:g} {unit}"
    else:
        expected = expected.removeprefix("Input should be ").removeprefix("Value error, ")
        if expected.startswith("String should match"):
            expected = "a SELECT" if key.endswith(".sql") else NAME_RULE
    if is_secret or (isinstance(value, dict) and value):
        value = None  # it may contain passwords
    return ConfigRefused(path=where, key=key, value=value, expected=expected)


def _place(data: Any, location: Sequence[int | str], *, missing: bool) -> Place:
    """Return the place that pydantic's location means; its last parts may name alternatives."""
    place: list[int | str] = []
    part: Any
    for part in location:
        keys: Any = range(len(data)) if isinstance(data, list) else data
        if isinstance(data, list | dict) and part in keys:
            data = data[part]
        elif not (missing and part == location[-1]):
            break
        place.append(part)
    return tuple(place)


def _type(detail: Mapping[str, Any], place: Place, key: str) -> str | None:
    """Return the type that was expected, in words; None if the type is right."""
    kind, tail = detail["type"], detail["loc"][len(place) :]
    words = TYPES.get(kind.split("_")[0])
    if words is None or not kind.endswith(("_type", "_parsing", "_from_float", "_number")):
        return None
    if tail and tail != SHORT:  # one of several alternatives
        return "a text, a number, true or false"
    unit = _unit(key) if "number" in words else None
    return f"{words} of {unit}" if unit and not unit.startswith("per") else words


def taken_names(
    where: str, streams: Collection[str], views: Collection[str], queries: Collection[str]
) -> Refusals:
    """Yield a refusal for each view that has the name of a stream or of a query."""
    for name in views:
        for kind, others in (("stream", streams), ("query", queries)):
            if name in others:
                yield (
                    ("views", name),
                    ConfigRefused(
                        path=where,
                        key=f"views.{name}",
                        value=name,
                        expected=f"another name: a {kind} has it",
                    ),
                )


def wrong_queries(
    where: str, queries: Mapping[str, QueryConfig], classes: Collection[str]
) -> Refusals:
    """Yield a refusal for each class that does not exist, wrong sink and wrong graph."""
    for name, query in queries.items():
        place = ("queries", name)
        if query.class_ not in classes:
            yield (
                (*place, "class"),
                ConfigRefused(
                    path=where,
                    key=f"queries.{name}.class",
                    value=query.class_,
                    expected=f"one of {', '.join(classes)}{hint(query.class_, tuple(classes))}",
                ),
            )
        if mistake := query.sink.model().mistake():
            key, value, expected = mistake
            yield (
                (*place, "sink", *key.split(".", 1)),
                ConfigRefused(
                    path=where, key=f"queries.{name}.sink.{key}", value=value, expected=expected
                ),
            )
        for key, refused in _wrong_graphs(query):
            yield (
                (*place, key),
                ConfigRefused(
                    path=where, key=f"queries.{name}.{key}", value=None, expected=refused.expected
                ),
            )


def _wrong_graphs(query: QueryConfig) -> Iterator[tuple[str, ConfigRefused]]:
    """Yield the key of each graph that makes no sense, and its refusal."""
    for key, points in (("qos", query.qos), ("loss", query.loss)):
        try:
            QoSGraph(tuple(points or [(0.0, 1.0)]))
        except ConfigRefused as refused:
            yield key, refused
    if query.value is not None:
        try:
            ValueGraph(query.value.column, tuple(query.value.points))
        except ConfigRefused as refused:
            yield "value", refused


def first_of(refusals: Refusals) -> ConfigRefused:
    """Return the first refusal."""
    return next(refusal for _, refusal in refusals)


def _unit(key: str) -> str | None:
    """Return the unit that the name of a key ends in, in words."""
    units = {"_per_s": "per second", "_s": "seconds", "_bytes": "bytes"}
    return next((unit for ending, unit in units.items() if key.endswith(ending)), None)


def _keys(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """Return the keys that a mapping at a place of the file may have.

    >>> from headgate.config import Pipeline
    >>> _keys(Pipeline, ("streams", "sensors", "arrivals"))
    ['rate_per_s', 'burst_factor', 'burst_every_s', 'burst_for_s']
    """
    for part in place:
        field = next(
            (field for name, field in model.model_fields.items() if part in (name, field.alias)),
            None,  # a name that the user has chosen, as that of a stream
        )
        model = model if field is None else next(_models(field.annotation), model)
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models inside a type, such as that of `dict[str, StreamConfig]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
