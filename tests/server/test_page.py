"""The page in a real browser, against one Headgate that runs."""

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from kit.browser import browser
from kit.gates import new_gate
from kit.waiting import until
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream
from headgate.server import Control
from headgate.server import control as control_file
from headgate.server.service import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOT = "SELECT location, ts FROM sensors WHERE temperature > 35"
HOSTILE = "SELECT '<img src=x onerror=\"document.title=1\">' AS tag, location FROM sensors"
BAD = "SELECT location\nFROM sensors\nWHERE temprature > 3"


@pytest.fixture(scope="module")
def chromium() -> Iterator["Browser"]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def gate(
    chromium: "Browser", spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Headgate]:
    options = {"rate_per_s": "200"}
    stream = Stream(name="sensors", format="headgate", options=options, arrival_time="ts")
    queries = [
        Query(name="hot", sql=HOT, query_class="H", deadline_s=2.0),
        Query(name="tags", sql=HOSTILE, query_class="N"),
    ]
    folder = tmp_path_factory.mktemp("page")
    gate = new_gate(spark, folder, [stream], queries, classes={"H": 6, "N": 1}, record=True)
    gate.start()
    try:
        with served(gate, lambda: None):
            yield gate
    finally:
        gate.stop()
        control_file.remove(gate.state)


@pytest.fixture
def page(chromium: "Browser", gate: Headgate) -> Iterator["Page"]:
    """Return a signed-in page; fail if it asks another machine, or an error reaches its console."""
    context = chromium.new_context()
    page, errors, hosts = context.new_page(), list[str](), set[str | None]()
    context.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.goto(Control.read(gate.state).signed_in())
    page.get_by_text("live", exact=True).wait_for()
    yield page
    context.close()
    assert hosts == {"127.0.0.1"}
    # Chromium reports every refusal that the page shows; all else is a mistake of the page.
    assert [text for text in errors if "status of 40" not in text] == []


def confirm(page: "Page", label: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=label).click()


def test_a_user_signs_in_and_the_token_leaves_the_address(page: "Page", gate: Headgate) -> None:
    control = Control.read(gate.state)
    assert page.url == control.page
    assert control.token not in page.content()
    page.get_by_role("heading", name="H", exact=True).wait_for()
    card = page.locator("section.class").first
    card.locator("dd").first.filter(has_text="s").wait_for()  # a mean response time
    assert "priority 6" in card.inner_text()
    page.reload()  # the tab keeps the token
    page.get_by_text("live", exact=True).wait_for()


def test_a_page_without_a_token_asks_for_one(chromium: "Browser", gate: Headgate) -> None:
    control, page = Control.read(gate.state), chromium.new_page()
    page.goto(control.page)
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("The token is missing or wrong").wait_for()
    page.get_by_label("Token").fill(control.read_token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Queries").click()
    page.get_by_role("link", name="hot").click()
    page.get_by_role("button", name="Pause").click()
    confirm(page, "Pause")
    page.get_by_text("the read-only token allows no change").wait_for()
    assert gate.query("hot").state != "PAUSED"
    page.close()


def test_queries_are_found_opened_and_changed(page: "Page", gate: Headgate) -> None:
    page.get_by_role("link", name="Queries").click()
    rows = page.locator("div[role=rowgroup] > div.row:not(.heads)")
    rows.nth(1).wait_for()
    page.get_by_role("searchbox").fill("ho")
    assert rows.filter(visible=True).count() == 1
    page.get_by_text("1 of 2 queries").wait_for()
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="Mean").click()
    page.locator("[aria-sort=descending]").get_by_text("Mean").wait_for()
    page.get_by_role("link", name="hot").click()
    assert urlsplit(page.url).path == "/page/queries/hot"
    page.locator("pre.sql").filter(has_text=HOT).wait_for()
    page.reload()
    page.locator("pre.sql").filter(has_text=HOT).wait_for()
    page.get_by_label("Weight").fill("2.5")
    page.get_by_label("Class").select_option("N")
    page.get_by_role("button", name="Change").click()
    confirm(page, "Change")
    page.get_by_text("Changed: its class becomes N, its weight becomes 2.5.").wait_for()
    values = gate.values_of("hot")
    assert (values["class"], values["weight"], values["deadline_s"]) == ("N", 2.5, 2.0)
    page.get_by_role("link", name="Changes").click()
    page.get_by_text("query hot: class is N, in the file H").wait_for()
    page.get_by_role("button", name=re.compile("Undo change")).first.click()
    confirm(page, "Undo")
    page.get_by_text("is undone").wait_for()
    assert gate.values_of("hot")["class"] == "H"
    page.get_by_text("The run does what its pipeline file says.").wait_for()


def test_a_user_reads_why_a_query_waited_and_drags_its_graph(page: "Page", gate: Headgate) -> None:
    until(lambda: gate.query("hot").lastProgress)
    page.goto(f"{Control.read(gate.state).page}page/queries/hot")
    panel = page.locator("section").filter(has_text="Why did it wait?")
    panel.get_by_text("until its results were visible").wait_for()
    reply = gate.why("hot")
    assert panel.locator("svg rect").count() == len(reply["parts"]) or reply["call"]
    page.get_by_role("button", name="Make a graph").click()
    dot = page.get_by_role("slider", name="Point 2")
    box = dot.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 20, y + 40, steps=4)
    page.mouse.up()
    page.get_by_role("button", name="Change").click()
    page.get_by_role("dialog").get_by_text("Its QoS graph becomes").wait_for()
    confirm(page, "Change")
    page.get_by_text("Changed: its QoS graph becomes").wait_for()
    (start, at_start), (middle, at_middle), (end, at_end) = gate.values_of("hot")["qos"]
    assert (start, at_start, end, at_end) == (0, 1, 2, 0)
    assert middle > 1
    assert 0.2 < at_middle < 0.9
    gate.set_query("hot", qos=None)


def test_the_network_leads_to_a_query(page: "Page") -> None:
    page.get_by_role("link", name="Network").click()
    page.locator(".network a").filter(has_text="tags").click()
    page.get_by_role("heading", name="tags").wait_for()


def test_a_replay_compares_policies_and_can_be_cancelled(page: "Page") -> None:
    page.get_by_role("link", name="What if?").click()
    page.get_by_label("Policies").fill("no-such-policy")
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("alert").get_by_text("there is no policy").wait_for()
    page.get_by_label("Policies").fill("rr")
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("The replay was cancelled").wait_for()
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("heading", name="Which policy would have been better?").wait_for(
        timeout=90_000
    )
    page.get_by_text(re.compile("^rr: .* mean response")).wait_for()


def test_hostile_sql_stays_text(page: "Page") -> None:
    page.get_by_role("link", name="Queries").click()
    page.get_by_role("link", name="tags").click()
    page.locator("pre.sql").filter(has_text=HOSTILE).wait_for()
    assert page.locator("main img").count() == 0
    assert page.title() == "tags · Headgate"


def test_a_query_is_refused_at_its_line_then_added_paused_and_dropped(
    page: "Page", gate: Headgate
) -> None:
    page.get_by_role("link", name="Add").click()
    page.get_by_label("Name").fill("warm")
    page.get_by_label("SQL").fill(BAD)
    page.get_by_role("button", name="Check").click()
    refused = page.locator("li.refused")
    refused.wait_for()
    assert "WHERE temprature > 3" in refused.inner_text()
    assert "Fix: write `temperature`" in refused.inner_text()
    assert {query.name for query in gate.queries} == {"hot", "tags"}
    page.get_by_label("SQL").fill(BAD.replace("temprature", "temperature"))
    page.locator("main").get_by_role("button", name="Add").click()
    confirm(page, "Add")
    page.get_by_role("heading", name="warm", exact=True).wait_for()
    delivered = page.locator("dl.figures div").filter(has_text="Delivered").locator("dd")
    delivered.filter(has_text=re.compile("[1-9]")).wait_for()
    page.get_by_role("button", name="Alter").click()
    page.get_by_label("New text").fill(BAD)
    page.get_by_role("button", name="Alter", exact=True).click()
    confirm(page, "Alter")
    page.locator("li.refused").get_by_text("WHERE temprature > 3").wait_for()
    page.get_by_label("New text").fill("SELECT location\nFROM sensors\nWHERE temperature > 4")
    page.get_by_role("button", name="Alter", exact=True).click()
    confirm(page, "Alter")
    page.get_by_text("it is version 2 now").wait_for()
    page.get_by_role("button", name="Pause").click()
    confirm(page, "Pause")
    page.get_by_text("paused", exact=True).wait_for()
    assert gate.query("warm").state == "PAUSED"
    page.get_by_role("button", name="Drop").click()
    confirm(page, "Drop")
    page.get_by_role("heading", name="Queries").wait_for()
    assert {query.name for query in gate.queries} == {"hot", "tags"}


def test_the_policy_and_what_amos_is_asked_for_change(page: "Page", gate: Headgate) -> None:
    page.get_by_role("link", name="Policy").click()
    page.get_by_label("Policy", exact=True).select_option("amos")
    page.get_by_label("dwell_s").fill("0.3")
    page.get_by_role("button", name="Put in charge").click()
    confirm(page, "Put in charge")
    page.get_by_text("In charge: amos(dwell_s=0.3)").first.wait_for()
    slider = page.get_by_label("pending", exact=True)
    slider.wait_for()
    slider.fill("400")
    page.get_by_text("Asked for: minimize pending 0.4, minimize mean_response_s 0.6.").wait_for()
    page.wait_for_timeout(400)  # the scheduler's thread takes it at its next event
    text = str(gate.policy.specification)  # type: ignore[attr-defined]
    assert text == "pending:minimize:0.4,mean_response_s:minimize:0.6"
    gate.set_policy("cqc")


def test_a_stream_that_lags_is_a_problem_with_how_far_and_since_when(
    page: "Page", gate: Headgate
) -> None:
    row = {"ts": datetime.now(UTC) - timedelta(hours=1)}
    stream = Stream(
        name="late", format="python", schema="ts TIMESTAMP", arrival_time="ts", trigger_s=0.2,
        options={"rowsPerPoll": "1"},
    )  # fmt: skip
    gate.add_stream(stream, rows=lambda first: repeat(row))
    line = page.get_by_text(re.compile(r"stream late lags 60\.\d min behind its source, since \d"))
    line.wait_for()
    (lag,) = gate.status()["stream_lags"]
    assert (lag["stream"], lag["behind_s"] > 3599) == ("late", True)
    gate.drop_stream("late")
    line.wait_for(state="detached")


def test_a_filter_stays_chosen_when_nothing_fits_it_any_more(page: "Page", gate: Headgate) -> None:
    gate.pause_query("hot")
    page.get_by_role("link", name="Queries").click()
    states = page.get_by_label("State")
    states.select_option("PAUSED")
    page.get_by_text("1 of 2 queries").wait_for()
    gate.resume_query("hot")
    page.get_by_text("0 of 2 queries").wait_for()
    page.reload()
    page.get_by_text("0 of 2 queries").wait_for()
    assert states.input_value() == "PAUSED"
    states.select_option("")
    page.get_by_text("2 queries", exact=True).wait_for()


def test_fields_that_a_user_has_not_changed_follow_the_run(page: "Page", gate: Headgate) -> None:
    page.get_by_role("link", name="Queries").click()
    page.get_by_role("link", name="tags").click()
    deadline, weight = page.get_by_label("Deadline in seconds"), page.get_by_label("Weight")
    deadline.fill("7")
    gate.set_query("tags", weight=4.0)
    until(lambda: weight.input_value() == "4")
    assert deadline.input_value() == "7"
    page.get_by_role("button", name="Change").click()
    page.get_by_role("dialog").get_by_text("Its deadline becomes 7 s, from").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    gate.set_query("tags", weight=1.0)


def test_a_slider_that_is_refused_goes_back(chromium: "Browser", gate: Headgate) -> None:
    gate.set_policy("amos(dwell_s=0.3)")
    control, page = Control.read(gate.state), chromium.new_page()
    page.goto(f"{control.page}page/policy#token={control.read_token}")
    slider = page.get_by_label("pending", exact=True)
    slider.wait_for()
    before = slider.input_value()
    slider.fill("999")
    page.get_by_text("the read-only token allows no change").wait_for()
    assert (slider.input_value(), before != "999") == (before, True)
    page.close()
    gate.set_policy("cqc")


class Proxy(BaseHTTPRequestHandler):
    """A reverse proxy with the base path /gate, which it strips, as nginx does."""

    port, broken = 0, threading.Event()

    def do_GET(self) -> None:
        if self.broken.is_set():
            self.send_error(502)
            return
        assert self.path.startswith("/gate/")
        headers = {
            name: self.headers[name] for name in ("Authorization", "Host") if name in self.headers
        }
        connection = HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", self.path.removeprefix("/gate"), headers=headers)
        answer = connection.getresponse()
        self.send_response(answer.status)
        for name in ("Content-Type", "Content-Security-Policy"):
            self.send_header(name, answer.headers.get(name, ""))
        self.end_headers()
        with suppress(OSError):  # the browser has left
            while not self.broken.is_set() and (data := answer.read1(1 << 16)):
                self.wfile.write(data)
        connection.close()

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


def test_the_page_works_behind_a_base_path_and_finds_a_lost_connection_again(
    chromium: "Browser", gate: Headgate
) -> None:
    control = Control.read(gate.state)
    handler = type("GateProxy", (Proxy,), {"port": control.port})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{proxy.server_port}/gate/"
        page = chromium.new_page()
        page.goto(f"{base}page/queries/hot#token={control.token}")
        page.locator("pre.sql").filter(has_text=HOT).wait_for()
        page.get_by_role("link", name="Queries").click()
        page.get_by_role("link", name="tags").click()
        page.get_by_role("heading", name="tags").wait_for()
        assert page.url == f"{base}page/queries/tags"
        page.get_by_role("link", name="Overview").click()
        assert page.url == base
        Proxy.broken.set()
        page.get_by_text("lost", exact=True).wait_for()
        page.get_by_role("heading", name="H", exact=True).wait_for()  # the last state stays
        Proxy.broken.clear()
        page.get_by_text("live", exact=True).wait_for()
        page.close()
        proxy.shutdown()


def test_sliders_always_sum_to_one(page: "Page") -> None:
    sums = page.evaluate(
        """async () => {
          const { moved } = await import("./page/files/amos.js");
          const sums = [];
          let weights = [334, 333, 333];
          for (const [place, value] of [[0, 7], [1, 1000], [2, 500], [0, 0], [2, 0], [1, 999]]) {
            weights = moved(weights, place, value);
            sums.push([weights[place] === value, weights.reduce((a, b) => a + b)]);
          }
          return sums;
        }"""
    )
    assert sums == [[True, 1000]] * 6
