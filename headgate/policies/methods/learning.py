"""Learning strategies: which policy to try next, given the rewards of earlier tries (AMoS §3.5).

AMoS spins a roulette wheel and asks for other strategies to be pluggable. The others here are the
usual answers to the multi-armed bandit; the arms are policies, and a reward is in [0, 1].
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import NormalDist

from headgate.model.outlook import Outlook
from headgate.model.performance import PerformanceSpecification
from headgate.policies.methods.turns import TurnMeasures

WORD = 2**64 - 1


class SeededRandom:
    """Random numbers that depend only on a seed: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""

    def __init__(self, seed: int) -> None:
        self._state = seed & WORD

    def uniform(self) -> float:
        """Return a random number in (0, 1)."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & WORD
        word = self._state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
        return (((word ^ (word >> 31)) >> 12) + 0.5) / 2**52

    def below(self, count: int) -> int:
        return int(self.uniform() * count)

    def normal(self, mean: float, deviation: float) -> float:
        return mean + deviation * NormalDist().inv_cdf(self.uniform())

    def weighted(self, weights: Sequence[float]) -> int:
        """Return a random index in proportion to its weight; any index if no weight is above 0."""
        total = sum(weights)
        if not total > 0:
            return self.below(len(weights))
        mark = self.uniform() * total
        for place, weight in enumerate(weights):
            mark -= weight
            if mark < 0:
                return place
        return max(range(len(weights)), key=lambda place: weights[place])


class Learning(ABC):
    """A strategy that chooses an arm and then hears its reward. Ties go to the smaller arm."""

    arms: int = 0
    random: SeededRandom

    looks_ahead = False
    """True for a strategy that needs an outlook of every policy, and no turn of each at first."""

    keeps_all = False
    """True for a strategy whose knowledge stays valid when the specification changes."""

    measures_load = False
    """True for a strategy that compares what was measured with what the load would have given."""

    def prepare(self, arms: int, random: SeededRandom) -> None:
        """Forget everything, and start with this number of arms."""
        self.arms, self.random = arms, random

    @abstractmethod
    def choose(self, scores: Sequence[float]) -> int:
        """Return the next arm; `scores` are the current scores of AMoS, in (0, 2), one per arm."""

    def hear(self, arm: int, reward: float) -> None:  # noqa: B027  # the roulette looks at scores
        """Take note of the reward of an arm, in [0, 1]; above a half is better than usual."""

    def end_turn(
        self, arm: int, turn: TurnMeasures, specification: PerformanceSpecification
    ) -> None:
        """Take note of a turn that has just ended. Only its reward counts, unless overridden."""
        self.hear(arm, turn.reward)

    def judge(
        self, outlook: Outlook, specification: PerformanceSpecification, current: int
    ) -> tuple[int, str]:
        """Return the best arm of an outlook, and why. Only a strategy that looks ahead is asked."""
        raise NotImplementedError

    def own_scores(self) -> Sequence[float]:
        """Return a score for each arm in place of AMoS's; empty if the strategy has none."""
        return ()


class Roulette(Learning):
    """A slice of the wheel in proportion to the score (AMoS §3.5; fitness proportion selection).

    Scores are mostly near 1, so that with the paper's scores this is almost a uniform lottery.
    """

    def choose(self, scores: Sequence[float]) -> int:
        return self.random.weighted(scores)


class _Discounted(Learning):
    """A strategy by each arm's mean reward, where a reward counts γ^n after n later rewards."""

    def __init__(self, discount: float) -> None:
        if not 0 < discount <= 1:
            raise ValueError("discount above 0 and up to 1")
        self.discount = discount

    def prepare(self, arms: int, random: SeededRandom) -> None:
        super().prepare(arms, random)
        self.counts, self.sums = [0.0] * arms, [0.0] * arms

    def hear(self, arm: int, reward: float) -> None:
        self.counts = [count * self.discount for count in self.counts]
        self.sums = [total * self.discount for total in self.sums]
        self.counts[arm] += 1.0
        self.sums[arm] += reward

    def choose(self, scores: Sequence[float]) -> int:
        if 0.0 in self.counts:
            return self.counts.index(0.0)
        return _best(self.values())

    def values(self) -> list[float]:
        """Return the value of each arm, from its mean reward and how certain that is."""
        return [total / count for total, count in zip(self.sums, self.counts, strict=True)]


class EpsilonGreedy(_Discounted):
    """The arm of the best mean, but a random arm in a share ε of rounds (Sutton and Barto §2.2)."""

    def __init__(self, epsilon: float = 0.1, discount: float = 0.98) -> None:
        super().__init__(discount)
        if not 0 <= epsilon <= 1:
            raise ValueError("epsilon between 0 and 1")
        self.epsilon = epsilon

    def choose(self, scores: Sequence[float]) -> int:
        if self.random.uniform() < self.epsilon:
            return self.random.below(self.arms)
        return super().choose(scores)


class Ucb(_Discounted):
    """The arm of the best upper confidence bound, mean + 2 √(ξ ln n / N), old rewards discounted.

    Garivier and Moulines, ALT 2011 (D-UCB); with γ = 1 and ξ = 1/2 it is UCB1 of Auer,
    Cesa-Bianchi and Fischer, 2002. Departs from both in its ξ: AMoS's rewards are close to a half,
    and bounds wide enough for all of [0, 1] would keep exploring forever.
    """

    def __init__(self, exploration: float = 0.05, discount: float = 0.98) -> None:
        super().__init__(discount)
        if not exploration >= 0:
            raise ValueError("exploration of 0 or more")
        self.exploration = exploration

    def values(self) -> list[float]:
        rounds = max(1.0, sum(self.counts))
        widths = [2 * sqrt(self.exploration * log(rounds) / count) for count in self.counts]
        return [mean + width for mean, width in zip(super().values(), widths, strict=True)]


class Thompson(_Discounted):
    """The arm whose mean, drawn from N(mean, σ² / (N + 1)), is the largest.

    Agrawal and Goyal, AISTATS 2013 (Gaussian priors), old rewards discounted. Departs from it in σ,
    which is 1 there, for the reason given at `Ucb`.
    """

    def __init__(self, deviation: float = 0.25, discount: float = 0.98) -> None:
        super().__init__(discount)
        if not deviation > 0:
            raise ValueError("deviation above 0")
        self.deviation = deviation

    def values(self) -> list[float]:
        deviations = [self.deviation / sqrt(count + 1) for count in self.counts]
        return [
            self.random.normal(mean, deviation)
            for mean, deviation in zip(super().values(), deviations, strict=True)
        ]


class Exp3(Learning):
    """Weights that grow as exp(γ r / (p K)), and a random arm in a share γ of the rounds.

    Auer, Cesa-Bianchi, Freund and Schapire, SIAM J. Comput. 2002. It assumes nothing about how
    rewards arise. Weights are kept as logarithms, so that a long run does not overflow.
    """

    def __init__(self, exploration: float = 0.1) -> None:
        if not 0 < exploration <= 1:
            raise ValueError("exploration above 0 and up to 1")
        self.exploration = exploration

    def prepare(self, arms: int, random: SeededRandom) -> None:
        super().prepare(arms, random)
        self.logs = [0.0] * arms

    def chances(self) -> list[float]:
        """Return the probability of each arm: (1 − γ) w / Σw + γ / K."""
        largest = max(self.logs)
        weights = [exp(logarithm - largest) for logarithm in self.logs]
        total, gamma = sum(weights), self.exploration
        return [(1 - gamma) * weight / total + gamma / self.arms for weight in weights]

    def choose(self, scores: Sequence[float]) -> int:
        return self.random.weighted(self.chances())

    def hear(self, arm: int, reward: float) -> None:
        self.logs[arm] += self.exploration * reward / (self.chances()[arm] * self.arms)


def _best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda place: values[place])
