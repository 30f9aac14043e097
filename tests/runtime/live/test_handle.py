"""A handle keeps what it reports about the last steps, and no more."""

import gc
import weakref

import numpy as np
import pytest

from headgate.model.events import StepFinished
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.model.plan import BoxCall
from headgate.model.query import Query
from headgate.runtime.live.handle import QueryHandle
from headgate.runtime.run.live_query import LiveQuery


def query_and_handle() -> tuple[LiveQuery, QueryHandle]:
    query = Query(name="q", sql="SELECT x FROM s", query_class="H")
    path = Path(query=query, stream="s", operators=(Operator(kind="select"),))
    live_query = LiveQuery(path)
    return live_query, QueryHandle(live_query, pytest.fail, pytest.fail)


def test_a_handle_has_what_a_user_needs_and_nothing_of_the_run() -> None:
    _, handle = query_and_handle()
    assert {name for name in dir(handle) if not name.startswith("_")} == {
        "name", "id", "runId", "isActive", "status", "lastProgress", "recentProgress", "exception",
        "explain", "stop", "state", "lane", "statistics", "rows", "rows_dropped",
        "why",
    }  # fmt: skip


def test_handles_of_one_query_are_equal_and_readable() -> None:
    query, handle = query_and_handle()
    again = QueryHandle(query, pytest.fail, pytest.fail)
    assert {handle, again} == {handle}
    assert handle != query_and_handle()[1]
    assert repr(handle) == "QueryHandle(name='q', state='WAITING')"


def test_progress_has_the_mean_response_and_not_every_single_one() -> None:
    query, handle = query_and_handle()
    responses_s = np.array([0.25] * 50_000 + [0.75] * 50_000)
    reference = weakref.ref(responses_s)
    call = BoxCall(0, (0,), 0, 0, 1, 100_000)
    query.hear(StepFinished(1.0, call, 0.5, (100_000,), (responses_s,)))
    del responses_s
    gc.collect()
    assert reference() is None
    assert handle.lastProgress is not None
    assert handle.lastProgress["meanResponseSeconds"] == 0.5
