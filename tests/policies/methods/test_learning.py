"""Learning strategies: probabilities, memory, and finding the best arm."""

from collections import Counter
from math import log, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import UnknownName
from headgate.policies.methods.learning import (
    EpsilonGreedy,
    Exp3,
    Learning,
    Roulette,
    SeededRandom,
    Thompson,
    Ucb,
)
from headgate.policies.methods.strategies import LEARNING, learning_named

BY_REWARD = sorted(set(LEARNING) - {"relative", "look-ahead"})
"""The strategies that know nothing but the reward of each turn."""
BANDITS = sorted(set(BY_REWARD) - {"roulette"})
WORTH = (0.25, 0.8, 0.4)


def prepared(learning: Learning, arms: int = 3, seed: int = 1) -> Learning:
    learning.prepare(arms, SeededRandom(seed))
    return learning


def played(
    learning: Learning,
    worth: tuple[float, ...],
    rounds: int,
    random: SeededRandom,
    deviation: float = 0.1,
) -> list[int]:
    """Return what a strategy chooses among arms whose rewards have these means, with noise."""
    chosen = []
    for _ in range(rounds):
        chosen.append(learning.choose([2 * mean for mean in worth]))
        reward = random.normal(worth[chosen[-1]], deviation)
        learning.hear(chosen[-1], min(1.0, max(0.0, reward)))
    return chosen


def test_the_roulette_chooses_in_proportion_to_scores() -> None:
    scores, spins = (1.4, 1.0, 0.6), 20_000
    wheel = prepared(Roulette())
    counts = Counter(wheel.choose(scores) for _ in range(spins))
    for arm, score in enumerate(scores):
        chance = score / sum(scores)
        assert abs(counts[arm] - spins * chance) < 4 * sqrt(spins * chance * (1 - chance))


def test_scores_near_1_make_the_roulette_a_lottery() -> None:
    wheel = prepared(Roulette(), arms=4)
    counts = Counter(wheel.choose((1.05, 1.0, 1.0, 0.95)) for _ in range(20_000))
    assert max(counts.values()) < 1.2 * min(counts.values())


def test_a_wheel_without_any_slice_chooses_anybody() -> None:
    wheel = prepared(Roulette())
    assert {wheel.choose((0.0, 0.0, 0.0)) for _ in range(100)} == {0, 1, 2}


@pytest.mark.parametrize("name", BANDITS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_best_of_three_arms_is_chosen_in_most_of_500_rounds(name: str, seed: int) -> None:
    chosen = played(prepared(learning_named(name), seed=seed), WORTH, 500, SeededRandom(100 + seed))
    assert chosen.count(1) > 250
    assert chosen[250:].count(1) > chosen[:250].count(1) - 25


@pytest.mark.parametrize("name", ["epsilon-greedy", "ucb", "thompson"])
def test_when_another_arm_becomes_the_best_the_old_favourite_is_left(name: str) -> None:
    learning, random = prepared(learning_named(name)), SeededRandom(5)
    played(learning, WORTH, 500, random)
    assert played(learning, (0.8, 0.25, 0.4), 500, random).count(0) > 250


@pytest.mark.parametrize("name", BY_REWARD)
def test_two_of_the_same_seed_choose_the_same(name: str) -> None:
    one, other = (
        played(prepared(learning_named(name), seed=7), WORTH, 200, SeededRandom(3))
        for _ in range(2)
    )
    assert one == other
    assert one != played(
        prepared(learning_named(name), seed=8), WORTH, 200, SeededRandom(3)
    ) or name == (
        "ucb"  # which draws no random numbers
    )


@pytest.mark.parametrize("name", sorted(LEARNING))
@given(data=st.data(), arms=st.integers(1, 5))
def test_an_arm_that_exists_is_chosen_whatever_was_heard(name: str, data: Any, arms: int) -> None:
    learning = prepared(learning_named(name), arms)
    for arm, reward in data.draw(
        st.lists(st.tuples(st.integers(0, arms - 1), st.floats(0.0, 1.0)), max_size=20)
    ):
        learning.hear(arm, reward)
        assert 0 <= learning.choose([1.0] * arms) < arms


def test_preparing_forgets() -> None:
    learning = prepared(Ucb())
    played(learning, WORTH, 50, SeededRandom(1))
    learning.prepare(3, SeededRandom(1))
    assert played(learning, WORTH, 3, SeededRandom(1)) == [0, 1, 2]


def test_ucb_without_discount_and_with_half_an_exploration_is_ucb1() -> None:
    learning = prepared(Ucb(exploration=0.5, discount=1.0), arms=2)
    for arm, reward in [(0, 0.2), (1, 0.6), (0, 0.4)]:
        learning.hear(arm, reward)
    assert isinstance(learning, Ucb)
    assert learning.values() == pytest.approx(
        [0.3 + sqrt(2 * log(3) / 2), 0.6 + sqrt(2 * log(3) / 1)]
    )


def test_exp3_gives_chances_by_weights_and_leaves_some_for_everybody() -> None:
    learning = Exp3(exploration=0.3)
    prepared(learning)
    assert learning.chances() == pytest.approx([1 / 3] * 3)
    learning.hear(1, 1.0)  # exp(0.3 · (1 / (1/3)) / 3) = exp(0.3) = 1.349859
    weight = 1.3498588075760032
    assert learning.chances() == pytest.approx(
        [0.7 * arm_weight / (2 + weight) + 0.1 for arm_weight in (1, weight, 1)]
    )


def test_exp3_overflows_nothing_in_a_long_run() -> None:
    learning = Exp3()
    prepared(learning)
    for _ in range(200_000):
        learning.hear(0, 1.0)
    assert sum(learning.chances()) == pytest.approx(1.0)


def test_a_greedy_strategy_explores_in_a_part_epsilon_of_the_rounds() -> None:
    learning = prepared(EpsilonGreedy(epsilon=0.3), seed=4)
    for arm, reward in enumerate((0.1, 0.9, 0.2)):
        learning.hear(arm, reward)
    others = sum(learning.choose([1.0] * 3) != 1 for _ in range(5000))
    assert abs(others - 5000 * 0.2) < 4 * sqrt(5000 * 0.2 * 0.8)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: EpsilonGreedy(epsilon=1.5), "epsilon between 0 and 1"),
        (lambda: Ucb(discount=0.0), "discount above 0"),
        (lambda: Ucb(exploration=-1.0), "exploration of 0 or more"),
        (lambda: Thompson(deviation=0.0), "deviation above 0"),
        (lambda: Exp3(exploration=0.0), "exploration above 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused(make: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        make()


def test_an_unknown_strategy_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"no learning strategy 'roulete'. Did you mean 'roule"):
        learning_named("roulete")


def test_luck_is_even() -> None:
    random = SeededRandom(0)
    drawn = [random.uniform() for _ in range(50_000)]
    assert min(drawn) > 0
    assert max(drawn) < 1
    assert sum(drawn) / 50_000 == pytest.approx(0.5, abs=4 / sqrt(12 * 50_000))
    tenths = Counter(int(10 * number) for number in drawn)
    assert all(abs(tenths[tenth] - 5000) < 5 * sqrt(4500) for tenth in range(10))


def test_luck_is_splitmix64() -> None:
    """The first words from seed 0, as its authors' program prints them."""
    random = SeededRandom(0)
    words = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)
    assert [random.uniform() for _ in words] == [((word >> 12) + 0.5) / 2**52 for word in words]
