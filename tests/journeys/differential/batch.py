"""A batch: about a hundred queries of one seed, checked on several ways through Headgate."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from differential.cases import Case
from differential.comparison import Answer, difference, of_folder, of_frame
from differential.examples import SPARK_ERRORS
from differential.oracle import Oracle
from differential.trial import Outcome, Question, Way, answers
from differential.world import World

FAILING = 0.05
"""The largest share of a batch that may be texts on which Spark in batch fails, too."""

_INTERNAL = re.compile(
    r"INTERNAL_ERROR|\w+(?<!Parse)(?<!PatternSyntax)Exception|AssertionError|Py4J|Error: "
)
"""Signs of a bug of the engine in an error message, which a query's own error does not have."""


@dataclass(frozen=True)
class AnsweredQuestion:
    """A query with the expected answer, or with the error that Spark in batch raises instead.

    Args:
        is_planned: whether Spark in batch reads rows at all. It does not if it cannot compute a
            constant of the text, which it then reports even if no row needs the constant.
    """

    name: str
    case: Case
    schema: StructType
    answer: Answer | None
    error: str = ""
    is_planned: bool = True


@dataclass(frozen=True)
class Finding:
    """A query that Headgate answers differently from Spark in batch, on one way."""

    case: Case
    way: Way
    zone: str
    what: str
    detail: str
    minimal: str = ""

    def line(self) -> dict[str, object]:
        """Return the finding as plain data."""
        return {
            "what": self.what, "kind": self.case.kind, "lane": self.way[0], "share": self.way[1],
            "zone": self.zone, "sql": self.case.sql, "minimal": self.minimal,
            "detail": self.detail, "case": self.case.data(),
        }  # fmt: skip


@dataclass
class Tally:
    """Counts of the outcomes of some batches; refusals are counted by reason."""

    texts: int = 0
    compared: int = 0
    agreed: int = 0
    failed_alike: int = 0
    refused: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    not_accepted: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.texts + other.texts, self.compared + other.compared, self.agreed + other.agreed,
            self.failed_alike + other.failed_alike, self.refused + other.refused,
            self.refusals + other.refusals, self.kinds + other.kinds,
            self.not_accepted + other.not_accepted, self.seconds + other.seconds,
        )  # fmt: skip


def draw_questions(
    world: World, families: Iterator[list[Case]], count: int
) -> tuple[list[AnsweredQuestion], Counter[str]]:
    """Return `count` queries that Spark accepts, with their answers in batch.

    Return also how many texts of each kind Spark did not accept.
    """
    others: Counter[str] = Counter()
    oracle = Oracle(world)
    chosen: list[AnsweredQuestion] = []
    texts: set[str] = set()
    failing = 0
    while len(chosen) < count:
        for case in next(families):
            if case.sql in texts:
                continue
            texts.add(case.sql)
            question = answered(oracle, f"q{len(chosen)}", case)
            if question is None:
                others[case.label] += 1
                continue
            if question.answer is None:
                if failing >= FAILING * count:
                    continue
                failing += 1
            chosen.append(question)
    return chosen[:count], others


def answered(oracle: Oracle, name: str, case: Case) -> AnsweredQuestion | None:
    """Return a query with its answer in batch; None if Spark does not accept it."""
    try:
        frame = oracle.frame(case)
        schema = frame.schema
    except SPARK_ERRORS:
        return None
    try:
        return AnsweredQuestion(name, case, schema, of_frame(frame))
    except SPARK_ERRORS as error:
        text = f"{type(error).__name__}: {error}"
        return AnsweredQuestion(name, case, schema, None, text, is_planned=_is_planned(frame))


def _is_planned(frame: DataFrame) -> bool:
    """Return True if Spark can optimize the plan of a frame."""
    try:
        frame._jdf.queryExecution().optimizedPlan()
    except SPARK_ERRORS:
        return False
    return True


def check(
    world: World, questions: Sequence[AnsweredQuestion], ways: Iterable[Way], folder: Path
) -> tuple[list[Finding], Tally]:
    """Return the differences between Headgate's answers, on some ways, and the expected ones."""
    findings: list[Finding] = []
    tally = Tally(texts=len(questions))
    tally.kinds.update(question.case.label for question in questions)
    by_name = [
        Question(question.name, question.case.sql, question.case.streams, question.case.sink)
        for question in questions
    ]
    for number, way in enumerate(ways):
        began_s = time.monotonic()
        outcomes = answers(world, by_name, way, folder / f"{number}-{'-'.join(way)}")
        tally.seconds[" ".join(way)] += int(time.monotonic() - began_s)
        for question in questions:
            outcome = outcomes[question.name]
            what, detail = _verdict(world, question, outcome)
            if what in ("differs", "fails", "fails otherwise", "answers where batch fails"):
                with world.generating_code():
                    again = answered(Oracle(world), question.name, question.case)
                    assert again is not None
                what, detail = _verdict(world, again, outcome)
            tally.compared += 1
            if what in ("agrees", "fails alike", "refused"):
                tally.agreed += what == "agrees"
                tally.failed_alike += what == "fails alike"
                tally.refused += what == "refused"
                if what == "refused":
                    tally.refusals[_reason(outcome.reason)] += 1
            else:
                findings.append(Finding(question.case, way, world.zone, what, detail))
    return findings, tally


def _verdict(world: World, question: AnsweredQuestion, outcome: Outcome) -> tuple[str, str]:
    """Return how an outcome compares with the expected answer, and the details of a difference."""
    if outcome.state == "refused":
        return "refused", outcome.reason
    if outcome.state in ("hung", "broken"):
        return outcome.state, outcome.reason
    if question.answer is None:
        if outcome.state == "failed":
            mistake = _INTERNAL.search(outcome.reason)
            if mistake is not None and mistake.group() not in question.error:
                return "fails otherwise", f"{outcome.reason}; in batch: {question.error[:400]}"
            return "fails alike", ""
        if question.is_planned:
            return "answers where batch fails", _first_line(question.error)
    if outcome.state == "failed":
        return "fails", outcome.reason
    assert outcome.folder is not None
    try:
        answer = of_folder(world.session, outcome.folder, question.schema)
    except Exception as error:
        return "unreadable", f"{type(error).__name__}: {_first_line(error)}"
    if question.answer is None:  # a constant that Spark cannot compute, and no row needs
        rows = sum(answer.rows.values())
        return ("fails alike", "") if not rows else ("answers where batch fails", f"{rows} rows")
    detail = difference(question.answer, answer, question.case.floats)
    return ("differs", detail) if detail else ("agrees", "")


def _first_line(error: BaseException | str) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "")[:400]


def _reason(text: str) -> str:
    """Return the text of a refusal without names, so that similar refusals are counted together."""
    first = re.sub(r"^query '\w+'(, line \d+)?(, column \d+)?: ", "", text.splitlines()[0])
    return re.sub(r"'[^']*'|`[^`]*`|\d+", "_", first)[:140]
