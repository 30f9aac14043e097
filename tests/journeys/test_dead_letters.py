"""Each unreadable record becomes exactly one dead letter, and accounts add up, crash or not."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from crash import CrashAt
from independent import committed_rows
from kit.gates import balanced, consume, new_gate, until
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream
from headgate.model.stream import Ingest
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.log.dead_letters import letter_counts

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES, LINES = 10, 8
POINTS = ["letters written", "train named", "letters journalled", "train journalled"]
QUERIES = {
    "even": "SELECT i FROM s WHERE i % 2 = 0",
    "tens": "SELECT count(*) AS n, max(i) AS top FROM s [ROWS 10]",
}


def is_bad(number: int) -> bool:
    """Return True for every fifth record, and for all records of one file."""
    return number % 5 == 3 or number // LINES == 4


BAD = [number for number in range(FILES * LINES) if is_bad(number)]
GOOD = [number for number in range(FILES * LINES) if not is_bad(number)]


def write(folder: Path, kind: str) -> None:
    folder.mkdir()
    for file in range(FILES):
        numbers = range(file * LINES, (file + 1) * LINES)
        good = '{{"i": {}}}\n' if kind == "json" else "{}\n"
        lines = [f"bad {number}\n" if is_bad(number) else good.format(number) for number in numbers]
        (folder / f"{file:03d}").write_text("".join(lines))


def rows(first: int) -> Iterator[dict[str, Any]]:
    for number in range(first, FILES * LINES):
        yield {"i": f"bad {number}" if is_bad(number) else number}


def gate_of(
    spark: SparkSession, folder: Path, kinds: Sequence[str], ingest: Ingest, **more: Any
) -> Headgate:
    """Return a Headgate over a stream of each kind, named like its kind, with two queries each."""
    gate = new_gate(spark, folder, [], classes={"H": 1}, **more)
    for kind in kinds:
        options = {"rowsPerPoll": str(LINES)}
        if kind != "python":
            options = {"path": str(folder / f"files-{kind}"), "maxFilesPerTrigger": "1"}
        stream = Stream(
            name=f"of_{kind}", format=kind, options=options, schema="i INT", trigger_s=0.01,
            ingest=ingest,
        )  # fmt: skip
        gate.add_stream(stream, rows=rows if kind == "python" else None)
        for name, sql in QUERIES.items():
            text = sql.replace("FROM s", f"FROM of_{kind}")
            gate.add_query(Query(name=f"{name}_{kind}", sql=text, query_class="H"))
    return gate


def each_once(state: Path, stream: str) -> None:
    """Check that there is one dead letter for each bad record."""
    lines = (state / "dead-letters" / f"{stream}.jsonl").read_text().splitlines()
    letters = [json.loads(line) for line in lines]
    numbers = [int(letter["record"].split("bad ")[1].rstrip("'}")) for letter in letters]
    assert sorted(numbers) == BAD
    assert all(letter["place"] and letter["reason"] for letter in letters)


@pytest.mark.parametrize(
    ("kinds", "ingest"), [(("json", "python"), "driver"), (("json", "csv"), "spark")]
)
def test_a_bad_record_is_a_letter_once_however_often_the_run_dies(
    spark: SparkSession, tmp_path: Path, kinds: Sequence[str], ingest: Ingest
) -> None:
    for kind in kinds:
        if kind != "python":
            write(tmp_path / f"files-{kind}", kind)
    for number, point in enumerate(POINTS):
        crash = CrashAt(point, 1 + number % 2)  # so that it is not always the same stream's
        gate = gate_of(spark, tmp_path, kinds, ingest, reached=crash)
        gate.start()
        until(crash.dead.is_set, gate)
        gate.stop()
        balanced(gate)
    gate = gate_of(spark, tmp_path, kinds, ingest)
    gate.start()
    consume(gate, len(GOOD))
    until(lambda: all(one.dead_lettered >= len(BAD) for one in gate.accounts().values()), gate)
    gate.stop()
    balanced(gate)
    for name, account in gate.accounts().items():
        assert account.dead_lettered == len(BAD), name
        assert account.arrived == len(GOOD) + len(BAD), name
    even = Counter((number,) for number in GOOD if number % 2 == 0)
    for kind in kinds:
        each_once(tmp_path / "state", f"of_{kind}")
        assert committed_rows(tmp_path / "state" / "results" / f"even_{kind}") == even, kind


@pytest.mark.long
@pytest.mark.parametrize("ingest", ["driver", "spark"])
def test_kill_between_letters_and_journal_leaves_no_letter_twice(
    tmp_path: Path, ingest: str
) -> None:
    write(tmp_path / "source", "json")
    options = {"path": str(tmp_path / "source"), "maxFilesPerTrigger": 1}
    stream = {
        "format": "json", "schema": "i INT", "options": options, "trigger_s": 0.01,
        "ingest": ingest,
    }  # fmt: skip
    pipeline = {
        "state": str(tmp_path / "state"), "rehearsal_s": 0, "spark": {"master": "local[2]"},
        "classes": {"H": 1}, "streams": {"s": stream},
        "queries": {name: {"class": "H", "sql": sql} for name, sql in QUERIES.items()},
    }  # fmt: skip
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(pipeline))
    script = str(Path(__file__).with_name("consumer.py"))
    command = [sys.executable, script, str(tmp_path / "pipeline.yaml"), str(len(GOOD))]
    for more, code in ((["letters written", "3"], -signal.SIGKILL), ([], 0)):
        done = subprocess.run(
            [*command, *more], capture_output=True, text=True, check=False, timeout=300,
            start_new_session=True,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        journal = Journal(tmp_path / "state")
        for name, account in Cursors(journal).accounts().items():
            fields = vars(account)
            parts = ("delivered", "filtered", "queued", "shed", "missed", "late", "dead_lettered")
            assert fields["arrived"] == sum(fields[part] for part in parts), (name, fields)
        assert letter_counts(journal)["s"] == fields["dead_lettered"]
        journal.close()
    assert fields["dead_lettered"] == len(BAD)
    each_once(tmp_path / "state", "s")
