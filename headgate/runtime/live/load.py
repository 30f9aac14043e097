"""A Headgate from a pipeline file."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from headgate.config import Pipeline, change_of, fragment_of
from headgate.config.fragment import CHANGEABLE
from headgate.errors import HeadgateError, SparkGone
from headgate.model.query import RHYTHM, Query
from headgate.model.settings import Settings
from headgate.model.stream import Stream
from headgate.policies import Policy
from headgate.policies.amos import Amos
from headgate.runtime.live.changes import FILE, Changes, Standing
from headgate.runtime.live.headgate import Headgate
from headgate.runtime.members.query_paths import changed_query
from headgate.runtime.pipeline import policy_of
from headgate.runtime.policy_text import Spelled
from headgate.runtime.views import reading_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("headgate")


def load(
    pipeline: Pipeline,
    *,
    spark: "SparkSession | None" = None,
    policy: str | None = None,
    state: File | None = None,
    fresh: bool = False,
) -> Headgate:
    """Return a Headgate with all that a pipeline file contains, ready to start.

    What was changed by request in earlier runs of its state directory stays changed.

    Args:
        policy: the policy, whatever the file has and requests have set.
    """
    changes = Changes(File(state or pipeline.state), fresh=fresh)
    standing = changes.standing
    changes.of_file = {
        "policy": policy_of(pipeline, None).spelled,
        "queries": {query.name: _values(query) for query in pipeline.query_models()},
    }
    headgate = Headgate(
        spark,
        state=state or File(pipeline.state),
        policy=_policy(pipeline, policy, standing),
        classes={name: vars(section) for name, section in pipeline.classes.items()},
        master=pipeline.spark.master,
        spark_config=pipeline.spark.config,
        fresh=fresh,
        **pipeline.model_dump(include=set(Settings.model_fields)),
    )
    headgate.changes = changes
    try:
        _add_members(headgate, pipeline, standing)
        if standing.specification is not None and isinstance(headgate.policy, Amos):
            headgate.set_specification(standing.specification)
    except BaseException:
        headgate.stop()
        raise
    return headgate


def _policy(pipeline: Pipeline, text: str | None, standing: Standing) -> Policy:
    """Return the policy that a text names, else that of the last request, else that of the file."""
    if text is not None:
        standing.policy = None
    elif standing.policy is not None:
        try:
            return Spelled(standing.policy).make()
        except HeadgateError as error:
            log.warning("policy %s, set by request, is left out: %s", standing.policy, error)
            standing.policy = standing.specification = None
    return policy_of(pipeline, text)


def _add_members(headgate: Headgate, pipeline: Pipeline, standing: Standing) -> None:
    """Add the streams and queries of the file and of requests, except what was dropped since.

    A query of the file may have been altered to read what was added: so all streams come first, and
    all queries in the order in which they read each other. An addition that no longer fits is left
    out; what the file has is refused.
    """
    gone = standing.dropped | standing.replaced
    streams, queries = _added(pipeline, standing)
    for stream in pipeline.stream_models():
        if stream.name not in gone:
            headgate.add_stream(stream)
    for stream in streams:
        with _left_out(stream.name, standing):
            headgate.add_stream(stream)
    in_file = [query for query in pipeline.query_models() if query.name not in gone]
    names = {query.name for query in queries}
    for query in reading_order(
        [_changed(query, standing, pipeline) for query in (*in_file, *queries)]
    ):
        with _left_out(query.name, standing) if query.name in names else nullcontext():
            headgate.add_query(query)


def _added(pipeline: Pipeline, standing: Standing) -> tuple[list[Stream], list[Query]]:
    """Return what requests have added, except what is now in the file."""
    here = {*pipeline.streams, *pipeline.queries, *pipeline.views} - standing.replaced
    streams, queries = list[Stream](), list[Query]()
    for name, fragment in list(standing.added.items()):
        if name in here:
            continue
        with _left_out(name, standing):
            alone = {section: {name: values[name]} for section, values in fragment.items()
                     if name in values}  # fmt: skip
            part = fragment_of(alone, FILE, _classes(pipeline))
            streams += part.stream_models()
            queries += part.query_models()
    return streams, queries


@contextmanager
def _left_out(name: str, standing: Standing) -> Iterator[None]:
    """Leave out an addition that is refused, with a warning."""
    try:
        yield
    except SparkGone:
        raise
    except HeadgateError as error:
        standing.added.pop(name, None)
        log.warning("%s, added by request, is left out: %s", name, error)


def _values(query: Query) -> dict[str, Any]:
    """Return what requests may change of a query, by the keys of a pipeline file."""
    values = {key: getattr(query, field) for key, field in CHANGEABLE.items()}
    qos = None if query.qos is None else [list(point) for point in query.qos.points]
    sink = {key: getattr(query.sink, key) for key in RHYTHM}
    return {**values, "qos": qos, "sql": query.sql, "sink": sink}


def _changed(query: Query, standing: Standing, pipeline: Pipeline) -> Query:
    """Return a query with what requests have changed of it, as far as it still fits."""
    values = dict(standing.queries.get(query.name, {}))
    sql = values.pop("sql", query.sql)
    new: dict[str, Any] = {}
    for key, value in values.items():
        try:
            new |= change_of({key: value}, query.name, FILE, _classes(pipeline), query.sink)
        except HeadgateError as error:
            standing.queries[query.name].pop(key)
            log.warning("a change of query '%s' is left out: %s", query.name, error)
    return replace(changed_query(query, new), sql=sql)


def _classes(pipeline: Pipeline) -> dict[str, float]:
    return {name: section.priority for name, section in pipeline.classes.items()}
