"""The papers' testbeds by name, each with its variants and options."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.network.units import Level
from headgate.workloads.testbeds import (
    amos,
    aurora,
    bz,
    cqc,
    sharaf,
    sharaf_aggregates,
    sharaf_drift,
    sharaf_freshness,
)
from headgate.workloads.testbeds.testbed import Testbed

NOT_SET_BY_NAME = ("arrivals", "graphs", "seed", "shared_priority", "name")
"""Parameters that are no options: a trace replaces arrivals, the run sets seed and sharing."""


@dataclass(frozen=True)
class Variant:
    """One testbed: the function that builds it, and the level at which its paper schedules."""

    make: Callable[..., Testbed]
    level: Level = "operator"

    @property
    def options(self) -> dict[str, Any]:
        """The options and their defaults."""
        return {
            name: parameter.default
            for name, parameter in inspect.signature(self.make).parameters.items()
            if name not in NOT_SET_BY_NAME
        }

    @property
    def takes_arrivals(self) -> bool:
        """Whether the caller can pass arrivals, from which the costs are then computed."""
        return "arrivals" in inspect.signature(self.make).parameters


@dataclass(frozen=True)
class Family:
    """The testbeds of a paper. Option `chosen_by` selects one; the first is the default."""

    name: str
    about: str
    chosen_by: str
    variants: Mapping[str, Variant]

    @property
    def usual(self) -> str:
        return next(iter(self.variants))


_FAMILIES = (
    Family(
        "sharaf",
        "hundreds of queries of three operators over one bursty stream (Sharaf §3.7)",
        "variant",
        {
            "single": Variant(sharaf.single_stream, "query"),
            "shared": Variant(sharaf.shared_selects, "query"),
            "joins": Variant(sharaf.joins, "query"),
            "aggregates": Variant(sharaf_aggregates.aggregates, "query"),
            "drift": Variant(sharaf_drift.drift, "query"),
            "freshness": Variant(sharaf_freshness.freshness, "query"),
            "stale": Variant(sharaf_freshness.stale, "query"),
        },
    ),
    Family(
        "aurora",
        "application trees of boxes with QoS graphs (Aurora §5.1, §6.1)",
        "variant",
        {"trees": Variant(aurora.trees), "lines": Variant(aurora.tight_and_loose)},
    ),
    Family(
        "cqc",
        "21 queries of classes H, C and N over 27 sensor streams (CQC §5.1)",
        "workload",
        {name: Variant(partial(cqc.workload, name)) for name in ("A", "B", "C")},
    ),
    Family(
        "amos",
        "query plans under Poisson arrivals whose mean keeps changing (AMoS §4.1)",
        "plan",
        {"1": Variant(amos.plan_1), "2": Variant(amos.plan_2), "line": Variant(amos.line)},
    ),
    Family(
        "bz",
        "all tuples wait at the start, and the cost of each is known (BZ §6)",
        "variant",
        {"latency": Variant(bz.latency, "query"), "memory": Variant(bz.memory)},
    ),
)

TESTBEDS = {family.name: family for family in _FAMILIES}


def named_testbed(
    name: str, options: Mapping[str, Any] | None = None
) -> tuple[Variant, dict[str, Any]]:
    """Return the variant that the options select, and the other options with checked values.

    Raises:
        UnknownName: there is no such testbed, or it has no such option.
        ConfigRefused: an option has an invalid value.

    >>> variant, rest = named_testbed("sharaf", {"variant": "joins", "queries": 10})
    >>> variant.make(**rest).name
    'sharaf joins'
    """
    if name not in TESTBEDS:
        raise UnknownName(kind="testbed", name=name, known=TESTBEDS)
    family, rest = TESTBEDS[name], dict(options or {})
    chosen = str(rest.pop(family.chosen_by, family.usual))
    if chosen not in family.variants:
        expected = "one of " + ", ".join(family.variants)
        raise ConfigRefused(
            path=f"testbed '{name}'", key=family.chosen_by, value=chosen, expected=expected
        )
    variant = family.variants[chosen]
    defaults = variant.options
    for key, value in rest.items():
        if key not in defaults:
            raise UnknownName(
                kind="option",
                name=key,
                known=[*defaults, family.chosen_by],
                where=f"testbed '{name}'",
            )
        rest[key] = _converted(name, key, value, defaults[key])
    return variant, rest


def _converted(testbed: str, key: str, value: Any, default: Any) -> Any:
    """Return the value in the type of its default: a number, a boolean, numbers, or a word."""
    expected = ""
    if isinstance(default, bool):
        expected = "" if isinstance(value, bool) else "true or false"
    elif isinstance(default, tuple):
        parts = value.split("+") if isinstance(value, str) else value
        try:
            return tuple(float(part) for part in parts)
        except (TypeError, ValueError):
            expected = f"{len(default)} numbers, as in {'+'.join(map(str, default))}"
    elif isinstance(default, int | float):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        expected = "" if number else "a number"
    if expected:
        raise ConfigRefused(path=f"testbed '{testbed}'", key=key, value=value, expected=expected)
    return value
