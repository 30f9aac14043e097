"""The control API over real HTTP, against one Headgate that runs."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from math import inf
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from kit.commands import headgate
from kit.waiting import until
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream
from headgate.errors import QueryRefused, RequestRefused, UnknownName
from headgate.metrics.histogram import BOUNDS_S
from headgate.model.events import Event, StepFinished, StepStarted
from headgate.server import Address, Client, Control, limits
from headgate.server import control as control_file
from headgate.server.prometheus import RunCollector, exposition
from headgate.server.service import served
from headgate.server.updates import WATCHERS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOT = "SELECT location, ts FROM sensors WHERE temperature > 35"
ALL = "SELECT temperature FROM sensors"
STOP_REQUESTED = threading.Event()
EVENTS: list[Event] = []


@pytest.fixture(scope="module")
def gate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headgate]:
    state = tmp_path_factory.mktemp("control") / "state"
    gate = Headgate(spark, state=state, classes={"H": 6, "N": 1}, rehearsal_s=0)
    options = {"rate_per_s": "200"}
    gate.add_stream(Stream(name="sensors", format="headgate", options=options, arrival_time="ts"))
    gate.add_query(Query(name="hot", sql=HOT, query_class="H"))
    gate.add_query(Query(name="all", sql=ALL, query_class="H"))
    gate.start(listeners=[EVENTS.append])
    try:
        with served(gate, STOP_REQUESTED.set):
            yield gate
    finally:
        gate.stop()
        control_file.remove(state)
    assert not (state / control_file.FILE).exists()


@pytest.fixture
def client(gate: Headgate) -> Client:
    return Client(gate.state)


def row(client: Client, query: str) -> dict[str, Any]:
    return next(entry for entry in client.status()["queries"] if entry["query"] == query)


def answer(control: Control, path: str, token: str | None, **more: Any) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"}
    headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urlopen(Request(control.address + path, headers=headers, **more)) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def query_of(name: str = "q", sql: str = f'"{ALL}"', weight: str = "1", sink: str = "{}") -> bytes:
    """Return the body of a request that adds a query, from texts in JSON."""
    query = f'{{"class": "H", "sql": {sql}, "weight": {weight}, "sink": {sink}}}'
    return f'{{"queries": {{"{name}": {query}}}}}'.encode()


def sink_to(path: str) -> str:
    return f'{{"path": "{path}"}}'


def deep_specification() -> bytes:
    return b'{"specification": [{"metric": ' + b"[" * 900 + b"]" * 900 + b"}]}"


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


def scraped(gate: Headgate) -> dict[tuple[str, str], float]:
    """Return the values at /metrics by name and labels, as Prometheus's own parser reads them."""
    control = Control.read(gate.state)
    header = {"Authorization": f"Bearer {control.read_token}"}
    with urlopen(Request(f"{control.address}/metrics", headers=header)) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        text = response.read().decode()
    values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            bound = [sample.labels.pop("le")] if "le" in sample.labels else []
            values[sample.name, ",".join([*sample.labels.values(), *bound])] = sample.value
    return values


def test_prometheus_reads_the_figures_of_queries_classes_and_the_run(
    gate: Headgate, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: row(client, "hot")["since_start"]["results"])
    before, values, after = client.report(), scraped(gate), client.report()

    def lies_between(value: float, lines: str, name: str, figure: str) -> bool:
        ends = [
            next(line for line in report[lines] if line["name"] == name)["response_s"][figure]
            for report in (before, after)
        ]
        return bool(ends[0] <= value <= ends[1])

    for prefix, lines, name, labels in (
        ("query", "queries", "hot", "H,hot"), ("class", "classes", "H", "H"),
    ):  # fmt: skip
        series = f"headgate_{prefix}_response_seconds"
        assert lies_between(values[f"{series}_count", labels], lines, name, "count")
        assert lies_between(
            values[f"headgate_{prefix}_results_total", labels], lines, name, "count"
        )
        buckets = [
            value for key, value in values.items()
            if key[0] == f"{series}_bucket" and key[1].rpartition(",")[0] == labels
        ]  # fmt: skip
        assert len(buckets) == len(BOUNDS_S) + 1
        assert buckets == sorted(buckets)
        assert buckets[-1] == values[f"{series}_count", labels]
        assert values[f"{series}_sum", labels] > 0
    assert values["headgate_policy_info", "cqc,cqc"] == 1
    assert values["headgate_workers", ""] == 2
    assert 0 <= values["headgate_budget_used_ratio", "log"] < 1
    for part in ("scheduler", "storage", "call", "call_overhead"):
        assert values[f"headgate_{part}_seconds_total", ""] > 0
    assert values["headgate_class_failed", "H"] == values["headgate_query_failed", "H,hot"] == 0
    few = gate.settings.model_copy(update={"metrics_queries": 1})
    monkeypatch.setattr(gate._membership, "settings", few)
    values = scraped(gate)
    named = {labels for name, labels in values if name == "headgate_query_results_total"}
    assert named == {"H,all", "H,other"}
    assert values["headgate_query_results_total", "H,other"] > 0


def test_alerts_and_dashboard_use_metrics_that_exist(gate: Headgate) -> None:
    folder = Path(__file__).parents[2] / "examples/monitoring"
    text = exposition(RunCollector(gate)).decode()
    names = {"up"}
    for family in text_string_to_metric_families(text):
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
        names |= {family.name + suffix for suffix in suffixes.get(family.type, [""])}
    used = set[str]()
    for file in ("alerts.yml", "grafana.json"):
        used |= set(re.findall(r"\bheadgate_\w+", (folder / file).read_text()))
    assert used
    assert used - names == set()
    page = (folder.parents[1] / "docs/operate.md").read_text()
    assert set(re.findall(r"\bheadgate_\w+", page)) - names - {
        "headgate_class_response_seconds", "headgate_query_response_seconds",
    } == set()  # fmt: skip
    if (promtool := shutil.which("promtool")) is not None:  # of Debian's package prometheus
        subprocess.run([promtool, "check", "rules", folder / "alerts.yml"], check=True)
        config = [promtool, "check", "config", "--syntax-only", folder / "prometheus.yml"]
        subprocess.run(config, check=True)
        subprocess.run([promtool, "check", "metrics"], input=text.encode(), check=True)


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


def test_few_pages_watch_at_a_time_and_one_that_leaves_makes_room(gate: Headgate) -> None:
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
    for _ in range(WATCHERS + 1):
        until(watched, timeout_s=20.0)


def test_top_shows_classes_and_queries(gate: Headgate) -> None:
    done = headgate("top", "--state", str(gate.state))
    assert "policy cqc, " in done.stdout
    for word in ("results/s", "slowest queries", "hot", "all"):
        assert word in done.stdout


def test_a_check_says_what_an_addition_would_and_adds_nothing(
    gate: Headgate, client: Client
) -> None:
    typo = {
        "queries": {"typo": {"class": "H", "sql": "SELECT 1\nFROM sensors WHERE temprature > 3"}}
    }
    control = Control.read(gate.state)
    body = json.dumps(typo).encode()
    code, reply = answer(control, "/check?where=page", control.token, method="POST", data=body)
    assert (code, reply["query"], reply["line"]) == (400, "typo", 2)
    assert client.check({"queries": {"fine": {"class": "H", "sql": ALL}}}, "page") == ["fine"]
    assert {query.name for query in gate.queries} == {"hot", "all"}


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


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ({}, "more.yaml: the file must be a mapping with streams, views or queries."),
        ({"state": "x"}, "more.yaml: unknown key 'state'; use one of queries, streams, views"),
        (
            {"queries": {"q": {"class": "X", "sql": ALL}}},
            "more.yaml: queries.q.class is 'X', but must be one of H, N.",
        ),
        (
            {"queries": {"q": {"class": "H", "sql": ALL}, "hot": {"class": "H", "sql": ALL}}},
            "query 'hot': name is 'hot', but must be unique",
        ),
        (
            {
                "queries": {
                    "q": {"class": "H", "sql": ALL},
                    "typo": {"class": "H", "sql": "SELECT 1\nFROM sensors WHERE temprature > 3"},
                }
            },
            "query 'typo', line 2: column `temprature` does not exist in the stream.\n"
            "Fix: write `temperature`",
        ),
        (
            {"streams": {"s": {"format": "nothing"}}},
            "stream 's': source is 'nothing', but must be a source that Spark can open",
        ),
    ],
)
def test_a_wrong_fragment_is_refused_as_a_file_is_and_adds_nothing(
    gate: Headgate, client: Client, fragment: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestRefused) as refused:
        client.add(fragment, "more.yaml")
    assert message in str(refused.value)
    assert "Traceback" not in str(refused.value)
    assert client.status()["streams"] == ["sensors"]
    assert {query.name for query in gate.queries} == {"hot", "all"}
    before = row(client, "all")["account"]["delivered"]
    until(lambda: row(client, "all")["account"]["delivered"] > before)


def test_queries_and_streams_come_and_go(client: Client) -> None:
    stream = {"format": "headgate", "options": {"rate_per_s": 50}}
    added = client.add(
        {
            "streams": {"others": stream},
            "queries": {"late": {"class": "N", "sql": "SELECT humidity FROM others"}},
        },
        "more.yaml",
    )
    assert added == ["others", "late"]
    until(lambda: row(client, "late")["account"]["delivered"])
    with pytest.raises(RequestRefused, match="dropped before the stream that they read"):
        client.drop("others")
    assert client.drop("late") == "query"
    assert client.drop("others") == "stream"
    with pytest.raises(UnknownName, match="Did you mean 'hot'"):
        client.drop("hott")
    with pytest.raises(RequestRefused, match="there is no query 'late'"):
        client.explanation("late")


def test_a_query_that_failed_says_why_and_one_that_was_stopped_that_it_was(
    gate: Headgate, client: Client
) -> None:
    by_zero = {"class": "N", "sql": "SELECT 1 / (temperature - temperature) AS x FROM sensors"}
    client.add({"queries": {"bad": by_zero, "idle": {"class": "N", "sql": ALL}}}, "more.yaml")
    until(lambda: row(client, "bad")["state"] == "FAILED")
    assert "query 'bad' failed on trains" in row(client, "bad")["cause"]
    assert "Division by zero" in client.explanation("bad")["cause"]
    gate.query("idle").stop()
    assert row(client, "idle")["state"] == "STOPPED"
    before = row(client, "all")["account"]["delivered"]
    until(lambda: row(client, "all")["account"]["delivered"] > before)
    assert [client.drop(name) for name in ("bad", "idle")] == ["query", "query"]


def test_the_policy_and_what_amos_is_for_change(gate: Headgate, client: Client) -> None:
    with pytest.raises(RequestRefused, match="must be amos"):
        client.set_specification("pending:minimize:1")
    with pytest.raises(RequestRefused, match="must be amos"):
        client.add_policy("lsf")
    assert client.set_policy("cqc( inner = hr )") == "cqc(inner=hr)"
    with pytest.raises(RequestRefused, match="Did you mean 'cqc'"):
        client.set_policy("cqq")
    with pytest.raises(RequestRefused, match="one that runs on Spark"):
        client.set_policy("mss")
    assert client.status()["policy"] == "cqc(inner=hr)"
    client.set_policy("amos(dwell_s=0.2)")
    with pytest.raises(RequestRefused, match="Did you mean 'pending'"):
        client.set_specification("pendin:minimize:1")
    client.set_specification("pending:minimize:1")
    until(lambda: str(gate.policy.specification) == "pending:minimize:1.0")  # type: ignore[attr-defined]
    assert "amos(dwell_s=0.2), at present " in client.status()["policy"]
    client.add_policy("lsf")
    until(lambda: "lsf" in {choice["chosen"] for choice in client.policy_explanation()["choices"]})
    with pytest.raises(RequestRefused, match="each once, not 'lsf' twice"):
        client.add_policy("lsf")
    explanation = client.policy_explanation()
    assert "lsf" in [row["policy"] for row in explanation["amos"]["scores"]]
    assert set(explanation["choices"][-1]["scores"]) >= {"fcfs", "hr", "lsf"}
    with pytest.raises(RequestRefused, match="works in simulations only"):
        client.set_policy("amos(learning=look-ahead)")
    client.set_policy("cqc")
    assert client.policy_explanation()["amos"] is None


def test_class_weight_deadline_and_graph_of_a_query_change(gate: Headgate, client: Client) -> None:
    fragment = {"class": "N", "sql": ALL, "deadline_s": 2}
    client.add({"queries": {"apt": fragment}}, "more.yaml")
    graph = [[0.0, 1.0], [2.0, 0.5]]
    was = {"query": "apt", "class": "N", "weight": 1.0, "deadline_s": 2.0, "qos": None}
    was["on_error"] = "fail"
    was["sink"] = {"commit_every_s": None, "target_file_mb": None, "compact": False}
    assert client.set_query("apt", {"qos": graph, "class": "H"}) == was | {
        "qos": graph, "class": "H",
    }  # fmt: skip
    assert row(client, "apt")["class"] == client.explanation("apt")["query_class"] == "H"
    state = str(gate.state)
    done = headgate("set", "query", "apt", "--class", "N", "--weight", "2.5", "--deadline", "1.5",
                    "--qos", "none", "--state", state)  # fmt: skip
    assert (
        done.stdout == "apt: class N, weight 2.5, deadline 1.5 s, no QoS graph, on_error fail\n"
    ), done.stderr
    assert client.set_query("apt", {"deadline_s": None}) == was | {
        "weight": 2.5, "deadline_s": None,
    }  # fmt: skip
    path = gate.query("apt")._query.path
    assert (path.query.weight, path.query.deadline_s, path.query.qos) == (2.5, None, None)
    until(lambda: gate.query("apt")._query.row["weight"] == 2.5)
    for option, value, message in (
        ("--deadline", "soon", 'deadline_s: expected a number of seconds, got "soon"'),
        ("--qos", "[[0, 1], [1, 2]]", "must be falling or level"),
        ("--weight", "-1", "weight is -1"),
        ("--class", "X", "queries.apt.class is 'X', but must be one of H, N"),
    ):
        done = headgate("set", "query", "apt", option, value, "--state", state)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    for name, change, message in (
        ("apt", {}, "must be one or more of class, weight, deadline_s, qos"),
        ("apt", {"sql": ALL}, "unknown key 'sql'"),
        ("apt", {"weight": None}, "weight: expected a number, got nothing"),
        ("none", {"weight": 1}, "there is no query 'none'"),
        (
            "apt",
            {"sink": {"path": "x"}},
            "queries.apt.sink: unknown key 'path'; use one of commit_every_s",
        ),
        ("apt", {"sink": {}}, "queries.apt.sink is {}, but must be a mapping with one or more of"),
        ("apt", {"sink": {"commit_every_s": "soon"}}, "expected a number of seconds, got"),
        ("apt", {"sink": {"target_file_mb": 1}}, "must be given together with commit_every_s"),
    ):
        with pytest.raises(RequestRefused, match=re.escape(message)):
            client.set_query(name, change)
    assert client.drop("apt") == "query"


def test_why_is_asked_by_command_handle_and_request(gate: Headgate, client: Client) -> None:
    until(lambda: row(client, "hot")["since_start"]["results"])
    reply = client.why("hot")
    parts = reply["parts"]
    assert sum(part["to"] - part["from"] for part in parts) == pytest.approx(reply["response_s"])
    assert [part["kind"] for part in parts[-2:]] == ["running", "committing"]
    assert {part["segment"] for part in parts} == {"hot"}
    turns = [(part["from"], part["to"]) for part in parts if part["kind"] == "turn"]
    events = tuple(EVENTS)  # what a listener has heard
    ends_s = {event.call.number: event.at_s for event in events if isinstance(event, StepFinished)}
    assert {call["call"] for call in reply["instead"]} == {
        event.call.number
        for event in events
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


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "message"),
    [
        ("GET", "/nowhere", None, 404, "GET /nowhere: not found."),
        ("POST", "/report", None, 405, "POST /report: method not allowed."),
        ("PUT", "/policy", b"{}", 400, "/policy: body.policy is refused: Field required."),
        ("POST", "/add", b"not JSON", 400, "/add: body"),
        ("POST", "/add", b"[1]", 400, "/add: body"),
        ("GET", "/queries/none", None, 404, "there is no query 'none'"),
        (
            "POST",
            "/add",
            query_of(weight="1e999"),
            400,
            "queries.q.weight: expected a finite number",
        ),
        ("POST", "/add", query_of(weight="NaN"), 400, "queries.q.weight: expected a finite number"),
        ("POST", "/add", query_of(weight="9" * 5000), 400, "/add: there was an error parsing"),
        ("POST", "/add", query_of("q" * 300), 400, "letters, digits and _, at most 100 of them"),
        ("POST", "/add", query_of(sink=sink_to("/proc/x")), 400, "cannot be written: No such file"),
        (
            "POST",
            "/add",
            query_of(sink=sink_to(r"/a\u0000b")),
            400,
            "sink path cannot be used: emb",
        ),
        ("POST", "/add", query_of(sink=sink_to("/" + "x" * 300)), 400, "cannot be used: File name"),
        ("POST", "/add", query_of(sink=sink_to("/x" * 5000)), 400, "cannot be used: File name"),
        ("POST", "/add", query_of(sql=r'"SELECT \ud800 FROM s"'), 400, "queries.q.sql"),
        ("POST", "/add", query_of(weight="[" * 900 + "]" * 900), 400, "got a list"),
        ("POST", "/add", b"[" * 100_000, 400, "/add: there was an error parsing the body."),
        ("PUT", "/specification", deep_specification(), 400, "specification: row 1 is"),
        ("POST", "/add", b" " * (9 << 20), 413, "/add: the body has more than 8388608 bytes."),
    ],
)
def test_a_wrong_request_is_a_sentence(
    gate: Headgate, method: str, path: str, body: bytes | None, code: int, message: str
) -> None:
    control = Control.read(gate.state)
    status, reply = answer(control, path, control.token, method=method, data=body)
    assert (status, message in reply["error"]) == (code, True), reply


def received(connection: socket.socket, text: str, timeout_s: float = 20.0) -> bytes:
    """Send a text; return all that the server answers until it closes the connection."""
    connection.settimeout(timeout_s)
    connection.sendall(text.encode())
    answer = b""
    while data := connection.recv(1 << 16):
        answer += data
    return answer


def test_connections_that_ask_nothing_keep_nobody_out_and_are_closed(
    gate: Headgate, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_open(connection: socket.socket) -> bool:
        try:
            return bool(connection.recv(1))
        except BlockingIOError:
            return True
        except OSError:
            return False

    port = Control.read(gate.state).port
    with ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(200)
        ]
        for connection in idle:
            connection.setblocking(False)
        before = row(client, "all")["account"]["delivered"]
        until(lambda: sum(map(is_open, idle)) <= limits.CONNECTIONS)
        until(lambda: row(client, "all")["account"]["delivered"] > before)
        assert is_open(idle[-1])  # the last to come are the last to go
    monkeypatch.setattr(limits, "HEADER_S", 0.2)
    with socket.create_connection(("127.0.0.1", port)) as slow:
        assert received(slow, "GET /queries HTTP/1.1\r\nHost: 127.0.0.1\r\n") == b""


def test_a_body_is_read_for_those_with_the_token_alone_and_not_for_long(
    gate: Headgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_S", 0.2)
    control = Control.read(gate.state)
    head = "POST /add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 150000000\r\n"
    for more, code in (("", 401), (f"Authorization: Bearer {control.token}\r\n", 408)):
        with socket.create_connection(("127.0.0.1", control.port)) as connection:
            head_of_answer = received(connection, f"{head}{more}\r\n").split(b"\r\n")[0]
        assert head_of_answer.startswith(f"HTTP/1.1 {code} ".encode())


def test_a_request_that_is_too_large_is_not_sent(client: Client) -> None:
    with pytest.raises(RequestRefused, match="must have at most 8388608"):
        client.add({"queries": "x" * (9 << 20)}, "more.yaml")


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


def test_a_stop_is_passed_on(client: Client) -> None:
    assert client.ask("POST", "/stop") == {"stopping": True}
    assert STOP_REQUESTED.is_set()
