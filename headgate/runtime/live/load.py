"""A Headgate from a pipeline file."""

import logging
from dataclasses import replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from headgate.config import Pipeline, change_of, fragment_of
from headgate.config.fragment import CHANGEABLE
from headgate.errors import HeadgateError
from headgate.model.query import RHYTHM, Query
from headgate.model.settings import Settings
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
        policy=Spelled(standing.policy).make()
        if policy is None and standing.policy is not None
        else policy_of(pipeline, policy),
        classes={name: vars(section) for name, section in pipeline.classes.items()},
        master=pipeline.spark.master,
        spark_config=pipeline.spark.config,
        fresh=fresh,
        **pipeline.model_dump(include=set(Settings.model_fields)),
    )
    headgate.changes = changes
    try:
        for stream in pipeline.stream_models():
            if stream.name not in standing.dropped | standing.replaced:
                headgate.add_stream(stream)
        for query in reading_order(pipeline.query_models()):
            if query.name not in standing.dropped | standing.replaced:
                headgate.add_query(_changed(query, standing, pipeline))
        for names, fragment in standing.added.items():
            _add_again(headgate, names, fragment, standing, pipeline)
        if standing.specification is not None and isinstance(headgate.policy, Amos):
            headgate.set_specification(standing.specification)
    except BaseException:
        headgate.stop()
        raise
    return headgate


def _values(query: Query) -> dict[str, Any]:
    """Return what requests may change of a query, by the keys of a pipeline file."""
    values = {key: getattr(query, field) for key, field in CHANGEABLE.items()}
    qos = None if query.qos is None else [list(point) for point in query.qos.points]
    sink = {key: getattr(query.sink, key) for key in RHYTHM}
    return {**values, "qos": qos, "sql": query.sql, "sink": sink}


def _changed(query: Query, standing: Standing, pipeline: Pipeline) -> Query:
    """Return a query with what requests have changed of it."""
    values = dict(standing.queries.get(query.name, {}))
    sql = values.pop("sql", query.sql)
    try:
        classes = _classes(pipeline)
        new = change_of(values, query.name, FILE, classes, query.sink) if values else {}
    except HeadgateError as error:
        log.warning("a change of query '%s' no longer fits and is left out: %s", query.name, error)
        new = {}
    return replace(changed_query(query, new), sql=sql)


def _add_again(
    headgate: Headgate, names: str, fragment: Any, standing: Standing, pipeline: Pipeline
) -> None:
    """Add again what requests have added, except what was dropped since or is now in the file."""
    try:
        added = fragment_of(fragment, FILE, _classes(pipeline))
        here = {*pipeline.streams, *pipeline.queries, *pipeline.views} - standing.replaced
        here |= standing.dropped
        for stream in added.stream_models():
            if stream.name not in here:
                headgate.add_stream(stream)
        for query in reading_order(added.query_models()):
            if query.name not in here:
                headgate.add_query(_changed(query, standing, pipeline))
    except HeadgateError as error:
        log.warning("%s, added by request, is left out: %s", names, error)


def _classes(pipeline: Pipeline) -> dict[str, float]:
    return {name: section.priority for name, section in pipeline.classes.items()}
