"""Which lane a call takes: the cheaper one, by what was measured of either."""

from headgate.spark.lanes import MOST_TUPLES, Lanes


def test_a_job_that_never_ran_is_not_thought_to_be_cheaper_for_long_queues() -> None:
    lanes = Lanes.new()
    for tuples in (500, 2000, 8000) * 10:
        lanes.learn("driver", tuples, 0.01 + tuples * 5e-5)
    assert lanes.choose(50_000) == "driver"
    assert "job" in lanes.why(50_000)
    assert lanes.choose(MOST_TUPLES + 1) == "job"


def test_a_job_that_was_measured_to_be_cheaper_is_taken() -> None:
    lanes = Lanes.new()
    for tuples in (500, 2000, 8000) * 10:
        lanes.learn("driver", tuples, 0.01 + tuples * 5e-5)
        lanes.learn("job", tuples, 0.1 + tuples * 1e-6)
    assert lanes.choose(500) == "driver"
    assert lanes.choose(50_000) == "job"
