"""What a run of a sweep measures beside the measures of a report."""

import pytest

from headgate.experiments.run import Run, measured


def test_the_delay_of_a_lonely_tuple_is_the_overhead_of_its_calls() -> None:
    options = {"apps": 1, "depth": 3, "fanout": 2, "tuples": 4, "capacity": 0.001}
    run = Run(
        testbed="aurora", policy="baat", seed=0, options={**options, "overhead_s": 0.0001},
        settings={"storage_s": 0.0002, "decision_s": 0.0004},
    )  # fmt: skip
    values = {measure: value for measure, _, value in measured(run)}
    assert values["box_calls"] == 12
    assert values["delay"] == pytest.approx(3 * 0.0007, rel=1e-9)
