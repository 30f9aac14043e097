"""Performance specifications: rows, weights and what is refused (AMoS §3.2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.performance import (
    METRICS,
    PerformanceSpecification,
    Requirement,
    specification_of,
)


def refusal(rows: Any) -> str:
    with pytest.raises(ConfigRefused) as refused:
        specification_of(rows)
    return str(refused.value)


def test_the_papers_table_3_as_text_and_as_rows() -> None:
    text = "pending:minimize:0.75,mean_response_s:minimize:0.25"
    rows = [
        {"metric": "pending", "quantifier": "minimize", "weight": 0.75},
        {"metric": "mean_response_s", "quantifier": "minimize", "weight": 0.25},
    ]
    assert specification_of(text) == specification_of(rows)
    assert specification_of(text).requirements == (
        Requirement("pending", "minimize", 0.75),
        Requirement("mean_response_s", "minimize", 0.25),
    )


def test_maximize_counts_for_and_minimize_against() -> None:
    specification = specification_of("mean_response_s:minimize:0.6,output_per_s:maximize:0.4")
    assert [row.sign for row in specification.requirements] == [-1, 1]


def test_a_specification_is_taken_as_it_is() -> None:
    specification = specification_of("qos:maximize:1")
    assert specification_of(specification) is specification
    assert specification_of(specification.requirements) == specification


@given(
    metrics=st.lists(st.sampled_from(METRICS), min_size=1, unique=True),
    data=st.data(),
)
def test_a_specification_written_down_reads_the_same(metrics: list[str], data: Any) -> None:
    parts = [data.draw(st.integers(1, 1000)) for _ in metrics]
    quantifiers = [data.draw(st.sampled_from(["minimize", "maximize"])) for _ in metrics]
    specification = PerformanceSpecification(
        tuple(
            Requirement(metric, quantifier, part / sum(parts))
            for metric, quantifier, part in zip(metrics, quantifiers, parts, strict=True)
        )
    )
    assert specification_of(str(specification)) == specification


@pytest.mark.parametrize("third", [1 / 3, 1 / 3 + 9e-10])
def test_weights_that_sum_to_1_but_for_rounding_are_taken(third: float) -> None:
    rows = [Requirement(metric, "minimize", third if place == 0 else 1 / 3) for place, metric in
            enumerate(METRICS[:3])]  # fmt: skip
    assert len(specification_of(rows).requirements) == 3


def test_weights_that_do_not_sum_to_1_are_answered_with_the_row_and_its_weight() -> None:
    assert refusal("mean_response_s:minimize:0.6,output_per_s:maximize:0.3") == (
        "performance specification: sum of weights is 0.9, but must be 1: "
        "give row 2 (output_per_s) 0.4 instead of 0.3."
    )


def test_weights_that_no_single_row_can_mend_are_divided_by_their_sum() -> None:
    assert refusal("pending:minimize:0.9,qos:maximize:0.9,staleness:minimize:0.9") == (
        "performance specification: sum of weights is 2.7, but must be 1: divide the weight of each"
        " row by it (row 1 (pending), row 2 (qos), row 3 (staleness))."
    )


def test_an_unknown_metric_is_answered_with_its_row_and_the_nearest() -> None:
    with pytest.raises(UnknownName) as refused:
        specification_of("pending:minimize:0.5,mean_respons_s:minimize:0.5")
    assert refused.value.nearest == "mean_response_s"
    assert str(refused.value).startswith(
        "performance specification, row 2: there is no metric 'mean_respons_s'. Did you mean"
    )


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ("pending:minimise:1", "row 1 (pending), quantifier is 'minimise', but must be minimize"),
        ("pending:minimize:1.5", "row 1 (pending), weight is 1.5, but must be between 0 and 1"),
        ("pending:minimize:nan", "row 1 (pending), weight is nan, but must be between 0 and 1"),
        ("pending:minimize:much", "weight is 'much', but must be a number between 0 and 1"),
        ("pending:minimize", "row 1 is 'pending:minimize', but must be metric:quantifier:weight"),
        ("pending:minimize:0.5,pending:minimize:0.5", "row 2 (pending) is 'pending', but must be"),
        ("", "rows must be at least one metric:quantifier:weight"),
        ([{"metric": "qos", "weight": 1}], "complete: add its quantifier"),
        (["qos"], "row 1 is 'qos', but must be a mapping of metric, quantifier, weight"),
        ({"qos": 1}, "rows is {'qos': 1}, but must be a list of rows"),
        (7, "rows is 7, but must be a list of rows"),
        ("pending:minimize:0,qos:maximize:0", "give row 2 (qos) 1 instead of 0"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_is_answered_with_what_must_be(rows: Any, part: str) -> None:
    assert part in refusal(rows)


def test_an_unknown_key_of_a_row_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="row 1: there is no key 'wieght'"):
        specification_of([{"metric": "qos", "quantifier": "maximize", "wieght": 1}])
