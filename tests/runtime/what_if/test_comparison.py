"""Which policy suits a workload: who takes part, who wins, and how sure that is."""

import json
from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest

import headgate as hg
from headgate.errors import ConfigRefused, UnknownName
from headgate.metrics.measures import MEASURES, objective_of
from headgate.model.network.network import Network
from headgate.model.network.network import Path as QueryPath
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.runtime.what_if.compare import Comparison, Standing
from headgate.runtime.what_if.workload import Workload

SMALL = {"queries": 20, "tuples": 100}


def standing(rank: int, policy: str, *values: float, ratio: float = 1.0) -> Standing:
    return Standing(rank, policy, values, ratio, runs_on_spark=policy != "mss")


def comparison(*standings: Standing, more_is_better: bool = False) -> Comparison:
    return Comparison("w", "", "qos", "QoS", more_is_better, (0, 1), standings)


def short_and_long() -> Workload:
    """Return two queries whose costs differ a hundredfold. All tuples wait at the start."""

    def path(name: str, cost_s: float) -> QueryPath:
        query = Query(name=name, sql="SELECT 1", query_class=name)
        operator = Operator(kind="select", cost_s=cost_s, selectivity=1.0)
        return QueryPath(query=query, stream="s", operators=(operator,))

    network = Network(
        (Stream(name="s", format="rate"),),
        (QueryClass(name="long", priority=1), QueryClass(name="short", priority=9)),
        (path("long", 1.0), path("short", 0.01)),
    )
    return Workload(name="own", network=network, arrivals={"s": np.zeros(5)})


def test_the_policy_that_brings_short_queries_first_has_the_best_mean_response() -> None:
    result = hg.compare(short_and_long(), objective="mean_response", policies=["rr", "hr"], seeds=2)
    assert [entry.policy for entry in result.standings] == ["hr", "rr"]
    # hr: 0.01 ... 0.05, then 1.05 ... 5.05; rr: long and short in turn
    assert result.winner.mean == pytest.approx((sum(range(1, 6)) * 0.01 + 15 + 5 * 0.05) / 10)
    assert result.standings[1].ratio == result.standings[1].mean / result.winner.mean
    assert result.standings[1].rank == 2


def test_a_class_or_a_query_can_be_what_counts() -> None:
    workload = short_and_long()
    short = hg.compare(workload, objective="max_response:class=short", policies=["hr"], seeds=1)
    long = hg.compare(workload, objective="max_response:query=long", policies=["hr"], seeds=1)
    assert short.winner.mean == pytest.approx(0.05)
    assert long.winner.mean == pytest.approx(5.05)
    assert long.objective == "max_response:query=long"


def test_every_policy_that_applies_takes_part_and_the_others_are_named_with_a_reason() -> None:
    result = hg.compare("sharaf", objective="mean_slowdown", seeds=1, **SMALL)
    ranked = {entry.policy for entry in result.standings}
    skipped = dict(result.skipped)
    assert ranked | set(skipped) >= {"hr", "hnr", "bsd", "rr", "cqc", "amos", "chain", "mss"}
    assert {"hr", "hnr", "bsd", "rr", "cqc", "amos"} <= ranked
    assert "no query has one" in skipped["qos"]
    assert "hnr" in {entry.policy for entry in result.standings[:6]}


def test_a_level_that_a_policy_does_not_have_leaves_it_out() -> None:
    result = hg.compare("bz", objective="memory", seeds=1, variant="memory", tuples=20)
    assert dict(result.skipped)["mss"] == "works at query level only"


def test_a_pipeline_leaves_out_what_spark_cannot_run(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"""
state: {tmp_path}/state
streams: {{s: {{format: rate, arrivals: {{rate_per_s: 50}}}}}}
queries:
  q: {{class: default, sql: SELECT a FROM s, statistics: {{cost_s: 0.001, selectivity: 0.5}}}}
"""
    )
    result = hg.compare(str(file), objective="mean_response", seeds=1, seconds=1)
    assert "only a simulation" in dict(result.skipped)["mss"]
    assert all(entry.runs_on_spark for entry in result.standings)


def test_patience_ends_a_run_and_says_how_far_it_came() -> None:
    result = hg.compare(
        "sharaf", objective="mean_response", policies=["hr", "greedy"], seeds=1,
        patience_s=0.0, queries=30, tuples=1000,
    )  # fmt: skip
    assert [entry.policy for entry in result.standings] == ["hr"]
    assert "took more than 0 s for" in dict(result.skipped)["greedy"]


def test_progress_goes_from_nothing_to_all_once() -> None:
    calls: list[tuple[str, float]] = []
    hg.compare(
        "amos", objective="mean_response", policies=["hr", "rr"], seeds=2, tuples=50,
        progress=lambda what, share: calls.append((what, share)),
    )  # fmt: skip
    shares = [share for _, share in calls]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert {what for what, _ in calls} == {"hr", "rr"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "mean_respons"}, "there is no measure 'mean_respons'. Did you mean"),
        ({"objective": "mean_response:class=Z"}, "there is no class 'Z'"),
        ({"objective": "mean_response:clas=H"}, "class=NAME or query=NAME after the colon"),
        ({"objective": "memory:class=H"}, "it is of the whole run only"),
        ({"objective": "qos"}, "qos must be measured on this workload"),
        ({"objective": "mean_response", "seeds": 0}, "seeds is 0, but must be 1 or more"),
        ({"objective": "mean_response", "policies": ["hnrr"]}, "Did you mean 'hnr'?"),
    ],
)
def test_a_comparison_that_cannot_be_is_a_sentence(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises((ConfigRefused, UnknownName)) as refused:
        hg.compare("cqc", **{"policies": ["hr"], "seeds": 1, "tuples": 20, **options})
    assert message in str(refused.value)


def test_the_verdict_says_how_far_behind_the_next_is_and_whether_ranges_overlap() -> None:
    result = comparison(standing(1, "hr", 1.0, 2.0), standing(2, "rr", 3.0, 6.0, ratio=3.0))
    assert result.verdict == (
        "hr is best; next is rr with 3 times its value, behind it in 2 of 2 seeds;"
        " the ranges of the two over seeds do not overlap."
    )
    close = comparison(standing(1, "hr", 1.0, 4.0), standing(2, "rr", 3.0, 3.0, ratio=1.2))
    assert "behind it in 1 of 2 seeds; the ranges of the two over seeds overlap" in close.verdict


def test_equal_policies_share_the_first_place() -> None:
    result = comparison(standing(1, "hr", 1.0), standing(1, "oc", 1.0))
    assert result.verdict == "hr has the best mean (and equal: oc)."


def test_where_more_is_better_the_largest_is_ahead() -> None:
    result = comparison(
        standing(1, "hr", 4.0), standing(2, "rr", 2.0, ratio=0.5), more_is_better=True
    )
    assert "next is rr with 0.5 times its value; one seed does not show" in result.verdict


def test_a_winner_that_foresees_is_not_the_last_word() -> None:
    result = comparison(standing(1, "mss", 1.0), standing(2, "hr", 2.0, ratio=2.0))
    assert result.verdict.endswith("of those that Spark can run, hr has the best mean.")


def test_a_comparison_is_plain_data_for_json() -> None:
    result = comparison(standing(1, "hr", 0.0), standing(2, "rr", 2.0, ratio=nan))
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["standings"][1]["ratio"] is None
    assert data["standings"][0]["mean"] == 0.0
    assert "hr has the best mean" in data["verdict"]


def test_every_measure_has_a_value_in_a_run_that_has_all_parts() -> None:
    aurora = hg.runtime.workload("aurora", depth=2, tuples=200).simulate("hr")
    windows = hg.runtime.workload(
        "sharaf", variant="aggregates", queries=3, tuples=500, rate_per_s=100
    ).simulate("hr")
    for name in MEASURES:
        values = [objective_of(name).of(report) for report in (aurora, windows)]
        assert not all(isnan(value) for value in values), name
