"""What pages that watch cost: response times and the server's CPU, with two clients and without.

500 queries run at a utilisation of 0.6. Minutes with two event clients, which read the stream and
draw nothing, alternate with minutes without; a class holds if its median response with clients
differs from that without by at most 3 %, or lies within the range of the minutes without. With a
browser, the first paint and the cost of an update of a table of 1 000 rows are measured there too.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import Request, urlopen

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from headgate import Headgate, Query, Stream
from headgate.model.events import StepFinished
from headgate.server import Control
from headgate.server.service import served
from machine import facts

UTILISATION, MOST_CHANGE, MOST_CPU = 0.6, 0.03, 0.02
MOST_PAINT_S, MOST_UPDATE_S = 1.0, 0.05
CLASSES = {"H": 6.0, "C": 3.0, "N": 1.0}


def main() -> int:
    """Run all minutes, print and write the figures; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--minute-s", type=float, default=60.0, help="length of a minute")
    parser.add_argument("--rate", type=float, default=0.0, help="tuples a second; 0: calibrate")
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    rate = arguments.rate or calibrated(arguments.queries)
    figures = {
        "machine": facts(), "queries": arguments.queries, "rate_per_s": rate,
        "minute_s": arguments.minute_s, **measured(arguments, rate), **drawn(),
    }  # fmt: skip
    failed = shown(figures)
    if arguments.results:
        arguments.results.write_text(json.dumps(figures, indent=1) + "\n")
    return int(failed)


@contextmanager
def gate_of(queries: int, rate: float, listeners: Any = ()) -> Iterator[Headgate]:
    """Start a Headgate with selections in three classes over one generated stream."""
    with TemporaryDirectory() as state:
        gate = Headgate(state=state, classes=CLASSES, master="local[2]", rehearsal_s=5.0)
        options = {"rate_per_s": str(rate), "seed": "1"}
        gate.add_stream(
            Stream(name="sensors", format="headgate", options=options, arrival_time="ts")
        )
        for number in range(queries):
            sql = f"SELECT location, ts FROM sensors WHERE temperature > {20 + number % 23}"
            query_class = list(CLASSES)[number % 3]
            gate.add_query(Query(name=f"q{number}", sql=sql, query_class=query_class))
        gate.start(listeners=listeners)
        try:
            yield gate
        finally:
            gate.stop()


def calibrated(queries: int) -> float:
    """Return the rate at which the workers are busy for 60 % of the time."""
    busy = [0.0]

    def hear(event: Any) -> None:
        if isinstance(event, StepFinished):
            busy[0] += event.seconds

    rate = 200.0
    for _ in range(3):
        busy[0] = 0.0
        with gate_of(queries, rate, [hear]) as gate:
            time.sleep(8)
            before, began_s = busy[0], time.monotonic()
            time.sleep(12)
            share = (busy[0] - before) / (time.monotonic() - began_s) / gate.settings.workers
        print(f"{rate:.0f} tuples a second: {share:.2f} busy", file=sys.stderr)
        if abs(share - UTILISATION) < 0.05:
            break
        rate *= min(8.0, max(0.1, UTILISATION / max(share, 0.01)))
    return rate


def measured(arguments: argparse.Namespace, rate: float) -> dict[str, Any]:
    """Return the median responses of every class and the CPU of the server, by minute."""
    minutes: list[dict[str, Any]] = []
    responses: dict[str, list[float]] = {name: [] for name in CLASSES}
    class_of_unit: dict[int, str] = {}

    def hear(event: Any) -> None:
        if isinstance(event, StepFinished):
            for unit, seconds in zip(event.call.units, event.responses_s, strict=True):
                responses[class_of_unit.get(unit, "N")].extend(seconds.tolist())

    with gate_of(arguments.queries, rate, [hear]) as gate, served(gate, lambda: None):
        class_of_unit.update({row["id"]: row["class"] for row in gate.status()["queries"]})
        control = Control.read(gate.state)
        time.sleep(arguments.minute_s)  # until costs are known
        for number in range(arguments.minutes):
            with_clients = number % 2 == 1
            clients = [Client(control) for _ in range(2 * with_clients)]
            for seconds in responses.values():
                seconds.clear()
            began_s, cpu_s = time.monotonic(), server_cpu_s()
            time.sleep(arguments.minute_s)
            share = (server_cpu_s() - cpu_s) / (time.monotonic() - began_s)
            medians = {name: median(list(all_s) or [0.0]) for name, all_s in responses.items()}
            minutes.append({"clients": len(clients), "cpu": share, "median_response_s": medians,
                            "updates": [client.updates for client in clients]})  # fmt: skip
            for client in clients:
                client.end()
            print(minutes[-1], file=sys.stderr)
    return {"minutes": minutes}


class Client(threading.Thread):
    """A client that reads the stream of events and draws nothing."""

    def __init__(self, control: Control) -> None:
        super().__init__(daemon=True)
        headers = {"Authorization": f"Bearer {control.token}"}
        self._lines = urlopen(Request(f"{control.address}/events", headers=headers))
        self.updates = 0
        self.start()

    def run(self) -> None:
        with suppress(Exception):
            for _ in self._lines:
                self.updates += 1

    def end(self) -> None:
        self._lines.fp.raw._sock.shutdown(2)


def server_cpu_s() -> float:
    """Return the CPU seconds of the server's thread and of those that compute updates for it."""
    total = 0.0
    ticks = os.sysconf("SC_CLK_TCK")
    names = ("headgate-control", "AnyIO", "asyncio")
    by_id = {thread.native_id: thread.name for thread in threading.enumerate()}
    for number, name in by_id.items():
        if not name.startswith(names):
            continue
        with suppress(OSError):
            fields = Path(f"/proc/self/task/{number}/stat").read_text().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def drawn() -> dict[str, Any]:
    """Return the first paint and the time of an update of 1 000 rows, in a browser if there is one.

    The update is drawn by the modules of the page, from a state that is made up here.
    """
    from kit.browser import browser  # noqa: PLC0415

    rows = {
        f"query_{number}": {
            "class": "H", "state": "WAITING", "waiting": number, "mean_response_s": 0.1 + number,
            "p95_response_s": 0.5, "results_per_s": 3.0, "lane": "driver", "stream": "sensors",
        }
        for number in range(1000)
    }  # fmt: skip
    try:
        with gate_of(3, 50.0) as gate, served(gate, lambda: None), browser() as chromium:
            page = chromium.new_page()
            page.goto(Control.read(gate.state).signed_in())
            page.get_by_text("live", exact=True).wait_for()
            paint_s = page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
            )
            updates_s = page.evaluate(UPDATES, rows)
    except BaseException as error:  # pytest's skip is no Exception
        if type(error).__name__ != "Skipped":
            raise
        return {"browser": str(error)}
    return {"first_paint_s": paint_s, "update_s": updates_s}


UPDATES = """async (rows) => {
  const { queriesView } = await import("./page/files/queries.js");
  const view = queriesView();
  document.getElementById("main").replaceChildren(view.node);
  const state = { queries: rows, classes: { H: {} } };
  view.update(state);
  const seconds = [];
  for (let turn = 0; turn < 20; turn += 1) {
    for (const row of Object.values(rows)) {
      row.waiting += 1;
      row.mean_response_s *= 1.01;
      row.results_per_s += 0.1;
    }
    const began = performance.now();
    view.update(state);
    document.body.getBoundingClientRect();
    seconds.push((performance.now() - began) / 1000);
    await new Promise(requestAnimationFrame);
  }
  return seconds;
}"""


def shown(figures: dict[str, Any]) -> bool:
    """Print the figures beside their bars; return True if one is missed."""
    missed = False
    without = [minute for minute in figures["minutes"] if not minute["clients"]]
    with_clients = [minute for minute in figures["minutes"] if minute["clients"]]
    for name in CLASSES:
        usual = [minute["median_response_s"][name] for minute in without]
        watched = median(minute["median_response_s"][name] for minute in with_clients)
        change = watched / median(usual) - 1 if median(usual) else 0.0
        holds = abs(change) <= MOST_CHANGE or min(usual) <= watched <= max(usual)
        missed |= not holds
        print(f"class {name}: median {median(usual):.3f} s without, {watched:.3f} s with clients,"
              f" {change:+.1%}{'' if holds else ', missed'}")  # fmt: skip
    cpu = max(minute["cpu"] for minute in with_clients)
    missed |= cpu > MOST_CPU
    print(f"CPU of the server's threads: {cpu:.2%} of a core, bar {MOST_CPU:.0%}")
    if "first_paint_s" in figures:
        update_s = median(figures["update_s"])
        missed |= figures["first_paint_s"] > MOST_PAINT_S or update_s > MOST_UPDATE_S
        print(f"first paint {figures['first_paint_s']:.2f} s, bar {MOST_PAINT_S:g} s;"
              f" an update of 1 000 rows {update_s * 1000:.0f} ms, bar 50 ms")  # fmt: skip
    else:
        print(figures["browser"])
    return missed


if __name__ == "__main__":
    sys.exit(main())
