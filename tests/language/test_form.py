"""Constants are taken out of comparisons that are joined by AND, and of nothing else."""

import pytest

from headgate.language.form import form_of
from headgate.language.parse import path_of
from headgate.model.form import Test as Comparison
from headgate.model.query import Query


@pytest.mark.parametrize(
    ("predicate", "tests", "rest", "constants"),
    [
        ("heat > 30", ["heat > int"], [], (30,)),
        ("30 < heat", ["heat > int"], [], (30,)),
        ("heat >= -3 AND dry <= 2.5", ["heat >= int", "dry <= decimal"], [], (-3, 2.5)),
        ("place = 'north' AND n LIKE 'a%'", ["place = string"], ["n LIKE 'a%'"], ("north",)),
        ("heat BETWEEN 1 AND 5", ["heat >= int", "heat <= int"], [], (1, 5)),
        ("a % 3 = 1 AND length(b) > 4", ["a % 3 = int", "length(b) > int"], [], (1, 4)),
        ("(a > 1 OR b > 2) AND c > 3", ["c > int"], ["(a > 1 OR b > 2)"], (3,)),
        ("CASE WHEN a = 1 AND b = 2 THEN c END AND d < 3", ["d < int"],
         ["CASE WHEN a = 1 AND b = 2 THEN c END"], (3,)),
        ("a IN (1, 2) AND b = 3", ["b = int"], ["a IN (1, 2)"], (3,)),
        ("a BETWEEN b AND 4 AND c = 5", ["c = int"], ["a BETWEEN b AND 4"], (5,)),
        ("a > 24D AND b > 1", ["b > int"], ["a > 24D"], (1,)),
        ("a = DATE'2020-01-01' AND b > 1", ["b > int"], ["a = DATE'2020-01-01'"], (1,)),
        ("a = 'it''s' AND b > 1", ["b > int"], ["a = 'it''s'"], (1,)),
        ("a = 'tab\\t' AND b > 1", ["b > int"], ["a = 'tab\\t'"], (1,)),
        ("a > 3000000000 AND b > 1", ["b > int"], ["a > 3000000000"], (1,)),
        ("NOT a = 3 AND b IS NOT NULL AND c > 1", ["c > int"],
         ["NOT a = 3", "b IS NOT NULL"], (1,)),
        ("a NOT BETWEEN 1 AND 2 AND b > 1", ["b > int"], ["a NOT BETWEEN 1 AND 2"], (1,)),
        ("1 = 1 AND b > 1", ["b > int"], ["1 = 1"], (1,)),
    ],
)  # fmt: skip
def test_constants_are_taken_out(
    predicate: str, tests: list[str], rest: list[str], constants: tuple[object, ...]
) -> None:
    found = form_of(predicate)
    assert found is not None
    form, values = found
    assert [f"{each.left} {each.comparison} {each.kind}" for each in form.tests] == tests
    assert list(form.rest) == rest
    assert values == constants


@pytest.mark.parametrize(
    "predicate",
    ["a = 1 OR b = 2", "NOT a = 3", "a = b", "a = 1 = true", "a > 1e3", "a > 5L", "flag", "a <> 3"],
)
def test_what_is_no_conjunction_of_tests_has_no_form(predicate: str) -> None:
    assert form_of(predicate) is None


def test_a_path_knows_its_form_and_its_longest_call() -> None:
    text = "SELECT upper(a) AS b FROM s WHERE length(a) > 3 AND lower(upper(a)) = 'x'"
    path = path_of(Query(name="q", sql=text, query_class="H"), {"s": ["a"]})
    assert path.form is not None
    assert path.form.tests[0] == Comparison("length(a)", ">", "int")
    assert path.constants == (3, "x")
    assert path.longest_call == "LOWER(UPPER(a))"
