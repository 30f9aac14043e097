"""Requests that change a run, over real HTTP."""

import json
import re

import pytest
from kit.commands import headgate
from kit.control import ALL, answer, row
from kit.engines import row_of
from kit.waiting import until

from headgate import Headgate
from headgate.errors import RequestRefused, UnknownName
from headgate.server import Client, Control

pytestmark = [pytest.mark.spark, pytest.mark.slow]


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
    values = gate.values_of("apt")
    assert (values["weight"], values["deadline_s"], values["qos"]) == (2.5, None, None)
    until(lambda: row_of(gate, "apt")["weight"] == 2.5)
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


def test_an_undo_that_is_refused_halfway_logs_what_it_has_dropped(client: Client) -> None:
    """Otherwise the next start would add it again."""
    stream = {"format": "headgate", "options": {"rate_per_s": 50}}
    queries = {
        name: {"class": "N", "sql": "SELECT humidity FROM others"} for name in ("one", "two")
    }
    client.add({"streams": {"others": stream}, "queries": {"one": queries["one"]}}, "more.yaml")
    number = client.ask("GET", "/changes")["changes"][0]["number"]
    client.add({"queries": {"two": queries["two"]}}, "more.yaml")
    with pytest.raises(RequestRefused, match="dropped before the stream that they read"):
        client.ask("POST", f"/changes/{number}/undo")
    change, *_ = client.ask("GET", "/changes")["changes"]
    assert (change["kind"], change["name"], change["undoes"]) == ("drop", "one", None)
    with pytest.raises(RequestRefused, match="cannot be undone"):
        client.ask("POST", f"/changes/{number}/undo")
    assert [client.drop(name) for name in ("two", "others")] == ["query", "stream"]
