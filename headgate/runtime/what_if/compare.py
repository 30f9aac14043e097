"""Which policy suits a workload: every one that applies runs over several seeds, best first."""

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
from headgate.policies import policies as known_policies
from headgate.policies import policy_entry
from headgate.runtime.policy_text import Spelled
from headgate.runtime.what_if.workload import Workload, workload

Progress = Callable[[str, float], None]
"""Told what runs, and the share of the whole comparison which is done."""

NEEDS = {
    "qos": "QoS graphs", "qos-bucketed": "QoS graphs", "edf": "deadlines", "edf-hr": "deadlines",
}  # fmt: skip
"""What a policy orders by, where a workload may have none of it."""


@dataclass(frozen=True)
class Standing:
    """A policy's place: its values by seed, their mean and range, and the mean over the best's."""

    rank: int
    policy: str
    values: tuple[float, ...]
    ratio: float
    runs_on_spark: bool

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
        """Says whether the two ranges over seeds have a value in common."""
        return self.least <= other.most and other.least <= self.most


@dataclass(frozen=True)
class Comparison:
    """Policies by one objective, best first, and those that were left out with the reason."""

    workload: str
    note: str
    objective: str
    label: str
    more_is_better: bool
    seeds: tuple[int, ...]
    standings: tuple[Standing, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def winner(self) -> Standing:
        return self.standings[0]

    @property
    def verdict(self) -> str:
        """Names the winner, how far behind the next is, and how sure that is."""
        equal = [each.policy for each in self.standings if each.values == self.winner.values]
        says = f"{equal[0]} is best" + (f" (and equal: {', '.join(equal[1:])})" * (len(equal) > 1))
        behind = [each for each in self.standings if each.policy not in equal]
        says += f"; {self._next(behind[0])}." if behind else "."
        usable = [each for each in self.standings if each.runs_on_spark]
        if not self.winner.runs_on_spark and usable:
            says += f" It foresees tuples; of those that Spark can run, {usable[0].policy} is best."
        return says

    def _next(self, other: Standing) -> str:
        first = self.winner
        pairs = list(zip(first.values, other.values, strict=True))
        ahead = sum(a > b if self.more_is_better else a < b for a, b in pairs)
        ratio = "" if isnan(other.ratio) else f" with {other.ratio:.3g} times its value"
        ranges = "overlap" if first.overlaps(other) else "do not overlap"
        return (
            f"next is {other.policy}{ratio}, behind it in {ahead} of {len(pairs)} seeds;"
            f" the ranges of the two over seeds {ranges}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Gives plain data for JSON."""
        standings = [
            {**asdict(each), "mean": each.mean, "least": each.least, "most": each.most,
             "ratio": None if isnan(each.ratio) else each.ratio}
            for each in self.standings
        ]  # fmt: skip
        skipped = [{"policy": name, "reason": reason} for name, reason in self.skipped]
        plain = {**asdict(self), "standings": standings, "skipped": skipped}
        return {**plain, "verdict": self.verdict}


class OutOfPatience(Exception):
    """A run took longer than anybody wants to wait for."""


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
    """Runs policies on the same workload over several seeds and ranks them by one measure.

    Args:
        of: a pipeline file, a testbed's name, or a workload of one's own.
        objective: a measure, for all or with `:class=NAME` or `:query=NAME`.
        policies: which; left out, every one that applies. Composed ones have their defaults.
        seeds: how many, or which.
        patience_s: a policy that takes longer for one seed is left out.
        options: see `workload`.

    Raises:
        UnknownName: there is no such measure, policy, class or query.
        ConfigRefused: no policy has a value of that measure on this workload.

    >>> found = compare("amos", objective="mean_response", policies=["hr", "rr"], seeds=2,
    ...                 tuples=200)
    >>> found.winner.policy
    'hr'
    """
    aim = objective_of(objective)
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not numbers:
        raise ConfigRefused(path="comparison", key="seeds", value=seeds, expected="1 or more")
    first = _made(of, numbers[0], options)
    _check(aim, first)
    trials = _Trials(aim, [Spelled(name) for name in policies], patience_s, first)
    for position, seed in enumerate(numbers):
        made = first if position == 0 else _made(of, seed, options)
        trials.run(made, _part(progress, position, len(numbers)))
    return Comparison(
        first.name, first.note, str(aim), aim.label, aim.measure.more_is_better, numbers,
        trials.ranked(), tuple(sorted(trials.skipped.items())),
    )  # fmt: skip


class _Trials:
    """The runs of a comparison. Policies that the user has named are never left out in silence."""

    def __init__(
        self, aim: Objective, named: Sequence[Spelled], patience_s: float, first: Workload
    ) -> None:
        self._aim, self._named, self._patience_s = aim, bool(named), patience_s
        self._policies = list(named) or [Spelled(name) for name in known_policies()]
        self._values: dict[str, list[float]] = {each.text: [] for each in self._policies}
        self.skipped: dict[str, str] = {}
        if not named:
            found = {each.text: _why_not(each, first) for each in self._policies}
            self.skipped = {name: why for name, why in found.items() if why}

    def run(self, made: Workload, progress: Progress) -> None:
        """Runs every policy that is left on one workload."""
        left = [each for each in self._policies if each.text not in self.skipped]
        for place, each in enumerate(left):
            tell = partial(_part(progress, place, len(left)), each.text)
            tell(0.0)
            self._run_one(made, each, _patient(made.ends_at_s, self._patience_s, tell))

    def _run_one(self, made: Workload, policy: Spelled, watch: Callable[[float], None]) -> None:
        try:
            value = self._aim.of(made.simulate(policy, progress=watch))
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
        """Orders by mean, then by name; equal means share a rank."""
        values = {name: each for name, each in self._values.items() if name not in self.skipped}
        if not values:
            reasons = "; ".join(sorted(set(self.skipped.values())))
            expected = f"measured on this workload, but every policy {reasons}"
            raise ConfigRefused(
                path="comparison", key=str(self._aim), value=None, expected=expected
            )
        sign = -1 if self._aim.measure.more_is_better else 1
        means = {name: sum(each) / len(each) for name, each in values.items()}
        order = sorted(values, key=lambda name: (sign * means[name], name))
        best = means[order[0]]
        return tuple(
            Standing(
                rank=1 + sum(sign * other < sign * means[name] for other in means.values()),
                policy=name,
                values=tuple(values[name]),
                ratio=means[name] / best if best else nan,
                runs_on_spark="spark" in policy_entry(name.partition("(")[0]).engines,
            )
            for name in order
        )


def _made(of: Any, seed: int, options: Mapping[str, Any]) -> Workload:
    if isinstance(of, Workload):
        return replace(of, options={**of.options, "seed": seed, **options})
    return workload(of, seed=seed, **options)


def _why_not(policy: Spelled, made: Workload) -> str:
    """Says why a policy does not apply to a workload; nothing where it does."""
    entry = policy_entry(policy.text)
    queries = [path.query for path in made.network.paths]
    if made.level not in entry.levels:
        return f"works at {' or '.join(entry.levels)} level only"
    if made.as_on_spark and "spark" not in entry.engines:
        return "foresees single tuples, which only a simulation of single tuples can"
    if NEEDS.get(entry.name) == "QoS graphs" and not any(query.qos for query in queries):
        return "orders by QoS graphs, and no query has one"
    if NEEDS.get(entry.name) == "deadlines" and not any(query.deadline_s for query in queries):
        return "orders by deadlines, and no query has one"
    return ""


def _check(aim: Objective, made: Workload) -> None:
    """Refuses an objective of a class or query that the workload does not have."""
    queries = [path.query.name for path in made.network.paths]
    classes = [each.name for each in made.network.classes]
    known = {"class": classes, "query": queries}.get(aim.scope)
    if known is not None and aim.name not in known:
        raise UnknownName(kind=aim.scope, name=aim.name, known=known, where=f"objective '{aim}'")


def _patient(
    ends_at_s: float, patience_s: float, tell: Callable[[float], None]
) -> Callable[[float], None]:
    """Gives what a run tells its time to; it ends a run that takes too long.

    Patience counts from the first word of the run: compiling is not the policy's fault.
    """
    until_s: list[float] = []

    def watch(now_s: float) -> None:
        share = min(1.0, now_s / ends_at_s) if ends_at_s else 0.0
        until_s.append(time.monotonic() + patience_s)
        if time.monotonic() > until_s[0] and share < 1:
            raise OutOfPatience(f"took more than {patience_s:g} s for {share:.0%} of one run")
        tell(share)

    return watch


def _part(progress: Progress, place: int, of: int) -> Progress:
    """Gives what is told the share of one of several equal parts, and passes on that of all."""
    return lambda what, share: progress(what, (place + share) / of)
