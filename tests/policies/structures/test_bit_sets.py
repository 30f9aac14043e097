"""Sets of numbers as bits, compared with Python's sets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.policies.structures.bit_sets import bit_sets, following, is_empty, put, take


@pytest.mark.parametrize("numbers", [1, 64, 65, 4096, 4097, 300_000])
@given(data=st.data())
def test_the_next_number_is_that_of_a_plain_set(numbers: int, data: st.DataObject) -> None:
    words, levels = bit_sets(2, numbers)
    number = st.integers(0, numbers - 1)
    plain: set[int] = set()
    for goes_in, item in data.draw(st.lists(st.tuples(st.booleans(), number), max_size=30)):
        (put if goes_in else take)(words, levels, 1, item)
        (plain.add if goes_in else plain.discard)(item)
        least = data.draw(st.integers(0, numbers))
        expected = min((member for member in plain if member >= least), default=-1)
        assert following(words, levels, 1, least) == expected
        assert is_empty(words, levels, 1) == (not plain)
        assert is_empty(words, levels, 0)
