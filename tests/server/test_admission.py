"""Which requests are admitted, where a run listens, and what a page is told: without an engine."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from headgate.cli.page import flags_of, invitation
from headgate.errors import ConfigRefused
from headgate.metrics.histogram import BOUNDS_S, Histogram
from headgate.metrics.tally import Tally
from headgate.server import Address, Control
from headgate.server.address import PORT, PORTS
from headgate.server.admission import Admission
from headgate.server.patches import difference, patched
from headgate.server.updates import Updates, rounded

ADMISSION = Admission("full", "read", frozenset({"gate.example.com"}))
OURS = "127.0.0.1:4747"


def request(method: str = "GET", path: str = "/queries", **headers: str) -> Request:
    names = {"host": OURS, **headers}
    pairs = [(name.encode(), text.encode("latin-1")) for name, text in names.items()]
    return Request({"type": "http", "method": method, "path": path, "headers": pairs})


def code_of(admission: Admission = ADMISSION, **parts: str) -> int:
    refusal = admission.refusal(request(**parts))
    return 200 if refusal is None else refusal[0]


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:4747", 200), ("localhost:4747", 200), ("LOCALHOST", 200), ("[::1]:4747", 200),
        ("10.0.0.7", 200), ("gate.example.com", 200), ("Gate.Example.com.:443", 200),
        ("evil.example", 403), ("127.0.0.1.evil.example:4747", 403), ("", 403), ("[", 403),
        ("localhost.evil.example", 403),
    ],
)  # fmt: skip
def test_a_host_that_is_not_ours_is_refused_whoever_asks(host: str, code: int) -> None:
    assert code_of(host=host, authorization="Bearer full") == code
    assert code_of(host=host, path="/health") == code


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        ("http://127.0.0.1:4747", 200), ("https://gate.example.com", 200), ("null", 403),
        ("http://127.0.0.1:8080", 403), ("https://evil.example", 403), ("http://[", 403),
    ],
)  # fmt: skip
def test_a_page_of_another_origin_is_refused(origin: str, code: int) -> None:
    assert code_of(origin=origin, authorization="Bearer full", method="POST") == code


@pytest.mark.parametrize(
    ("method", "path", "token", "code"),
    [
        ("GET", "/queries", "full", 200), ("GET", "/queries", "read", 200),
        ("DELETE", "/queries/a", "full", 200), ("DELETE", "/queries/a", "read", 403),
        ("PUT", "/policy", "read", 403), ("GET", "/queries", "", 401),
        ("GET", "/queries", "ü", 401),
        ("GET", "/events", "", 401), ("GET", "/metrics", "", 401), ("GET", "/", "", 200),
        ("GET", "/page/files/app.js", "", 200), ("POST", "/", "", 401), ("GET", "/health", "", 200),
    ],
)  # fmt: skip
def test_the_page_is_for_everybody_data_for_readers_and_changes_for_the_full_token(
    method: str, path: str, token: str, code: int
) -> None:
    assert code_of(method=method, path=path, authorization=f"Bearer {token}") == code


def test_metrics_need_no_token_where_the_user_says_so() -> None:
    assert code_of(Admission("full", "read", open_metrics=True), path="/metrics") == 200
    assert code_of(Admission("full", "read", open_metrics=True), path="/queries") == 401


def test_an_empty_read_token_admits_nobody() -> None:
    assert code_of(Admission("full", ""), authorization="Bearer ") == 401


def test_an_address_other_than_loopback_needs_tls_or_a_permission(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match=r"--host: address is '0\.0\.0\.0', but must be loop"):
        Address("0.0.0.0")
    with pytest.raises(ConfigRefused, match="given by both files"):
        Address("0.0.0.0", certificate="a.pem")
    with pytest.raises(ConfigRefused, match=r"--tls-cert: file is 'a\.pem', but must be a file"):
        Address("0.0.0.0", certificate="a.pem", key="b.pem")
    assert Address("0.0.0.0", allows_plain=True).own_host == "127.0.0.1"
    for host in ("localhost", "127.0.0.1", "127.8.9.1", "::1"):
        assert Address(host).is_loopback


def test_the_default_port_is_taken_or_the_next_free_one() -> None:
    with Address().listen() as first, Address().listen() as second:
        ports = first.getsockname()[1], second.getsockname()[1]
        assert PORT <= ports[0] < ports[1] < PORT + PORTS
        with pytest.raises(ConfigRefused, match=r"--port: address is .* in use"):
            Address(port=ports[0]).listen()


def test_the_token_stands_in_the_address_for_a_terminal_alone(tmp_path: Path) -> None:
    control = Control(4747, "full", 1, "read")
    text = invitation(control, tmp_path, signed_in=False)
    assert text == f"page: http://127.0.0.1:4747/, sign in by `headgate open --state {tmp_path}`"
    text = invitation(control, tmp_path, signed_in=True)
    assert text == "page: http://127.0.0.1:4747/#token=full"
    file = control.write_sign_in(tmp_path, read_only=True)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "http://127.0.0.1:4747/#token=read" in file.read_text()
    assert Control(1, "t", 1, host="::1", certificate="c.pem").page == "https://[::1]:1/"


def test_an_address_becomes_the_options_that_mean_it() -> None:
    address = Address("0.0.0.0", 80, ("a.b", "c.d"), allows_plain=True)
    assert flags_of(address) == [
        "--host", "0.0.0.0", "--port", "80", "--allow-host", "a.b", "--allow-host", "c.d",
        "--allow-plain-http",
    ]  # fmt: skip


STATES = st.recursive(
    st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)


@given(
    st.dictionaries(st.sampled_from("abc"), STATES), st.dictionaries(st.sampled_from("abc"), STATES)
)
def test_a_patch_leads_from_one_state_to_the_next(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    patch = difference(before, after)
    assert patched(before, patch) == after
    assert (patch == {}) == (before == after)


def test_a_page_gets_the_whole_state_and_then_what_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = iter([{"queries": {"hot": {"waiting": n, "class": "H"}}} for n in range(9)])

    async def watched() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        updates = Updates(lambda: next(states))
        pages = updates.watch(), updates.watch()
        lines = [[json.loads(await anext(page)) for page in pages] for _ in range(3)]
        updates.end()
        assert [line async for line in pages[0]] == []
        await asyncio.gather(*(page.aclose() for page in pages))  # type: ignore[attr-defined]
        first, second = zip(*lines, strict=True)
        return list(first), list(second)

    monkeypatch.setattr("headgate.server.updates.EVERY_S", 0.01)
    first, second = asyncio.run(watched())
    assert first == second  # computed once for both
    assert first[0]["queries"] == {"hot": {"waiting": 0, "class": "H"}}
    assert [line["queries"] for line in first[1:]] == [
        {"hot": {"waiting": 1}}, {"hot": {"waiting": 2}},
    ]  # fmt: skip


def test_numbers_are_rounded_and_what_is_not_known_is_left_out() -> None:
    assert rounded({"a": 0.123456, "b": None, "c": {"d": None, "e": [None, 2.00001]}}) == {
        "a": 0.1235, "c": {"e": [None, 2.0]},
    }  # fmt: skip


@given(st.lists(st.floats(1e-6, 1e4), max_size=60))
def test_a_histogram_is_that_of_the_values_within_two_percent(values: list[float]) -> None:
    tally = Tally()
    tally.add(np.array(values))
    histogram = Histogram.of(tally)
    assert histogram.count == len(values)
    assert histogram.total == pytest.approx(sum(values))
    for bound, below in zip(BOUNDS_S, histogram.below.tolist(), strict=True):
        assert sum(value < bound / 1.021 for value in values) <= below
        assert below <= sum(value <= bound for value in values)


def test_a_listener_on_any_address_answers_on_this_machine() -> None:
    with Address("0.0.0.0", allows_plain=True).listen() as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
