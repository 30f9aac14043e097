"""Outer joins of several streams, over windows or with bounded times, answer as Spark in batch."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from independent import committed_rows
from join_streams import STREAMS, Batch, consume_closed, gate_of_three, rows_on_edges
from kit.gates import stop_without_errors
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KINDS = ("LEFT", "RIGHT", "FULL", "LEFT", "RIGHT", "FULL", "INNER", "LEFT SEMI", "LEFT ANTI")
SEED = 13
"""With this seed, seven queries of either kind are enough to have joins of all kinds."""


@dataclass(frozen=True)
class Joined:
    """A join for Headgate, the same join for Spark in batch, and the aliases one can select from.

    A semi join and an anti join hide the aliases of their right side.
    """

    text: str
    oracle: str
    names: tuple[str, ...]


class Drawn:
    """A source of random joins of three or four streams, with brackets in any order."""

    def __init__(self, seed: int, *, windows: bool) -> None:
        self._random = np.random.default_rng(seed)
        self._windows = windows
        self._sizes_s: dict[str, float] = {}

    def query(self) -> tuple[str, str]:
        """Return a query for Headgate and the same query for Spark in batch."""
        count = int(self._random.integers(3, 5))
        joined = self._joined("abcd"[:count])
        columns = ", ".join(f"{name}.v AS {name}v, {name}.k AS {name}k" for name in joined.names)
        texts = [f"SELECT {columns} FROM {text}" for text in (joined.text, joined.oracle)]
        if self._random.random() < 0.3:
            name = str(self._random.choice(joined.names))
            texts = [f"{text} WHERE {name}.k IS NULL OR {name}.v % 3 > 0" for text in texts]
        return texts[0], texts[1]

    def _joined(self, names: str) -> Joined:
        if len(names) == 1:
            stream = STREAMS["abcd".index(names) % 3]
            size_s = self._sizes_s[names] = float(self._random.choice([0.5, 1, 1.5]))
            window = f" [RANGE {int(size_s * 1000)} MILLISECONDS]" if self._windows else ""
            return Joined(f"{stream}{window} {names}", f"{stream} {names}", (names,))
        place = int(self._random.integers(1, len(names)))
        left, right = self._joined(names[:place]), self._joined(names[place:])
        kind = str(self._random.choice(KINDS))
        one, other = (str(self._random.choice(side.names)) for side in (left, right))
        condition = f"{one}.k = {other}.k AND ({one}.v + {other}.v) % 3 <> 1"
        if len(left.names) > 1 and self._random.random() < 0.4:
            both = f"coalesce({left.names[1]}.k, {left.names[0]}.k)"
            condition = f"{both} = {other}.k"
        if self._windows:
            near = " AND ".join(self._near(a, b) for a in left.names for b in right.names)
        else:
            near = self._bound(one, other)
        brackets = "({})" if " JOIN " in right.text else "{}"
        text = f"{left.text} {kind} JOIN {brackets.format(right.text)} ON {condition}"
        oracle = f"{left.oracle} {kind} JOIN {brackets.format(right.oracle)} ON {condition}"
        visible = left.names if kind.startswith("LEFT ") else (*left.names, *right.names)
        text = text if self._windows else f"{text} AND {near}"
        return Joined(text, f"{oracle} AND {near}", visible)

    def _near(self, one: str, other: str) -> str:
        """Return the condition that two tuples are in each other's windows, unless one is NULL."""
        lies = [
            f"{a}.ts >= {b}.ts - INTERVAL '{self._sizes_s[a]}' SECOND"
            for a, b in ((one, other), (other, one))
        ]
        return f"({one}.ts IS NULL OR {other}.ts IS NULL OR ({' AND '.join(lies)}))"

    def _bound(self, one: str, other: str) -> str:
        low, high = sorted(self._random.choice(range(-3, 4), 2, replace=False) / 2)
        at_least, at_most = str(self._random.choice([">=", ">"])), self._random.choice(["<=", "<"])
        return (
            f"{other}.ts {at_least} {one}.ts + INTERVAL '{low}' SECOND"
            f" AND {other}.ts {at_most} {one}.ts + INTERVAL '{high}' SECOND"
        )


@pytest.mark.parametrize(
    ("count", "lane"),
    [
        (7, "driver"),
        pytest.param(20, "driver", marks=pytest.mark.long),
        pytest.param(20, "job", marks=pytest.mark.long),
    ],
)
def test_an_outer_join_of_several_streams_is_spark_s(
    spark: SparkSession, tmp_path: Path, count: int, lane: str
) -> None:
    print("seed", SEED)
    rows = {name: rows_on_edges(SEED + n, 60 - 8 * n) for n, name in enumerate(STREAMS)}
    queries = {
        f"{kind}{number}": drawn.query()
        for kind, drawn in (("w", Drawn(SEED, windows=True)), ("b", Drawn(SEED, windows=False)))
        for number in range(count)
    }
    for prefix in "wb":
        texts_of_kind = " ".join(text for name, (text, _) in queries.items() if name[0] == prefix)
        assert all(f" {kind} JOIN " in texts_of_kind for kind in KINDS)
    texts = {name: text for name, (text, _) in queries.items()}
    gate = gate_of_three(spark, tmp_path, rows, texts, 4, train_tuples=15, lane=lane)
    gate.start()
    consume_closed(gate, texts, rows)
    stop_without_errors(gate)
    batch = Batch(spark, rows)
    with_rows = 0
    for name, (text, oracle) in queries.items():
        answer = committed_rows(tmp_path / "state" / "results" / name)
        assert answer == batch(oracle), text
        with_rows += bool(answer)
    assert with_rows > count
