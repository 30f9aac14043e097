"""A handle keeps what it reports about the last steps, and no more."""

import gc
import weakref

import numpy as np
import pytest

from headgate.model.events import StepFinished, UnitFailed
from headgate.model.network import Path
from headgate.model.operator import Operator
from headgate.model.plan import BoxCall
from headgate.model.query import Query
from headgate.runtime.live.handle import QueryHandle


def handle_of(name: str) -> QueryHandle:
    query = Query(name=name, sql="SELECT x FROM s", query_class="H")
    path = Path(query=query, stream="s", operators=(Operator(kind="select"),))
    return QueryHandle(path, lambda name: pytest.fail(name))


def test_a_handle_of_a_dropped_query_hears_nothing_of_the_next_with_its_number() -> None:
    handle = handle_of("q")
    handle.release()
    handle.hear(UnitFailed(1.0, 0, BoxCall(0, (0,), 0, 0, 1, 1), ValueError("of another")))
    handle.stop()
    assert handle.exception() is None
    assert handle.state == "STOPPED"
    assert handle.unit == -1


def test_progress_has_the_mean_response_and_not_every_single_one() -> None:
    handle = handle_of("q")
    responses_s = np.array([0.25] * 50_000 + [0.75] * 50_000)
    reference = weakref.ref(responses_s)
    call = BoxCall(0, (0,), 0, 0, 1, 100_000)
    handle.hear(StepFinished(1.0, call, 0.5, (100_000,), (responses_s,)))
    del responses_s
    gc.collect()
    assert reference() is None
    assert handle.lastProgress is not None
    assert handle.lastProgress["meanResponseSeconds"] == 0.5
