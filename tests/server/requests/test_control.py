"""The control API over real HTTP: who is answered, and what can be read."""

import json
import os
import subprocess
import threading
import time
from contextlib import ExitStack
from math import inf
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from kit.commands import headgate
from kit.control import answer, row
from kit.waiting import until
from pyspark.sql import SparkSession

from headgate import Headgate, Query
from headgate.errors import QueryRefused, RequestRefused, UnknownName
from headgate.model.events import Event, StepFinished, StepStarted
from headgate.server import Address, Client, Control
from headgate.server.service import served
from headgate.server.updates import WATCHERS

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("token", [None, "", "wrong", "ü"])
@pytest.mark.parametrize("path", ["/queries", "/stop", "/nowhere", "/docs"])
def test_nobody_is_answered_without_the_token(gate: Headgate, path: str, token: str | None) -> None:
    header_text = None if token is None else token.encode().decode("latin-1")
    code, body = answer(Control.read(gate.state), path, header_text)
    assert code == 401
    assert "control.json" in body["error"]


def test_supervisors_ask_for_the_health_without_a_token(gate: Headgate, client: Client) -> None:
    healthy = {"healthy": True, "ready": True, "failed_queries": 0, "stopped_streams": 0}
    for path in ("/health", "/ready"):
        assert answer(Control.read(gate.state), path, None) == (200, healthy)
    assert answer(Control.read(gate.state), "/health", None, method="POST")[0] == 401
    assert client.health() == healthy


def test_a_failed_query_makes_a_run_unhealthy_until_it_is_dropped(gate: Headgate) -> None:
    healthy = "healthy, ready: 0 queries have failed, 0 streams have stopped\n"
    state = str(gate.state)
    done = headgate("health", "--state", state)
    assert (done.returncode, done.stdout) == (0, healthy)
    text = "SELECT CAST(location AS INT) AS n FROM sensors"
    gate.add_query(Query(name="bad", sql=text, query_class="N"))
    until(lambda: gate.query("bad").state == "FAILED")
    done = headgate("status", "--state", state)
    assert done.returncode == 3
    assert "query 'bad' failed on trains" in done.stdout
    assert headgate("status", "--state", state, "--json").returncode == 3
    done = headgate("health", "--state", state)
    assert (done.returncode, done.stdout) == (3, f"un{healthy.replace('0 queries', '1 queries')}")
    assert answer(Control.read(gate.state), "/health", None)[0] == 503
    assert answer(Control.read(gate.state), "/ready", None)[0] == 200
    gate.drop_query("bad")
    assert headgate("health", "--state", state).returncode == 0


def test_the_token_is_for_the_user_alone_and_the_port_for_this_machine(gate: Headgate) -> None:
    file = gate.state / "control.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["pid"] == os.getpid()
    assert Control.read(gate.state).address.startswith("http://127.0.0.1:")


def test_the_read_only_token_reads_and_changes_nothing(gate: Headgate) -> None:
    control = Control.read(gate.state)
    assert answer(control, "/queries", control.read_token)[0] == 200
    code, body = answer(control, "/policy", control.read_token, method="PUT", data=b"{}")
    assert (code, "allows no change" in body["error"]) == (403, True)


def test_a_request_that_names_another_host_is_refused(gate: Headgate) -> None:
    control = Control.read(gate.state)
    request = Request(f"{control.address}/health", headers={"Host": "evil.example"})
    with pytest.raises(HTTPError) as refused:
        urlopen(request)
    with refused.value as error:
        assert error.code == 403
        assert "not a name of this run" in json.load(error)["error"]


def test_metrics_without_a_token_are_a_setting(
    gate: Headgate, spark: SparkSession, tmp_path: Path
) -> None:
    assert answer(Control.read(gate.state), "/metrics", None)[0] == 401
    other = Headgate(spark, state=tmp_path / "state", open_metrics=True)
    other.state.mkdir(exist_ok=True)
    with served(other, lambda: None) as control, urlopen(f"{control.address}/metrics") as response:
        assert b"headgate_ready 0.0" in response.read()
    other.stop()


def test_tls_files_make_the_commands_trust_this_certificate_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=gate",
         "-keyout", key, "-out", certificate], check=True, capture_output=True,
    )  # fmt: skip
    gate = Headgate(spark, state=tmp_path / "state")
    gate.state.mkdir(exist_ok=True)
    address = Address("0.0.0.0", certificate=certificate, key=key)
    with served(gate, lambda: None, address) as control:
        assert control.page.startswith("https://127.0.0.1:")
        assert Client(gate.state).health()["ready"] is False
        with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urlopen(f"{control.address}/health")
    gate.stop()


def test_events_are_the_whole_state_and_then_changes(gate: Headgate) -> None:
    control = Control.read(gate.state)
    header = {"Authorization": f"Bearer {control.read_token}"}
    with urlopen(Request(f"{control.address}/events", headers=header)) as stream:
        began_s = time.monotonic()
        first, *patches = [json.loads(stream.readline()) for _ in range(4)]
        assert time.monotonic() - began_s > 1.0  # at most two updates a second
    assert first["queries"]["hot"]["class"] == "H"
    assert first["classes"]["H"]["queries"] == 2
    assert first["streams"] == ["sensors"]
    for patch in patches:
        assert "class" not in patch.get("queries", {}).get("hot", {})
        assert len(json.dumps(patch)) < len(json.dumps(first))


def test_few_pages_watch_at_a_time_and_one_that_leaves_makes_room(
    gate: Headgate, client: Client
) -> None:
    control = Control.read(gate.state)
    header = {"Authorization": f"Bearer {control.token}"}

    def watched() -> bytes:
        try:
            with urlopen(Request(f"{control.address}/events", headers=header)) as stream:
                line: bytes = stream.readline()
                return line
        except HTTPError as error:
            with error:
                return b"" if error.code == 503 else error.read()

    with ExitStack() as stack:
        for _ in range(WATCHERS):
            stream = urlopen(Request(f"{control.address}/events", headers=header))
            stack.enter_context(stream).readline()
        assert watched() == b""
        with pytest.raises(RequestRefused, match=f"{WATCHERS} pages watch this run already"):
            next(client.overviews())
    for _ in range(WATCHERS + 1):
        until(watched, timeout_s=20.0)


def test_top_shows_classes_and_queries(gate: Headgate) -> None:
    done = headgate("top", "--state", str(gate.state))
    assert "policy cqc, " in done.stdout
    for word in ("results/s", "slowest queries", "hot", "all"):
        assert word in done.stdout


def test_queries_are_listed_with_state_account_and_statistics(client: Client) -> None:
    hot = until(lambda: (entry := row(client, "hot"))["account"]["delivered"] and entry)
    assert hot["class"] == "H"
    assert hot["state"] in ("RUNNING", "WAITING")
    account = hot["account"]
    parts = ("delivered", "filtered", "queued", "shed", "missed", "late", "dead_lettered")
    assert account["arrived"] == sum(account[part] for part in parts)
    assert set(hot["statistics"]) == {"selectivity", "tuple_cost_s", "overhead_s", "ideal_s"}
    hot = until(lambda: (entry := row(client, "hot"))["mean_response_s"] and entry)
    for figures in (hot["last_minute"], hot["since_start"]):
        assert 0 < figures["results_per_s"] < figures["tuples_per_s"] < 1000
        assert 0 < figures["mean_response_s"] < 60
        assert 0 < figures["p95_response_s"] < 60
    assert hot["since_start"]["mean_response_s"] == hot["mean_response_s"]
    assert until(lambda: row(client, "hot")["oldest_waiting_s"]) < 60
    assert row(client, "hot")["lane"] in ("driver", "job")


def test_a_query_is_explained_as_its_handle_does(
    gate: Headgate, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    explanation = until(lambda: (reply := client.explanation("hot"))["next_train"] and reply)
    assert explanation["operators"][0] == {"kind": "select", "expressions": ["temperature > 35"]}
    assert "all" in explanation["shares_code_with"]
    assert "temperature > 35" in explanation["group_sql"]
    assert "{" not in explanation["group_sql"]
    assert explanation["lane"].startswith(("driver", "job"))
    assert explanation["behind"] >= 0
    gate.query("hot").explain()
    printed = capsys.readouterr().out
    for text in ("hot (class H) over sensors", "temperature > 35", "its code with all", "cursor"):
        assert text in printed


def test_why_is_asked_by_command_handle_and_request(
    gate: Headgate, client: Client, events: list[Event]
) -> None:
    until(lambda: row(client, "hot")["since_start"]["results"])
    reply = client.why("hot")
    parts = reply["parts"]
    assert sum(part["to"] - part["from"] for part in parts) == pytest.approx(reply["response_s"])
    assert [part["kind"] for part in parts[-2:]] == ["running", "committing"]
    assert {part["segment"] for part in parts} == {"hot"}
    turns = [(part["from"], part["to"]) for part in parts if part["kind"] == "turn"]
    heard = tuple(events)
    ends_s = {event.call.number: event.at_s for event in heard if isinstance(event, StepFinished)}
    assert {call["call"] for call in reply["instead"]} == {
        event.call.number
        for event in heard
        if isinstance(event, StepStarted) and event.call.number != reply["call"]
        for begin_s, end_s in turns
        if event.at_s < end_s and ends_s.get(event.call.number, inf) > begin_s
    }
    again = gate.query("hot").why(reply["commit"])
    assert (again["call"], again["parts"]) == (reply["call"], parts)
    state = str(gate.state)
    done = headgate("why", "hot", "--at", repr(reply["commit"]), "--json", "--state", state)
    assert json.loads(done.stdout)["call"] == reply["call"]
    done = headgate("why", "hot", "--state", state)
    assert "running" in done.stdout
    assert "in a call" in done.stdout
    done = headgate("why", "hot", "--at", "soon", "--state", state)
    assert (done.returncode, "but must be a time" in done.stderr) == (2, True)
    with pytest.raises(RequestRefused, match="there is no query 'none'"):
        client.why("none")


def test_the_report_is_that_of_the_run(client: Client) -> None:
    report = until(lambda: (reply := client.report())["total"]["tuples_in"] and reply)
    assert {"hot", "all"} <= {line["name"] for line in report["queries"]}


def test_the_past_is_a_table_while_the_run_goes_on(gate: Headgate, client: Client) -> None:
    until(lambda: row(client, "all")["account"]["arrived"])
    (totals,) = gate.sql("SELECT count(*) AS n, max(_arrived_at_s) AS last FROM sensors").collect()
    assert 0 < totals["n"] <= row(client, "all")["account"]["arrived"]
    assert abs(totals["last"] - time.time()) < 60
    with pytest.raises(UnknownName, match=r"no table or stream 'sensor'\. Did you mean 'sensors'"):
        gate.sql("SELECT * FROM sensor")
    with pytest.raises(QueryRefused, match="query 'sql', line 1: column `temprature`"):
        gate.sql("SELECT temprature FROM sensors")
    with pytest.raises(QueryRefused, match="DropTable is not a SELECT"):
        gate.sql("DROP TABLE sensors")


def test_a_stop_is_passed_on(client: Client, stop_requested: threading.Event) -> None:
    assert client.ask("POST", "/stop") == {"stopping": True}
    assert stop_requested.is_set()
