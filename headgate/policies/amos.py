"""AMoS: a choice among policies by how well each has served a specification (AMoS §3)."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.outlook import Outlook
from headgate.model.performance import PerformanceSpecification, Rows, specification_of
from headgate.model.plan import Step
from headgate.policies.interface import Policy, State
from headgate.policies.methods.learning import Learning, SeededRandom
from headgate.policies.methods.strategies import learning_named
from headgate.policies.methods.turns import Choice, TurnMeasures
from headgate.policies.registry import policy_named, register

LIBRARY = ("rr-box", "fcfs", "mtiq", "chain", "hr", "hnr", "bsd")
"""The paper's round robin is a ring of operators (AMoS §2.1), so it is `rr-box` and not `rr`."""

TABLE_3 = "pending:minimize:0.75,mean_response_s:minimize:0.25"
"""The paper's example of a specification: total queue size 75 %, result latency 25 %."""

CHOICES = 10_000
"""How many of the latest choices are kept for export."""

FIRST_DWELL = 1 / 64
SHORTEST_DWELL = 1 / 8
LONGEST_DWELL = 2.0
"""The dwells of a strategy that looks ahead, in `dwell_s`. The first one is short: until then the
first policy of the library is in charge, whatever it is."""

FADE = 1.25
"""How much longer a dwell becomes each time that the same policy stays in charge."""


@dataclass(slots=True)
class Synopsis:
    """Mean, minimum and maximum of a statistic. A value has the weight of the seconds it covers."""

    seconds: float = 0.0
    mean: float = 0.0
    smallest: float = inf
    largest: float = -inf

    def add(self, value: float, seconds: float) -> None:
        self.seconds += seconds
        self.smallest, self.largest = min(self.smallest, value), max(self.largest, value)
        mean = self.mean + (value - self.mean) * seconds / self.seconds
        # Rounding may move a mean past its extremes, and then a score out of (0, 2).
        self.mean = min(max(mean, self.smallest), self.largest)


@dataclass(slots=True)
class Candidate:
    """A policy of the library: its number of turns, z by metric, and synopses of its last turn."""

    policy: Policy
    turns: int = 0
    z: dict[str, float] = field(default_factory=dict)
    turn: dict[str, Synopsis] = field(default_factory=dict)
    with_waiting: dict[str, Synopsis] = field(default_factory=dict)
    arrived: float = 0.0
    seconds: float = 0.0


@register(
    "amos",
    objective="any weighted set of metrics",
    paper="AMoS §3",
    use="Several metrics matter, or what matters changes during the run.",
    avoid="One metric matters and its policy is known: turns of other policies are then wasted.",
)
class Amos(Policy):
    """Policies in turn, chosen by how each has scored on the metrics measured during its turns.

    At first each policy has one turn, in the order of `policies`, unless the strategy looks ahead.
    Then the learning strategy chooses (AMoS §3.5). A turn lasts until the first `Measured` at or
    after `wake_at_s`. Nothing needs to be known about a policy in advance. What was learned stays
    when queries come or go.

    Args:
        policies: what to choose among, by name or as objects; a text may separate names by commas.
        specification: rows of metric, quantifier and weight; it may be replaced during the run.
        decay: weight of a policy's earlier z, above 0 and below 0.5. The paper gives the range and
            no value.
        dwell_s: the shortest turn of a policy, long enough that its own effect outweighs what the
            policy before it has left behind. The paper sets it by trial and gives no value.
        learning: `roulette` as in the paper, another strategy by name, or a strategy object.
            `look-ahead` runs every policy ahead from the present state, in a simulation;
            `relative` compares turns with what the load would have given. Their dwells adapt.
        seed: the seed of the strategy's random choices.
        horizon_s: how far `look-ahead` looks.

    Only the policy in charge hears of new steps, and each policy hears of the end of the steps that
    it began. So the turn of a round robin, for example, continues where it stopped.
    """

    def __init__(
        self,
        policies: str | Sequence[str | Policy] = LIBRARY,
        specification: Rows = TABLE_3,
        decay: float = 0.25,
        dwell_s: float = 1.0,
        learning: str | Learning = "roulette",
        seed: int = 0,
        horizon_s: float = 5.0,
    ) -> None:
        if not 0 < decay < 0.5:
            raise ValueError("decay above 0 and below 0.5")
        if not 0 < dwell_s < inf:
            raise ValueError("dwell_s above 0 seconds")
        self.decay, self.dwell_s, self.wake_at_s = decay, dwell_s, dwell_s
        self.candidates: list[Candidate] = []
        self.choices: deque[Choice] = deque(maxlen=CHOICES)
        self.history: dict[str, Synopsis] = {}
        self._specification = specification_of(specification)
        self._learning = learning_named(learning) if isinstance(learning, str) else learning
        if not isinstance(self._learning, Learning):
            raise ValueError("learning: the name of a learning strategy, or a strategy")
        if not 0 < horizon_s < inf:
            raise ValueError("horizon_s above 0 seconds")
        self.horizon_s, self.looks_ahead = horizon_s, self._learning.looks_ahead
        self._usual_dwell_s, self._waiting = dwell_s, 0.0
        if self.looks_ahead:
            self.dwell_s = self.wake_at_s = dwell_s * FIRST_DWELL
        self._random = SeededRandom(seed)
        self._units: Units | None = None
        self._begun_at_s: float | None = None
        self._began_call: dict[int, Policy] = {}
        for policy in policies.split(",") if isinstance(policies, str) else policies:
            self.add(policy.strip() if isinstance(policy, str) else policy)
        if not self.candidates:
            raise ValueError("policies: at least one")
        self._hand_over(0)

    @property
    def specification(self) -> PerformanceSpecification:
        """What matters. A new one takes effect with the next choice, and uses all measurements."""
        return self._specification

    @specification.setter
    def specification(self, rows: Rows) -> None:
        self._specification = specification_of(rows)
        self._restart_learning()

    @property
    def scores(self) -> tuple[float, ...]:
        """The score of each policy; 1 before its first score.

        It is in (0, 2) as in the paper. Of a strategy that looks ahead, it is the least cost over
        the cost of the policy; of `relative`, what the load alone would cost over its cost.
        """
        scores = self._learning.own_scores()
        if len(scores) == len(self.candidates):
            return tuple(scores)
        return tuple(self._score(candidate.z) for candidate in self.candidates)

    @property
    def turns(self) -> tuple[int, ...]:
        """How often each policy was put in charge."""
        return tuple(candidate.turns for candidate in self.candidates)

    def add(self, policy: str | Policy) -> None:
        """Add a policy to the library; during a run it has the next turn (AMoS §3.1)."""
        newcomer = policy_named(policy) if isinstance(policy, str) else policy
        self.refuse(newcomer)
        if self._units is not None:
            newcomer.prepare(self._units)
        self.candidates.append(Candidate(newcomer))
        self.foresees = self.foresees or newcomer.foresees
        self._restart_learning()

    def refuse(self, newcomer: Policy) -> None:
        """Raise a ValueError if a policy cannot come into the library."""
        if not isinstance(newcomer, Policy):
            raise ValueError("policies: names of policies, or policies")
        names = [candidate.policy.name for candidate in self.candidates]
        if newcomer.name and newcomer.name in names:
            raise ValueError(f"policies: each once, not '{newcomer.name}' twice")
        if newcomer.wake_at_s < inf:
            raise ValueError(f"policies that set no wake-up time, not '{newcomer.name}'")

    def inside(self) -> Sequence[Policy]:
        return [candidate.policy for candidate in self.candidates]

    def prepare(self, units: Units) -> None:
        self._units = units
        for candidate in self.candidates:
            candidate.policy.prepare(units)

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        return self.in_charge(now_s).plan(state, now_s)

    def in_charge(self, now_s: float) -> Policy:
        """Return the policy whose turn it is. The first call begins the first turn."""
        if self._begun_at_s is None or now_s < self._begun_at_s:
            self._begin(now_s)
        return self._current.policy

    def may_fuse(self, table: UnitTable, unit: int, other: int) -> bool:
        return self._current.policy.may_fuse(table, unit, other)

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        match event:
            case StepStarted():
                self._began_call[event.call.number] = self._current.policy
                self._current.policy.hear(event)
            case StepFinished():
                self._began_call.pop(event.call.number, self._current.policy).hear(event)
            case Measured():
                self._hear_measured(event)

    def _hear_measured(self, event: Measured) -> None:
        self._current.policy.hear(event)
        if self._begun_at_s is None:
            self._begin(event.at_s - event.seconds)
        if event.seconds > 0:
            self._record(event.values, event.seconds)
            for metric, value in (event.with_waiting or event.values).items():
                if isfinite(value):
                    turn = self._current.with_waiting.setdefault(metric, Synopsis())
                    turn.add(value, event.seconds)
            self._current.arrived += event.arrived
            self._current.seconds += event.seconds
        if event.at_s < self.wake_at_s:
            return
        if self.looks_ahead and self.look_ahead is not None:
            # The first dwell was shorter than all others, and maybe shorter than the answer takes.
            self.dwell_s = max(self.dwell_s, SHORTEST_DWELL * self._usual_dwell_s)
            self._begin(event.at_s)
            self.look_ahead(self.inside(), self.horizon_s)
            return
        before, place = self._current, self._next_place(event)
        self._adapt_dwell(place)
        self._hand_over(place)
        names = [candidate.policy.name for candidate in self.candidates]
        scores = dict(zip(names, self.scores, strict=True))
        chosen = self._current.policy.name
        why = "its first turn" if self._current.turns == 1 else "chosen by what was measured"
        self.choices.append(Choice(event.at_s, before.policy.name, chosen, scores, why))
        self._begin(event.at_s)

    def _next_place(self, event: Measured) -> int:
        """End the turn, and return the place of the policy whose turn is next."""
        current, learning = self._current, self._learning
        values = {metric: synopsis.mean for metric, synopsis in current.with_waiting.items()}
        reward = self._close_turn()
        per_s = current.arrived / current.seconds if current.seconds else 0.0
        turn = TurnMeasures(values, per_s, self._waiting, event.waiting, reward)
        learning.end_turn(self._place, turn, self._specification)
        self._waiting = event.waiting
        newcomers = [place for place, other in enumerate(self.candidates) if not other.turns]
        return newcomers[0] if newcomers else learning.choose(self.scores)

    def hear_outlook(self, outlook: Outlook, now_s: float) -> None:
        if len(outlook.values) != len(self.candidates):
            return  # the library has grown since the request
        place, why = self._learning.judge(outlook, self._specification, self._place)
        names = [candidate.policy.name for candidate in self.candidates]
        scores = dict(zip(names, self.scores, strict=True))
        self.choices.append(Choice(now_s, names[self._place], names[place], scores, why))
        self._adapt_dwell(place)
        if place != self._place:
            self._hand_over(place)
            self._begin(now_s)

    def _adapt_dwell(self, place: int) -> None:
        """Halve the dwell when another policy takes over, and lengthen it while one stays.

        Only for the strategies that are not the paper's: there the dwell is fixed.
        """
        if not (self.looks_ahead or self._learning.measures_load):
            return
        dwell_s = self.dwell_s * (FADE if place == self._place else 0.5)
        shortest = SHORTEST_DWELL if self.looks_ahead else 1.0
        longest = LONGEST_DWELL if self.looks_ahead else 2 * LONGEST_DWELL
        self.dwell_s = min(
            max(dwell_s, shortest * self._usual_dwell_s), longest * self._usual_dwell_s
        )

    def _record(self, values: Mapping[str, float], seconds: float) -> None:
        """Add measured values to the history of all policies and to the current turn.

        A metric without a value, such as the response time of no outputs, is left out.
        """
        for metric, value in values.items():
            if isfinite(value):
                self.history.setdefault(metric, Synopsis()).add(value, seconds)
                self._current.turn.setdefault(metric, Synopsis()).add(value, seconds)

    def _close_turn(self) -> float:
        """Update z of the policy in charge (AMoS eq 1) and return the reward of this turn.

        The reward is the score without earlier z, over 2: the strategies do their own averaging.
        Every measured metric gets a z, so that a new specification can use it.
        """
        fresh = dict(self._current.z)
        for metric, turn in self._current.turn.items():
            fresh[metric] = _deviation(turn, self.history[metric])
            first = metric not in self._current.z
            decay, z_old = (0.0, 0.0) if first else (self.decay, self._current.z[metric])
            self._current.z[metric] = fresh[metric] * (1 - decay) + z_old * decay
        return self._score(fresh) / 2

    def _score(self, z: Mapping[str, float]) -> float:
        """Return Σ q z w + 1 (AMoS eq 2); a metric that was never measured counts 0."""
        rows = self._specification.requirements
        return sum(row.sign * z.get(row.metric, 0.0) * row.weight for row in rows) + 1

    def _hand_over(self, place: int) -> None:
        self._place, self._current = place, self.candidates[place]
        self._current.turns += 1
        self._current.turn, self._current.with_waiting = {}, {}
        self._current.arrived = self._current.seconds = 0.0
        self.tuples_a_step = self._current.policy.tuples_a_step

    def _begin(self, now_s: float) -> None:
        self._begun_at_s, self.wake_at_s = now_s, now_s + self.dwell_s

    def _restart_learning(self) -> None:
        """Restart the strategy from the current scores: its past rewards meant something else."""
        if self._learning.keeps_all and self._learning.arms == len(self.candidates):
            return  # only the specification is new
        if self.looks_ahead and self._begun_at_s is not None:
            self.dwell_s = self._usual_dwell_s * SHORTEST_DWELL
            self.wake_at_s = min(self.wake_at_s, self._begun_at_s + self.dwell_s)
        self._learning.prepare(len(self.candidates), self._random)
        for place, candidate in enumerate(self.candidates):
            if candidate.z and not self._learning.keeps_all:
                self._learning.hear(place, self._score(candidate.z) / 2)


def _deviation(turn: Synopsis, history: Synopsis) -> float:
    """Return (μ_C − μ_H) / (max_H − min_H), in (−1, 1); 0 while all values are the same."""
    spread = history.largest - history.smallest
    return (turn.mean - history.mean) / spread if spread > 0 else 0.0
