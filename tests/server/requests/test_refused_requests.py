"""Requests that are refused, and connections that ask for nothing."""

import socket
from contextlib import ExitStack
from typing import Any

import pytest
from kit.control import ALL, answer, row
from kit.waiting import until

from headgate import Headgate
from headgate.errors import RequestRefused
from headgate.server import Client, Control, limits

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def query_of(name: str = "q", sql: str = f'"{ALL}"', weight: str = "1", sink: str = "{}") -> bytes:
    """Return the body of a request that adds a query, from texts in JSON."""
    query = f'{{"class": "H", "sql": {sql}, "weight": {weight}, "sink": {sink}}}'
    return f'{{"queries": {{"{name}": {query}}}}}'.encode()


def sink_to(path: str) -> str:
    return f'{{"path": "{path}"}}'


def deep_specification() -> bytes:
    return b'{"specification": [{"metric": ' + b"[" * 900 + b"]" * 900 + b"}]}"


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
