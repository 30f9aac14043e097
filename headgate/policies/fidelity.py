"""How true a policy is to its paper's rule, for each engine, and why."""

from dataclasses import dataclass
from typing import Literal

from headgate.policies.registry import Engine, PolicyEntry

Word = Literal["exact", "approximate", "same", "not available"]


@dataclass(frozen=True)
class Fidelity:
    """A word and its reason. `same_as` names the policy that makes the same calls."""

    word: Word
    reason: str
    same_as: str = ""

    def __str__(self) -> str:
        return f"same as {self.same_as}" if self.same_as else self.word


BY_RULE = Fidelity("exact", "it decides by the paper's rule, on the figures of every unit")
FORESEES = Fidelity("not available", "it must know what each waiting tuple will cost and put out")
WHOLE_TRAINS = Fidelity(
    "approximate", "a call takes at least one train, which may have more tuples than the rule says"
)
ONE_BOX = "a query is one box on Spark, so there is no order of boxes to choose"
NO_PAPER = Fidelity("approximate", "AMoS names it, but not its formula, which we chose")
SEGMENTS = Fidelity(
    "approximate", "its chart has one piece for each query, or two for a query that is cut"
)

_OTHERS: dict[tuple[str, Engine], Fidelity] = {
    ("path-capacity", "simulation"): NO_PAPER,
    ("threshold", "simulation"): NO_PAPER,
    ("path-capacity", "spark"): Fidelity(
        "same", ONE_BOX + ", and C̄ of one tuple is T, unless the query is cut", "srpt"
    ),
    ("threshold", "spark"): NO_PAPER,
    ("taat", "spark"): WHOLE_TRAINS,
    ("wrr", "spark"): WHOLE_TRAINS,
    ("rr-k", "spark"): WHOLE_TRAINS,
    ("chain", "spark"): SEGMENTS,
    ("oc", "spark"): SEGMENTS,
    ("mr", "spark"): SEGMENTS,
    ("rr-box", "spark"): Fidelity("same", ONE_BOX, "rr"),
    ("baat", "spark"): Fidelity("same", ONE_BOX + ", and calls take whole queues", "rr"),
    ("ml", "spark"): Fidelity("same", ONE_BOX, "rr"),
    ("mm", "spark"): Fidelity("same", ONE_BOX, "rr"),
    ("mc", "spark"): Fidelity("approximate", ONE_BOX + "; queries in turn share calls at any cost"),
    ("aaat", "spark"): Fidelity("same", "its traversal is mc unless another is set", "mc"),
    ("top-k", "spark"): Fidelity(
        "same", ONE_BOX + "; its inner policy ranks the queries, without QoS graphs hr", "qos"
    ),
    ("aaat", "simulation"): Fidelity("same", "its traversal is mc unless another is set", "mc"),
    ("sources-last", "spark"): Fidelity(
        "same", "the driver polls sources, so its inner policy orders the queries", "hr"
    ),
    ("cqc", "spark"): Fidelity(
        "approximate", "a thread polls all sources, outside the turns of the classes that pay"
    ),
    ("edf", "spark"): Fidelity(
        "approximate", "a window by event time is due at its end, as if tuples came at once"
    ),
    ("edf-hr", "spark"): Fidelity(
        "approximate", "a window by event time is due at its end, as if tuples came at once"
    ),
    ("fas", "spark"): Fidelity(
        "approximate", "a call that several queries share takes only what all of them wait for"
    ),
}


def fidelity(entry: PolicyEntry, engine: Engine) -> Fidelity:
    """Return how true a policy is to its rule on an engine."""
    if engine not in entry.engines or (engine == "spark" and "query" not in entry.levels):
        return FORESEES
    return _OTHERS.get((entry.name, engine), BY_RULE)
