"""The commands that control a run, as a user types them, against one `headgate run`."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.commands import headgate, refused, status_of
from kit.pipelines import ALL, SPARK_NOISE, pipeline_file
from kit.terminal import Terminal
from kit.waiting import until

from headgate.server import Client, Control

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECRETS = {
    "spark.hadoop.fs.s3a.secret.key": "canary-in-config",
    "spark.canary": "canary-2 \\ é=:",
    "spark.driver.extraJavaOptions": "-Da=canary-3 '-Db=canary \"4\"'",
    "spark.driver.defaultJavaOptions": "-Dc=canary-5",
}


@dataclass(frozen=True)
class Run:
    """A `headgate run` under way in a process of its own."""

    process: subprocess.Popen[str]
    folder: Path

    @property
    def state(self) -> str:
        return str(self.folder / "state")

    @property
    def pipeline(self) -> str:
        return str(self.folder / "pipeline.yaml")

    def ended(self, timeout_s: float) -> bool:
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def until(self, holds: Callable[[], Any]) -> Any:
        """Poll `holds` as long as the run lives, and return its first true answer."""
        return until(holds, self.ended)

    def status(self) -> dict[str, Any]:
        return status_of(self.state)


def telling_commands() -> list[str]:
    """Return the command lines of processes that contain a secret, as `ps` shows them."""
    commands = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended
            commands.append(file.read_text(errors="replace"))
    return [command for command in commands if "canary" in command and "pytest" not in command]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("run")
    file = pipeline_file(folder, spark={"master": "local[2]", "config": SECRETS})
    command = [sys.executable, "-m", "headgate.cli", "run", file, "--json", "--record"]
    with (folder / "stdout").open("w") as out, (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(
            command, stdout=out, stderr=errors, text=True, start_new_session=True, umask=0
        )
    run = Run(process, folder)
    try:
        outcome = run.until(lambda: telling_commands() or (folder / "state/control.json").exists())
        assert outcome is True, outcome
        run.until(lambda: "starting" not in Client(Path(run.state)).status())
        yield run
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def contents_of(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the files of a folder with their contents, except those that are gone by then."""
    for file in folder.rglob("*"):
        if file.is_file() and file.name != "pipeline.yaml":
            with suppress(FileNotFoundError):
                yield file, file.read_bytes()


def test_secrets_and_rows_are_for_the_owner_alone(run: Run) -> None:
    run.until(lambda: run.status()["all"]["account"]["delivered"])
    assert telling_commands() == []
    state, client = Path(run.state), Client(Path(run.state))
    answers = [client.status(), client.explanation("hot"), client.drawing(), client.report()]
    assert "canary" not in json.dumps(answers)
    texts = {file: text for folder in (state, run.folder) for file, text in contents_of(folder)}
    assert {"headgate.log", "spark.log", "0000.jsonl", "stderr"} <= {file.name for file in texts}
    assert [file for file, text in texts.items() if b"canary" in text] == []
    modes = {path: mode_of(path) & 0o077 for path in (state, *state.rglob("*"))}
    assert [path for path, mode in modes.items() if mode] == []


def mode_of(path: Path) -> int:
    """Return the permissions of a file; 0 if it is gone by now."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return 0


def test_the_run_says_where_its_page_is_and_the_token_stands_in_no_log(run: Run) -> None:
    control = Control.read(Path(run.state))
    assert control.pid == run.process.pid
    log = run.until(lambda: "page:" in (text := (run.folder / "stderr").read_text()) and text)
    assert f"page: {control.page}, sign in by `headgate open --state {run.state}`" in log
    assert control.token not in log + (Path(run.state) / "headgate.log").read_text()
    done = headgate("open", "--print", "--read-only", "--state", run.state)
    assert done.stdout == f"{control.page}#token={control.read_token}\n"


def test_status_is_a_table_with_a_line_for_each_query(run: Run) -> None:
    run.until(lambda: run.status()["hot"]["lane"])
    done = headgate("status", "--state", run.state)
    assert done.returncode == 0, done.stderr
    assert "policy cqc" in done.stdout
    header, hot_line = (
        next(line for line in done.stdout.splitlines() if word in line) for word in ("query", "hot")
    )
    columns = [cell.strip() for cell in header.strip("┃").split("┃")]
    assert columns == [
        "query", "class", "state", "lane", "waiting", "oldest s", "per s", "mean s", "p95 s",
        "shed", "missed",
    ]  # fmt: skip
    cells = [cell.strip() for cell in hot_line.strip("│").split("│")]
    assert cells[:2] == ["hot", "H"]
    assert cells[2] in ("RUNNING", "WAITING")
    assert cells[-2:] == ["0", "0"]
    listed = json.loads(headgate("status", "--pipeline", run.pipeline, "--json").stdout)
    assert [query["query"] for query in listed["queries"]] == ["hot", "all"]


def test_status_tells_of_the_dead_letters_and_the_trouble_of_a_stream(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "a.json").write_text('{"word": "a"}\nnonsense\nand more\n')
    words = {"format": "json", "schema": "word STRING", "options": {"path": f"{tmp_path}/words"}}
    file = tmp_path / "more.yaml"
    file.write_text(yaml.safe_dump({"streams": {"words": words}}))
    assert "dead letters" not in headgate("status", "--state", run.state).stdout
    assert headgate("add", str(file), "--state", run.state).returncode == 0
    run.until(lambda: Client(Path(run.state)).status()["dead_letters"] == {"words": 2})
    assert "dead letters of words: 2\n" in headgate("status", "--state", run.state).stdout
    (tmp_path / "words").rename(tmp_path / "away")
    run.until(lambda: Client(Path(run.state)).status()["stream_troubles"])
    text = headgate("status", "--state", run.state).stdout
    assert "stream words is FAILING: [Errno 2] No such file or directory" in text
    (tmp_path / "away").rename(tmp_path / "words")
    run.until(lambda: not Client(Path(run.state)).status()["stream_troubles"])
    assert headgate("drop", "words", "--state", run.state).returncode == 0


def test_a_run_that_was_stopped_reads_what_was_appended_and_finds_nothing_late(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "beats").mkdir()
    file, line = tmp_path / "beats/a.json", '{{"ts": "2026-01-01T00:00:0{}Z"}}\n'
    file.write_text(line.format(0))
    options = {"path": f"{tmp_path}/beats"}
    beats = {"format": "json", "schema": "ts TIMESTAMP", "event_time": "ts", "quiet_s": 2}
    sql = "SELECT count(*) AS n FROM beats [RANGE 3 SECONDS]"
    more = {"streams": {"beats": {**beats, "options": options}}}
    more["queries"] = {"counts": {"class": "H", "sql": sql}}
    (tmp_path / "more.yaml").write_text(yaml.safe_dump(more))
    done = headgate("add", str(tmp_path / "more.yaml"), "--state", run.state)
    assert done.returncode == 0, done.stderr

    def account() -> dict[str, int]:
        counts: dict[str, int] = run.status()["counts"]["account"] or {}
        return counts

    run.until(lambda: account().get("arrived") == 1)
    run.process.send_signal(signal.SIGSTOP)  # as on a machine that sleeps
    with file.open("a") as out:
        out.write(line.format(1))
    threading.Event().wait(5.0)
    run.process.send_signal(signal.SIGCONT)
    run.until(lambda: account()["delivered"] == 2)
    assert account()["late"] == 0
    assert headgate("drop", "counts", "--state", run.state).returncode == 0
    assert headgate("drop", "beats", "--state", run.state).returncode == 0


def test_explain_shows_how_a_query_runs(run: Run) -> None:
    done = headgate("explain", "hot", "--state", run.state)
    assert done.returncode == 0, done.stderr
    for text in (
        "hot (class H) over sensors", "select      temperature > 35", "sink        parquet",
        "shares      its code with nobody", "shape       single", "group SQL   SELECT",
        "lane        driver",
        "selectivity", "cost", "overhead", "ideal time", "tuples behind", "policy      cqc",
    ):  # fmt: skip
        assert text in done.stdout
    refused(headgate("explain", "hott", "--state", run.state), "Did you mean 'hot'?")


def test_a_mistyped_query_is_answered_and_nobody_else_stops(run: Run, tmp_path: Path) -> None:
    typo = {"class": "H", "sql": "SELECT location\nFROM sensors\nWHERE temprature > 3"}
    file = tmp_path / "more.yaml"
    file.write_text(yaml.safe_dump({"queries": {"good": ALL, "typo": typo}}))
    done = headgate("add", str(file), "--state", run.state)
    refused(done, "query 'typo', line 3: column `temprature` does not exist in the stream")
    assert "Fix: write `temperature`" in done.stderr
    before = run.status()
    assert set(before) == {"hot", "all"}
    delivered = before["all"]["account"]["delivered"]
    run.until(lambda: run.status()["all"]["account"]["delivered"] > delivered)
    assert {query["state"] for query in run.status().values()} <= {"RUNNING", "WAITING"}


def test_a_query_is_added_and_dropped(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "more.yaml"
    file.write_text(yaml.safe_dump({"queries": {"late": ALL}}))
    done = headgate("add", str(file), "--state", run.state)
    assert (done.returncode, done.stdout) == (0, "added: late\n"), done.stderr
    run.until(lambda: run.status()["late"]["account"]["delivered"])
    done = headgate("drop", "late", "--state", run.state)
    assert (done.returncode, done.stdout) == (0, "dropped: query late\n"), done.stderr
    assert set(run.status()) == {"hot", "all"}
    refused(headgate("drop", "late", "--state", run.state), "no query or stream 'late'")
    done = headgate("drop", "sensors", "--state", run.state)
    refused(done, "stream 'sensors': queries hot, all must be dropped before the stream that")


def test_a_query_is_paused_resumed_restarted_and_altered(run: Run) -> None:
    for words, answer in (
        (["pause", "all"], "paused: query all"),
        (["resume", "all"], "resumed: query all"),
        (["restart", "all"], "restarted: query all"),
        (
            ["alter", "all", "--sql", "SELECT humidity FROM sensors"],
            "altered: query all, version 2",
        ),
    ):
        done = headgate(*words, "--state", run.state)
        assert (done.returncode, done.stdout) == (0, f"{answer}\n"), done.stderr
        state, version = run.status()["all"]["state"], run.status()["all"]["version"]
        assert (state == "PAUSED", version) == (words[0] == "pause", 1 + (words[0] == "alter"))
    run.until(lambda: list(Path(run.state, "results/all.v2").glob("*.parquet")))
    refused(headgate("resume", "all", "--state", run.state), "query 'all' is ")
    wrong = ["alter", "all", "--sql", "SELECT humidty FROM sensors", "--state", run.state]
    refused(headgate(*wrong), "Fix: write `humidity`")
    wrong = ["alter", "hot", "--sql", ALL["sql"], "--from", "noon", "--state", run.state]
    refused(headgate(*wrong), "query 'hot': from is 'noon'")
    refused(headgate("restart", "hott", "--state", run.state), "Did you mean 'hot'?")


def test_the_policy_is_set(run: Run) -> None:
    done = headgate("set", "policy", "cqc(inner=hr)", "--pipeline", run.pipeline)
    assert (done.returncode, done.stdout) == (0, "policy: cqc(inner=hr)\n"), done.stderr
    assert Client(Path(run.state)).status()["policy"] == "cqc(inner=hr)"
    refused(headgate("set", "policy", "cqc(iner=hr)", "--state", run.state), "mean 'inner'?")
    done = headgate("set", "specification", "pending:minimize:1", "--state", run.state)
    refused(done, "must be amos")


def test_sql_reads_the_past_while_the_run_goes_on(run: Run, terminal: Terminal) -> None:
    run.until(lambda: run.status()["all"]["account"]["arrived"] > 200)
    text = "SELECT location, temperature, _arrived_at_s FROM sensors"
    done = terminal.run("sql", text, "--state", run.state, "--limit", "3", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == 3
    assert list(rows[0]) == ["location", "temperature", "_arrived_at_s"]
    assert done.stderr == "cut after 3 rows; --limit N shows more\n"
    text = "SELECT 1 / (humidity - humidity) FROM sensors"
    done = terminal.run("sql", text, "--state", run.state)
    refused(done, "query 'sql': the text failed: Division by zero")


def test_the_stop_is_clean_and_the_run_reports(run: Run, tmp_path: Path) -> None:
    done = headgate("stop", "--state", run.state)
    assert (done.returncode, done.stdout) == (0, f"stopped: {run.state}\n"), done.stderr
    assert run.process.wait(60) == 0
    assert not (run.folder / "state/control.json").exists()
    errors = (run.folder / "stderr").read_text()
    assert "stopped; what is committed is kept, a new start resumes" in errors
    assert not any(noise in errors for noise in SPARK_NOISE)
    (report,) = json.loads((run.folder / "stdout").read_text())
    assert {line["name"] for line in report["queries"]} >= {"hot", "all"}
    assert report["policy"] == "cqc, then cqc(inner=hr)"
    refused(headgate("stop", "--state", run.state), "found no control.json.\nFix: start one")
    assert headgate("health", "--state", run.state).returncode == 3


def test_the_file_of_a_run_that_is_gone_is_recognised(run: Run) -> None:
    Control(1, "token", run.process.pid).write(Path(run.state))
    message = f"the control.json of process {run.process.pid}, which is gone.\nFix: start one"
    refused(headgate("status", "--state", run.state), message)


def test_a_query_is_explained_by_the_file_when_nothing_runs(run: Run) -> None:
    done = headgate("explain", "hot", "--pipeline", run.pipeline)
    assert done.returncode == 0, done.stderr
    assert "explained by" in done.stderr
    for text in ("hot (class H) over sensors", "temperature > 35", "selectivity", "results/hot"):
        assert text in done.stdout
    assert "lane" not in done.stdout
    refused(headgate("explain", "hott", "--pipeline", run.pipeline), "Did you mean 'hot'?")


def test_the_past_can_be_read_after_the_run(run: Run, terminal: Terminal) -> None:
    text = "SELECT count(*) > 200 AS many, 'a[b]' AS x, NULL AS x FROM sensors"
    done = terminal.run("sql", text, "--pipeline", run.pipeline)
    assert done.returncode == 0, done.stderr
    for cell in ("many", "True", "a[b]", "NULL"):
        assert cell in done.stdout
    assert done.stderr == ""


def test_sql_where_nothing_ever_ran_is_a_sentence(tmp_path: Path) -> None:
    refused(headgate("sql", "SELECT 1", "--state", str(tmp_path)), "expected a journal.db")


def test_a_port_where_somebody_else_answers_is_no_run(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        Control(other.server_port, "token", os.getpid()).write(tmp_path)
        refused(headgate("status", "--state", str(tmp_path)), "no answer at http://127.0")
        other.shutdown()
