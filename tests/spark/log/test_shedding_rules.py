"""Rules of shedding in the journal: in force from a train on, whatever crashes and is forgotten."""

from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.drop import Drop, ValueGraph
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewTrain, Train
from headgate.spark.log.shedding_rules import QueryDrops, Rule, SheddingRules, pieces_of


def rule(train: int, fraction: float, value: ValueGraph | None = None) -> Rule:
    return Rule(train, Drop(fraction, value=value, threshold=0.25 if value else 0.0), "overload", 1)


def add_trains(journal: Journal, first: int, end: int) -> None:
    trains = [Train(number, 10, 1, 0.0, 0.0) for number in range(first, end)]
    journal.add_trains([NewTrain("s", train, train.number) for train in trains])


def test_another_run_finds_the_same_rules(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    rules = SheddingRules(journal)
    graph = ValueGraph("heat", ((0.0, 0.0), (1.0, 1.0)))
    assert rules.add("q", "s", rule(3, 0.5))
    assert rules.add("q", "s", rule(5, 0.2, graph))
    assert not rules.add("q", "s", rule(6, 0.2, graph)), "it changes nothing"
    journal.close()
    again = SheddingRules(Journal(tmp_path))
    assert again.of("q", "s") == rules.of("q", "s") == (rule(3, 0.5), rule(5, 0.2, graph))
    assert again.of("q", "other") == ()


def test_a_query_that_never_dropped_anything_has_no_rule(tmp_path: Path) -> None:
    rules = SheddingRules(Journal(tmp_path))
    assert not rules.add("q", "s", rule(3, 0.0))
    assert rules.last("q", "s") is None


def test_rules_are_forgotten_with_their_trains(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    rules = SheddingRules(journal)
    add_trains(journal, 0, 10)
    for train, fraction in ((1, 0.1), (3, 0.3), (6, 0.6)):
        rules.add("q", "s", rule(train, fraction))
    journal.drop_trains("s", 5)
    rules.add("q", "s", rule(8, 0.8))
    assert [old.train for old in rules.of("q", "s")] == [3, 6, 8], "train 5 still needs that of 3"
    journal.close()
    assert SheddingRules(Journal(tmp_path)).of("q", "s") == rules.of("q", "s")


def test_rules_are_forgotten_with_their_query(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    rules = SheddingRules(journal)
    Cursors(journal).remember("q", "SELECT 1", "s")
    for name in ("q", "q__first", "other"):
        rules.add(name, "s", rule(3, 0.5))
    rules.forget("q")
    for reader in (rules, SheddingRules(journal)):
        assert [bool(reader.of(name, "s")) for name in ("q", "q__first", "other")] == [0, 0, 1]


@pytest.fixture(scope="module")
def journal_rules(tmp_path_factory: pytest.TempPathFactory) -> SheddingRules:
    return SheddingRules(Journal(tmp_path_factory.mktemp("rules")))


NUMBERS = count()


@given(
    rules=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from([0.0, 0.3, 1.0])), min_size=1, max_size=6
    ),
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=12),
    first=st.integers(0, 6),
)
def test_a_call_sees_the_rule_of_each_of_its_trains(
    journal_rules: SheddingRules, rules: list[tuple[int, float]], counts: list[int], first: int
) -> None:
    query, train = f"q{next(NUMBERS)}", 0
    for step, fraction in rules:
        train += step
        journal_rules.add(query, "s", rule(train, fraction))
    end, drops = first + len(counts), QueryDrops(journal_rules, query, "s")
    expected = [drops.of(number) for number, n in enumerate(counts, first) for _ in range(n)]
    seen: list[Drop | None] = [None] * sum(counts)
    for begin, until, drop in pieces_of(
        journal_rules.segments(query, "s", first, end), first, counts
    ):
        seen[begin:until] = [drop] * (until - begin)
    assert seen == expected
