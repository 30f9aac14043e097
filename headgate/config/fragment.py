"""A fragment of a pipeline file: streams, views and queries for a Headgate that runs."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from headgate.config.pipeline import ClassConfig, Pipeline
from headgate.config.query import QueryConfig, ViewConfig
from headgate.config.section import Name, Section
from headgate.config.stream import StreamConfig
from headgate.config.validation_errors import first_of, refusals_of, taken_names, wrong_queries
from headgate.errors import ConfigRefused, UnknownKey
from headgate.model.query import RHYTHM, Sink


class Fragment(Section):
    """Streams, views and queries to add to a running Headgate."""

    streams: dict[Name, StreamConfig] = Field(default_factory=dict)
    views: dict[Name, ViewConfig] = Field(default_factory=dict)
    queries: dict[Name, QueryConfig] = Field(default_factory=dict)


def fragment_of(data: object, where: str, classes: Mapping[str, float]) -> Pipeline:
    """Return streams, views and queries, checked as those of a pipeline file are.

    Args:
        where: the file or request that they come from, for errors.
        classes: priority by class.

    Raises:
        ConfigRefused: a value is wrong, or there is no stream, view or query.
    """
    values = data if isinstance(data, dict) else {}
    try:
        fragment = Fragment.model_validate(values)
    except ValidationError as error:
        raise first_of(refusals_of(where, error, values, Fragment)) from error
    if not (fragment.streams or fragment.views or fragment.queries):
        raise ConfigRefused(
            path=where, key="", value=None, expected="a mapping with streams, views or queries"
        )
    wrong = [
        *taken_names(where, fragment.streams, fragment.views, fragment.queries),
        *wrong_queries(where, fragment.queries, classes),
    ]
    if wrong:
        raise first_of(iter(wrong))
    return Pipeline.model_construct(
        state="", streams=fragment.streams, views=fragment.views, queries=fragment.queries,
        classes={name: ClassConfig(priority=priority) for name, priority in classes.items()},
    )  # fmt: skip


CHANGEABLE = {
    "class": "query_class", "weight": "weight", "deadline_s": "deadline_s", "qos": "qos",
    "on_error": "on_error",
}  # fmt: skip
"""The keys of a query that may change while it runs, and the fields of `Query` that they set."""


def change_of(
    data: object, name: str, where: str, classes: Mapping[str, float], sink: Sink
) -> dict[str, Any]:
    """Return new values for a query by the names of its fields, checked as in a pipeline file.

    Fields of its sink are among them, by their own names.

    Args:
        data: the keys of a query in a pipeline file that are to change; None removes a deadline or
            a QoS graph.
        name: the name of the query.
        where: the request, for errors.
        classes: priority by class.
        sink: that of the query.

    Raises:
        ConfigRefused: a key or a value is wrong, or there is none.
    """
    values = dict(data) if isinstance(data, dict) else {}
    for key in values:
        if key not in (*CHANGEABLE, "sink"):
            raise UnknownKey(path=where, key=f"queries.{name}.{key}", keys=(*CHANGEABLE, "sink"))
    rhythm = _rhythm_of(values.get("sink"), name, where) if "sink" in values else {}
    if rhythm:
        values["sink"] = {
            "format": sink.format, "options": dict(sink.options),
            "partition_by": list(sink.partition_by),
            **{key: getattr(sink, key) for key in RHYTHM}, **rhythm,
        }  # fmt: skip
    if not values:
        expected = f"one or more of {', '.join(CHANGEABLE)}, sink"
        raise ConfigRefused(path=where, key=f"queries.{name}", value=None, expected=expected)
    others = {"sql": "SELECT 1", "class": next(iter(classes))}
    changed = fragment_of({"queries": {name: {**others, **values}}}, where, classes)
    (query,) = changed.query_models()
    new = {field: getattr(query, field) for key, field in CHANGEABLE.items() if key in values}
    return new | {key: getattr(query.sink, key) for key in rhythm}


def _rhythm_of(data: object, name: str, where: str) -> dict[str, Any]:
    """Return the new keys of a sink, whose names are checked."""
    keys = dict(data) if isinstance(data, dict) else {}
    place = f"queries.{name}.sink"
    for key in keys:
        if key not in RHYTHM:
            raise UnknownKey(path=where, key=f"{place}.{key}", keys=RHYTHM)
    if not keys:
        expected = f"a mapping with one or more of {', '.join(RHYTHM)}"
        raise ConfigRefused(path=where, key=place, value=data, expected=expected)
    return keys
