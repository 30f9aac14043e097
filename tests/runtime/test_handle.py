"""A handle keeps what it tells of the last steps, and no more."""

import gc
import weakref

import numpy as np
import pytest

from headgate.model.events import StepFinished
from headgate.model.network import Path
from headgate.model.operator import Operator
from headgate.model.plan import BoxCall
from headgate.model.query import Query
from headgate.runtime.handle import QueryHandle


def test_progress_has_the_mean_response_and_not_every_single_one() -> None:
    query = Query(name="q", sql="SELECT x FROM s", query_class="H")
    path = Path(query=query, stream="s", operators=(Operator(kind="select"),))
    handle = QueryHandle(path, lambda name: pytest.fail(name))
    responses_s = np.array([0.25] * 50_000 + [0.75] * 50_000)
    kept = weakref.ref(responses_s)
    call = BoxCall(0, (0,), 0, 0, 1, 100_000)
    handle.hear(StepFinished(1.0, call, 0.5, (100_000,), (responses_s,)))
    del responses_s
    gc.collect()
    assert kept() is None
    assert handle.lastProgress is not None
    assert handle.lastProgress["meanResponseSeconds"] == 0.5
