"""Golden pairs: a text and, under the line `-- expect`, what becomes of it without Spark.

`-- predicate: P`, `-- output: O` (one for each output), `-- whole`: the path that `path_of`
returns. `-- refused: START` and `-- fix: START`: the message of the refusal and its fix begin with
START. A line break inside a part is written \\n. Adding a case needs no Python.
"""

from pathlib import Path

import pytest

from headgate.errors import HeadgateError
from headgate.language.parse import path_of
from headgate.model.query import Query

STREAMS = {"sensors": ["location", "temperature", "humidity", "ts"], "parcels": ["location"]}
PAIRS = sorted((Path(__file__).parent / "pairs").glob("*.sql"))


def read(pair: Path) -> tuple[str, dict[str, list[str]]]:
    text, _, comments = pair.read_text().partition("\n-- expect\n")
    expected: dict[str, list[str]] = {}
    for line in comments.splitlines():
        key, _, value = line.removeprefix("-- ").partition(": ")
        expected.setdefault(key, []).append(value.replace("\\n", "\n"))
    return text, expected


def outcome(text: str) -> dict[str, list[str]]:
    path = path_of(Query(name="q", sql=text, query_class="H"), STREAMS)
    if path.runs_whole:
        assert [operator.expressions for operator in path.operators] == [(text,)]
        return {"whole": [""]}
    predicate = {} if path.predicate is None else {"predicate": [path.predicate]}
    return {**predicate, "output": list(path.outputs)}


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.stem for pair in PAIRS])
def test_a_text_becomes_what_stands_under_it(pair: Path) -> None:
    text, expected = read(pair)
    if "refused" not in expected:
        assert outcome(text) == expected
        return
    with pytest.raises(HeadgateError) as refused:
        outcome(text)
    sentence, _, fix = str(refused.value).partition("\nFix: ")
    assert sentence.startswith(expected["refused"][0])
    assert fix.startswith(expected.get("fix", [""])[0])


def test_there_are_pairs_and_each_expects_something() -> None:
    assert len(PAIRS) > 40
    assert [pair.stem for pair in PAIRS if not read(pair)[1]] == []
