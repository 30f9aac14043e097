"""Refusals of a pipeline file: the key, its value, and what was expected instead."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import get_args

from pydantic import BaseModel, ValidationError

from headgate.config.query import QueryConfig
from headgate.errors import ConfigRefused, UnknownKey
from headgate.model.stream import NAME_RULE

SECRET = {"spark", "options"}
"""Keys whose values may hold passwords: no refusal shows them."""


def refusal_of(
    path: str,
    error: ValidationError,
    places: Mapping[str, tuple[str, str]],
    model: type[BaseModel],
) -> ConfigRefused:
    """Return the refusal of a file for the first error in it.

    Args:
        path: the file or request.
        places: by key, where a value that is not from the file comes from, and its name there.
        model: the model of the whole file.
    """
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"] if part != "[key]")
    is_secret = not SECRET.isdisjoint(first["loc"])
    value, expected = None if is_secret else _public(first.get("input")), first["msg"]
    if first["type"] == "extra_forbidden":
        return UnknownKey(path=path, key=key, keys=_keys(model, first["loc"][:-1]))
    path, key = places.get(key, (path, key))
    if first["type"] == "missing":
        value, expected = None, "given: it has no default"
    elif first["type"] == "greater_than" and (unit := _unit(key)):
        expected = f"above {first['ctx']['gt']:g} {unit}"
    else:
        expected = expected.removeprefix("Input should be ").removeprefix("Value error, ")
        if expected.startswith("String should match"):
            expected = "a SELECT" if key.endswith(".sql") else NAME_RULE
    return ConfigRefused(path=path, key=key, value=value, expected=expected)


def _public(value: object) -> object:
    """Return a value without what may be secret in it."""
    if isinstance(value, dict):
        return {key: "…" if key in SECRET else _public(inner) for key, inner in value.items()}
    return [_public(inner) for inner in value] if isinstance(value, list) else value


def refuse_taken_names(
    where: str, streams: Collection[str], views: Collection[str], queries: Collection[str]
) -> None:
    """Raise ConfigRefused if a view has the name of a stream or of a query."""
    for name in views:
        for kind, others in (("stream", streams), ("query", queries)):
            if name in others:
                raise ConfigRefused(
                    path=where,
                    key=f"views.{name}",
                    value=name,
                    expected=f"another name: a {kind} has it",
                )


def refuse_queries(
    where: str, queries: Mapping[str, QueryConfig], classes: Collection[str]
) -> None:
    """Raise ConfigRefused if a query has a class that does not exist, or a wrong sink."""
    for name, query in queries.items():
        if query.class_ not in classes:
            raise ConfigRefused(
                path=where,
                key=f"queries.{name}.class",
                value=query.class_,
                expected=f"one of {', '.join(classes)}",
            )
        if mistake := query.sink.model().mistake():
            key, value, expected = mistake
            raise ConfigRefused(
                path=where, key=f"queries.{name}.sink.{key}", value=value, expected=expected
            )


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
