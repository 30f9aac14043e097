"""Replays of the run's own recording under other policies, in a process of low priority."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path as File
from typing import Annotated, Any

from fastapi import Body, FastAPI

from headgate.errors import RequestRefused
from headgate.runtime import Headgate, Spelled

MOST_POLICIES = 8
SIMULATING = "simulating "
"""How `headgate replay` begins the line in which it names the policy whose turn it is."""


class WhatIf:
    """One replay at a time, and the result of the last one.

    Args:
        state: the state directory with the recording.
    """

    def __init__(self, state: File) -> None:
        self._state, self._lock = state, threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._asked: dict[str, Any] = {}
        self._done, self._error, self._current = 0, "", ""
        self._result: dict[str, Any] | None = None

    def start(self, policies: Sequence[str], minutes: float | None) -> None:
        """Begin a replay.

        Raises:
            RequestRefused: one is under way already.
        """
        with self._lock:
            if self._process is not None:
                raise RequestRefused(
                    message="a replay is under way.\nFix: wait for it, or cancel it"
                )
            self._asked = {"policies": list(policies), "minutes": minutes}
            self._done, self._error, self._current, self._result = 0, "", "", None
            low = ["nice", "-n", "19"] if shutil.which("nice") else []
            words = [sys.executable, "-m", "headgate.cli", "replay", str(self._state), "--json"]
            words += ["--policy", ",".join(policies)]
            words += [] if minutes is None else ["--last", f"{minutes:g}"]
            self._process = process = subprocess.Popen(
                [*low, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**os.environ, "COLUMNS": "1000"},
            )  # fmt: skip
        threading.Thread(
            target=self._read, args=(process,), name="headgate-what-if", daemon=True
        ).start()

    def cancel(self) -> None:
        """End the replay that is under way, if any."""
        with self._lock:
            if self._process is not None:
                self._error = "cancelled"
                self._process.kill()

    def to_dict(self) -> dict[str, Any]:
        """Return how far the replay is, and the result of the last one."""
        return {
            **self._asked, "running": self._process is not None, "current": self._current,
            "done": max(0, self._done - 1) if self._process is not None else self._done,
            "of": len(self._asked.get("policies", ())) + 1, "error": self._error,
            "result": self._result,
        }  # fmt: skip

    def _read(self, process: subprocess.Popen[str]) -> None:
        with process:  # closes its pipes
            output, last = self._output(process)
            code = process.wait()
        with self._lock:
            self._process = None
            if code == 0:
                self._result = condensed(json.loads(output))
            elif not self._error:
                self._error = last.strip() or f"the replay ended with code {code}"

    def _output(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        """Return what a process prints, and what it says of errors; note its progress."""
        assert process.stdout is not None
        assert process.stderr is not None
        output: list[str] = []
        reader = threading.Thread(target=lambda: output.append(process.stdout.read()))  # type: ignore[union-attr]
        reader.start()
        last = ""
        for line in process.stderr:
            if line.startswith(SIMULATING):
                self._done, self._current = self._done + 1, line.removeprefix(SIMULATING).strip()
            elif line.strip():
                last = f"{last}{line}"
        reader.join()
        return output[0], last


def condensed(replay: dict[str, Any]) -> dict[str, Any]:
    """Return what a page shows of a replay: classes and queries of each report."""
    reports = [replay["measured"], *replay["reports"]]
    return {
        "reports": [
            {"policy": report["policy"],
             "total": _figures(report["total"]),
             "classes": {line["name"]: _figures(line) for line in report["classes"]},
             "queries": {line["name"]: line["response_s"]["mean"] for line in report["queries"]}}
            for report in reports
        ],
        "calibration": replay["calibration"],
        "holds": replay["holds"],
    }  # fmt: skip


def _figures(line: dict[str, Any]) -> dict[str, Any]:
    response_s = line["response_s"]
    return {
        "results": response_s["count"], "mean_s": response_s["mean"], "p95_s": response_s["p95"],
        "slowdown": line["slowdown"]["mean"],
    }  # fmt: skip


def add_what_if(app: FastAPI, gate: Headgate, what_if: WhatIf) -> None:
    """Add the requests about replays."""

    @app.get("/what-if")
    def progress() -> dict[str, Any]:
        """Return how far the replay is, and the result of the last one."""
        return {**what_if.to_dict(), "recorded": gate.settings.record}

    @app.post("/what-if")
    def begin(
        policies: Annotated[list[str], Body()], minutes: Annotated[float | None, Body(gt=0)] = None
    ) -> dict[str, Any]:
        """Replay this run's recording under policies, also the one that ran.

        The report is that of the last `minutes`, or of the whole run.
        """
        if not gate.settings.record:
            raise RequestRefused(
                message="this run is not recorded.\nFix: start it with `headgate run --record`, or"
                " write `record: true` into the pipeline file"
            )
        texts = list(dict.fromkeys(Spelled(text).text for text in policies))
        if not 1 <= len(texts) <= MOST_POLICIES:
            raise RequestRefused(message=f"choose 1 to {MOST_POLICIES} policies")
        what_if.start(texts, minutes)
        return what_if.to_dict()

    @app.delete("/what-if")
    def cancel() -> dict[str, bool]:
        """End the replay that is under way."""
        what_if.cancel()
        return {"cancelled": True}
