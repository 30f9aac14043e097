"""Other values of a query that runs are refused where a start would refuse them."""

import pytest
from kit.networks import line, select

from headgate.errors import QueryRefused
from headgate.runtime.members.query_paths import with_values


def test_a_query_that_allows_shedding_gets_no_dead_letters() -> None:
    paths = [line("lenient", select(0.1), allows_shedding=True), line("strict", select(0.1))]
    with pytest.raises(QueryRefused, match="allows_shedding is not possible with on_error"):
        with_values(paths, "lenient", {"on_error": "dead_letter"})
    _, strict = with_values(paths, "strict", {"on_error": "dead_letter"})
    assert strict.query.on_error == "dead_letter"
