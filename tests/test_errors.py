"""Every error names its subject, what is wrong and how to fix it."""

import pytest

from headgate.errors import (
    CallTimedOut,
    ConfigRefused,
    HeadgateBug,
    HeadgateError,
    LogUnwritable,
    OptionRefused,
    PlanRejected,
    QueryRefused,
    RecordsLost,
    RecoveryRefused,
    RequestRefused,
    ResultsHidden,
    RowFailed,
    SinkBehind,
    SinkUnwritable,
    SparkGone,
    StatisticsMissing,
    StepFailed,
    StreamFailed,
    TrainUnreadable,
    UnknownName,
)

SENTENCES = [
    (
        QueryRefused(
            query="late_parcels",
            line=4,
            clause="ORDER BY",
            reason="cannot run continuously: a stream has no last row",
            fix="drop ORDER BY",
        ),
        "query 'late_parcels', line 4: ORDER BY cannot run continuously: a stream has no last row."
        "\nFix: drop ORDER BY",
    ),
    (
        QueryRefused(query="q", clause="FROM", reason="names 2 streams", fix="read one"),
        "query 'q': FROM names 2 streams.\nFix: read one",
    ),
    (
        QueryRefused(
            query="q", line=2, column=7, clause="the text", reason="is odd", fix="mend it"
        ),
        "query 'q', line 2, column 7: the text is odd.\nFix: mend it",
    ),
    (
        ConfigRefused(path="a.yaml", key="workers", value=0, expected="1 or more"),
        "a.yaml: workers is 0, but must be 1 or more.",
    ),
    (
        ConfigRefused(path="a.yaml", key="", value=None, expected="a mapping of keys"),
        "a.yaml: the file must be a mapping of keys.",
    ),
    (
        OptionRefused(option="rows", value="few", expected="a number of rows; did you mean 'row'?"),
        "options.rows is 'few', but must be a number of rows; did you mean 'row'?",
    ),
    (
        OptionRefused(option="", value=None, expected="fewer than ten"),
        "options must be fewer than ten.",
    ),
    (
        UnknownName(kind="policy", name="hrn", known=["hr", "hnr", "cqc"]),
        "there is no policy 'hrn'. Did you mean 'hr'? Known: cqc, hnr, hr.",
    ),
    (
        UnknownName(kind="stream", name="sensors", known=[], where="query 'fire'"),
        "query 'fire': there is no stream 'sensors'. Known: none yet.",
    ),
    (
        PlanRejected(policy="mine", unit=3, reason="has nothing pending"),
        "policy 'mine' planned unit 3, which has nothing pending.",
    ),
    (
        StepFailed(
            query="fire", stream="sensors", trains=(4, 6), attempts=2, cause="divide by zero"
        ),
        "query 'fire' failed on trains 4..6 of stream 'sensors' after 2 attempts: divide by zero\n"
        "Its input is kept and the other queries keep running. Fix: correct the data, or the"
        " query by `headgate alter`, then run `headgate restart fire`; the query resumes at the"
        " same train.",
    ),
    (
        StreamFailed(stream="sensors", cause="no such directory"),
        "stream 'sensors' stopped: no such directory\n"
        "Tuples that had arrived are processed. Fix: restore the source and start again.",
    ),
    (
        SparkGone(),
        "the JVM of Spark is gone (killed, or out of memory), so the run has ended; what is"
        " committed is kept, and a new start resumes with nothing lost and nothing twice.",
    ),
    (
        RecoveryRefused(subject="stream 's'", expected="a INT", found="a STRING", fix="rename it"),
        "stream 's': expected a INT, found a STRING.\nFix: rename it",
    ),
    (
        RequestRefused(message="query 'b': FROM is odd.", added=["a"]),
        "query 'b': FROM is odd.\nAdded before the error: a.",
    ),
    (
        TrainUnreadable(stream="s", train=7, file="log/s/7.parquet", cause="no magic bytes"),
        "train 7 of stream 's' cannot be read: no magic bytes (log/s/7.parquet). Fix: restore this"
        " file from a copy",
    ),
    (
        SinkUnwritable(folder="results/q", cause="Read-only file system"),
        "its results cannot be written to results/q: Read-only file system",
    ),
    (
        LogUnwritable(stream="parsed", cause="No space left on device"),
        "the log of stream 'parsed' cannot be written: No space left on device",
    ),
    (
        SinkBehind(format="jdbc", waiting_bytes=1_200_000),
        "its jdbc sink accepts nothing, and 1,200,000 bytes wait for it",
    ),
    (
        ResultsHidden(folder="state/results/q"),
        "its last results are committed, but could not be made visible in state/results/q. Fix:"
        " restore the directory, or free space there; Headgate retries, and the query waits until"
        " that succeeds",
    ),
    (
        RowFailed(cause="Division by zero", stream="sensors", number=17, values="heat = 0"),
        "Division by zero, at tuple 17 of stream 'sensors' (heat = 0)",
    ),
    (
        CallTimedOut(limit_s=300),
        "the call took longer than call_timeout_s, 300 s; results that it may still produce are not"
        " committed",
    ),
    (
        StatisticsMissing(queries=["b", "a"], looked_in="state"),
        "cost and selectivity are not known for: a, b (no record of a run in state, no `statistics`"
        " in the file).\nFix: run the pipeline once so that they are measured, or give each query"
        " `statistics: {cost_s: ..., selectivity: ..., overhead_s: ...}`.",
    ),
    (
        HeadgateBug(what="a cursor went backwards", state={"unit": 1}),
        "internal error: a cursor went backwards ({'unit': 1}). Please report this.",
    ),
]


@pytest.mark.parametrize(
    ("error", "sentence"), SENTENCES, ids=[type(error).__name__ for error, _ in SENTENCES]
)
def test_the_sentence_of_an_error(error: HeadgateError, sentence: str) -> None:
    assert isinstance(error, HeadgateError)
    assert str(error) == sentence


def test_every_error_of_the_family_has_its_sentence_here() -> None:
    assert {type(error) for error, _ in SENTENCES} == set(HeadgateError.__subclasses__())


@pytest.mark.parametrize(
    ("first", "end", "cause"),
    [
        (
            25,
            30,
            "15 records of t/0 were deleted before they were read: the next offset to read was 10,"
            " but the first one left is 25",
        ),
        (0, 4, "t/0 ends at offset 4, but the next offset to read was 10"),
        (
            None,
            None,
            "t/0 was deleted, and may have been created again; the next offset to read was 10",
        ),
    ],
)
def test_lost_records_tell_where_and_how_to_go_on(
    first: int | None, end: int | None, cause: str
) -> None:
    lost = RecordsLost(stream="s", place="t/0", expected=10, first=first, end=end)
    assert isinstance(lost, StreamFailed)
    assert str(lost).startswith(f"stream 's' stopped: {cause}.\nTuples that had arrived are")
    assert "failOnDataLoss to false" in str(lost)


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    error = UnknownName(kind="policy", name="zzz", known=["hr", "cqc"])
    assert error.nearest is None
    assert "Did you mean" not in str(error)
