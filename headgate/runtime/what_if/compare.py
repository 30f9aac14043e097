"""Comparison of policies on a workload, over several seeds, ranked from best to worst."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import isnan, nan
from pathlib import Path as File
from typing import Any

from headgate.config import Pipeline
from headgate.errors import ConfigRefused, HeadgateError, UnknownName
from headgate.metrics.measures import Objective, objective_of
from headgate.model.display.html_table import table_html
from headgate.model.network.graph import Graph
from headgate.policies import policies as known_policies
from headgate.policies import policy_entry
from headgate.runtime.policy_text import Spelled
from headgate.runtime.what_if.workload import Workload, workload

Progress = Callable[[str, float], None]
"""Called with the policy that runs, and the share of the whole comparison that is done."""

NEEDS = {
    "qos": "QoS graphs", "qos-bucketed": "QoS graphs", "edf": "deadlines", "edf-hr": "deadlines",
    "aaat": "boxes", "mc": "boxes", "ml": "boxes", "mm": "boxes", "top-k": "boxes",
    "sources-last": "boxes",
}  # fmt: skip
"""What a policy orders queries by, if a workload may have none of it."""


@dataclass(frozen=True)
class Standing:
    """A policy's rank, its values by seed, and the ratio of its mean to the best mean.

    `train` is the most tuples of its calls, in words.
    """

    rank: int
    policy: str
    values: tuple[float, ...]
    ratio: float
    runs_on_spark: bool
    train: str = ""

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    def overlaps(self, other: "Standing") -> bool:
        """Return True if the two ranges over seeds have a value in common."""
        return self.least <= other.most and other.least <= self.most


@dataclass(frozen=True)
class Comparison:
    """Policies ranked by one objective, best first, and those left out with the reason."""

    workload: str
    note: str
    objective: str
    label: str
    more_is_better: bool
    seeds: tuple[int, ...]
    standings: tuple[Standing, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    def _repr_html_(self) -> str:
        heads = ("rank", "policy", "train", "mean", "least", "most", "÷ best")
        rows = [
            (standing.rank, standing.policy, standing.train, standing.mean, standing.least,
             standing.most, standing.ratio)
            for standing in self.standings
        ]  # fmt: skip
        return table_html(f"{self.workload}: {self.label}. {self.verdict}", heads, rows)

    @property
    def winner(self) -> Standing:
        return self.standings[0]

    @property
    def verdict(self) -> str:
        """A sentence with the winner, how far behind the next is, and how sure that is.

        A policy is called best only if the seeds show it: there are several, and the value of the
        next policy is worse in all of them.
        """
        equal = [
            standing.policy for standing in self.standings if standing.values == self.winner.values
        ]
        behind = [standing for standing in self.standings if standing.policy not in equal]
        claim = "is best" if self._is_sure(self.winner, behind) else "has the best mean"
        text = f"{equal[0]} {claim}"
        text += f" (and equal: {', '.join(equal[1:])})" * (len(equal) > 1)
        text += f"; {self._next(behind[0])}." if behind else "."
        usable = [standing for standing in self.standings if standing.runs_on_spark]
        if not self.winner.runs_on_spark and usable:
            claim = "is best" if self._is_sure(usable[0], usable[1:]) else "has the best mean"
            text += f" It foresees tuples; of those that Spark can run, {usable[0].policy} {claim}."
        return text

    def _is_sure(self, first: Standing, others: Sequence[Standing]) -> bool:
        """Return True if a policy is ahead of the next one in each of several seeds."""
        ahead = not others or self._ahead(first, others[0]) == len(first.values)
        return len(first.values) > 1 and ahead

    def _ahead(self, first: Standing, other: Standing) -> int:
        """Return the number of seeds in which a policy is ahead of another."""
        pairs = zip(first.values, other.values, strict=True)
        return sum(a > b if self.more_is_better else a < b for a, b in pairs)

    def _next(self, other: Standing) -> str:
        first = self.winner
        ahead, seeds = self._ahead(first, other), len(first.values)
        ratio = "" if isnan(other.ratio) else f" with {other.ratio:.3g} times its value"
        ranges = "overlap" if first.overlaps(other) else "do not overlap"
        if seeds == 1:
            return f"next is {other.policy}{ratio}; one seed does not show how certain that is"
        return (
            f"next is {other.policy}{ratio}, behind it in {ahead} of {seeds} seeds;"
            f" the ranges of the two over seeds {ranges}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        standings = [
            {**asdict(place), "mean": place.mean, "least": place.least, "most": place.most,
             "ratio": None if isnan(place.ratio) else place.ratio}
            for place in self.standings
        ]  # fmt: skip
        skipped = [{"policy": name, "reason": reason} for name, reason in self.skipped]
        plain = {**asdict(self), "standings": standings, "skipped": skipped}
        return {**plain, "verdict": self.verdict}


class OutOfPatience(Exception):
    """A run took longer than `patience_s`."""


def compare(
    of: str | File | Pipeline | Workload,
    *,
    objective: str,
    policies: Sequence[str] = (),
    seeds: int | Sequence[int] = 5,
    patience_s: float = 60.0,
    progress: Progress = lambda what, share: None,
    **options: Any,
) -> Comparison:
    """Run policies on the same workload over several seeds and rank them by one measure.

    Args:
        of: a pipeline file, a testbed's name, or a workload of your own.
        objective: a measure, of all queries or with `:class=NAME` or `:query=NAME`.
        policies: by default every policy that applies, composed ones with their defaults.
        seeds: how many seeds, or the seeds themselves.
        patience_s: a policy that takes longer for one seed is left out.
        progress: called with the policy that runs, and the share of the comparison that is done.
        options: see `workload`.

    Raises:
        UnknownName: there is no such measure, policy, class or query.
        ConfigRefused: no policy has a value of that measure on this workload.

    >>> comparison = compare("amos", objective="mean_response", policies=["hr", "rr"], seeds=2,
    ...                      tuples=200)
    >>> comparison.winner.policy
    'hr'
    """
    aim = objective_of(objective)
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not numbers:
        raise ConfigRefused(path="comparison", key="seeds", value=seeds, expected="1 or more")
    first = _workload_of(of, numbers[0], options)
    _check(aim, first)
    trials = _Trials(aim, [Spelled(name) for name in policies], patience_s, first)
    for position, seed in enumerate(numbers):
        subject = first if position == 0 else _workload_of(of, seed, options)
        trials.run(subject, _part(progress, position, len(numbers)))
    return Comparison(
        first.name, first.note, str(aim), aim.label, aim.measure.more_is_better, numbers,
        trials.ranked(), tuple(sorted(trials.skipped.items())),
    )  # fmt: skip


class _Trials:
    """The runs of a comparison. A policy that the user named is never skipped silently."""

    def __init__(
        self, aim: Objective, named: Sequence[Spelled], patience_s: float, first: Workload
    ) -> None:
        self._aim, self._named, self._patience_s = aim, bool(named), patience_s
        self._policies = list(named) or [Spelled(name) for name in known_policies()]
        self._values: dict[str, list[float]] = {policy.text: [] for policy in self._policies}
        self._trains: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        if not named:
            reasons = {policy.text: _why_not(policy, first) for policy in self._policies}
            self.skipped = {name: reason for name, reason in reasons.items() if reason}

    def run(self, subject: Workload, progress: Progress) -> None:
        """Run every policy that has not been skipped on one workload."""
        left = [policy for policy in self._policies if policy.text not in self.skipped]
        for position, policy in enumerate(left):
            report_share = partial(_part(progress, position, len(left)), policy.text)
            report_share(0.0)
            watch = _patient(subject.ends_at_s, self._patience_s, report_share)
            self._run_one(subject, policy, watch)

    def _run_one(self, subject: Workload, policy: Spelled, watch: Callable[[float], None]) -> None:
        try:
            report = subject.simulate(policy, progress=watch)
            value, self._trains[policy.text] = self._aim.of(report), report.train
        except OutOfPatience as error:
            self.skipped[policy.text] = str(error)
        except HeadgateError as error:
            if self._named:
                raise
            self.skipped[policy.text] = str(error)
        else:
            self._values[policy.text].append(value)
            if isnan(value):
                self.skipped[policy.text] = f"gives no {self._aim.label} here"

    def ranked(self) -> tuple[Standing, ...]:
        """Return the policies ordered by mean, then by name; equal means share a rank."""
        by_policy = {
            name: values for name, values in self._values.items() if name not in self.skipped
        }
        if not by_policy:
            reasons = "; ".join(sorted(set(self.skipped.values())))
            expected = f"measured on this workload, but every policy {reasons}"
            raise ConfigRefused(
                path="comparison", key=str(self._aim), value=None, expected=expected
            )
        sign = -1 if self._aim.measure.more_is_better else 1
        means = {name: sum(values) / len(values) for name, values in by_policy.items()}
        order = sorted(by_policy, key=lambda name: (sign * means[name], name))
        best = means[order[0]]
        return tuple(
            Standing(
                rank=1 + sum(sign * other < sign * means[name] for other in means.values()),
                policy=name,
                values=tuple(by_policy[name]),
                ratio=means[name] / best if best else nan,
                runs_on_spark="spark" in policy_entry(name.partition("(")[0]).engines,
                train=self._trains[name],
            )
            for name in order
        )


def _workload_of(origin: Any, seed: int, options: Mapping[str, Any]) -> Workload:
    if isinstance(origin, Workload):
        return replace(origin, options={**origin.options, "seed": seed, **options})
    return workload(origin, seed=seed, **options)


def _why_not(policy: Spelled, subject: Workload) -> str:
    """Return why a policy does not apply to a workload; an empty text if it does."""
    entry = policy_entry(policy.text)
    queries = [path.query for path in subject.network.paths]
    if subject.level not in entry.levels:
        return f"works at {' or '.join(entry.levels)} level only"
    if subject.as_on_spark and "spark" not in entry.engines:
        return "foresees single tuples, which only a simulation of single tuples can"
    if NEEDS.get(entry.name) == "QoS graphs" and not any(query.qos for query in queries):
        return "orders by QoS graphs, and no query has one"
    windows = any(node.operator.closes_by_clock for node in Graph(subject.network).nodes)
    if NEEDS.get(entry.name) == "deadlines" and not any(query.deadline_s for query in queries):
        return "" if windows else "orders by deadlines, and no query has one"
    if NEEDS.get(entry.name) == "boxes" and subject.level == "query" and not subject.as_on_spark:
        return "orders the boxes of a query, and each query is one unit at query level"
    return ""


def _check(aim: Objective, subject: Workload) -> None:
    """Refuse an objective of a class or query that the workload does not have."""
    queries = [path.query.name for path in subject.network.paths]
    classes = [query_class.name for query_class in subject.network.classes]
    names = {"class": classes, "query": queries}.get(aim.scope)
    if names is not None and aim.name not in names:
        raise UnknownName(kind=aim.scope, name=aim.name, known=names, where=f"objective '{aim}'")


def _patient(
    ends_at_s: float, patience_s: float, report_share: Callable[[float], None]
) -> Callable[[float], None]:
    """Return a callback for the progress of a run, which ends a run that takes too long.

    Patience counts from the first call of it: compiling is not the policy's fault.
    """
    until_s: list[float] = []

    def watch(now_s: float) -> None:
        share = min(1.0, now_s / ends_at_s) if ends_at_s else 0.0
        until_s.append(time.monotonic() + patience_s)
        if time.monotonic() > until_s[0] and share < 1:
            raise OutOfPatience(f"took more than {patience_s:g} s for {share:.0%} of one run")
        report_share(share)

    return watch


def _part(progress: Progress, position: int, total: int) -> Progress:
    """Return a callback for one of several equal parts, which reports the share of the whole."""
    return lambda what, share: progress(what, (position + share) / total)
