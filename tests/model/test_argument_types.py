"""Arguments of a wrong type are answered with the name, the value and what was expected."""

from collections.abc import Callable
from typing import Any

import pytest

from headgate import Headgate, HeadgateError, Query, Sink, Stream


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Query(name="q", sql=5, query_class="H"), "Query: sql is 5, but must be a text."),
        (lambda: Query(name="q", sql="x", query_class="H", sink="csv"), "but must be a Sink."),
        (lambda: Query(name="q", sql="x", query_class="H", qos=[(0, 1)]), "a QoSGraph or None."),
        (lambda: Query(name="q", sql="x", query_class="H", apply=5), "must be a function or None."),
        (lambda: Stream(name="s", format="json", lateness_s="5s"), "but must be a number."),
        (lambda: Stream(name="s", format="json", ingest="sprk"), "'auto' or 'driver' or 'spark'."),
        (lambda: Sink(format=None), "Sink: format is 'None', but must be a text."),
        (lambda: Headgate(state=5), "headgate: state is 5, but must be a text or a PathLike."),
        (lambda: Headgate(state="s", classes=["H"]), "classes is ['H'], but must be a mapping"),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused(make: Callable[..., Any], message: str) -> None:
    with pytest.raises(HeadgateError) as refused:
        make()
    assert message in str(refused.value)
