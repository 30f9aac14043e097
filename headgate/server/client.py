"""A client of a running Headgate, which is located by its state directory."""

import json
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import BaseHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from headgate.errors import RecoveryRefused, RequestRefused, UnknownName
from headgate.server.control import BODY_BYTES, Control, nothing_runs
from headgate.server.patches import patched

PATIENCE_S = 600.0
"""Timeout of a request. Long, since adding a query includes its rehearsal."""

HEALTH_S = 10.0
"""Timeout of the question for the health."""


class Client:
    """Requests to a running Headgate; one method per request.

    Raises:
        RecoveryRefused: nothing runs in the state directory.
        RequestRefused: Headgate has refused the request; the message is that of its exception.
    """

    def __init__(self, state: Path) -> None:
        self._state, self._control = state, Control.read(state)
        handlers: list[BaseHandler] = [ProxyHandler({})]  # no proxy: the run is on this machine
        if self._control.certificate:
            handlers.append(HTTPSHandler(context=_only(self._control.certificate)))
        self._opener = build_opener(*handlers)

    @property
    def pid(self) -> int:
        """The process of the run."""
        return self._control.pid

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.ask("GET", "/queries")
        return status

    def health(self) -> dict[str, Any]:
        """Return whether the run is healthy and ready; both are answered without the token."""
        request = Request(f"{self._control.address}/health")
        try:
            with self._opener.open(request, timeout=HEALTH_S) as answer:
                health: dict[str, Any] = json.load(answer)
        except HTTPError as error:
            with error:
                health = json.load(error)
        except (URLError, OSError, HTTPException, ValueError) as error:
            raise self._no_answer(getattr(error, "reason", error)) from error
        return health

    def explanation(self, query: str) -> dict[str, Any]:
        explanation: dict[str, Any] = self.ask("GET", f"/queries/{quote(query, safe='')}")
        return explanation

    def why(self, query: str, at_s: float | None = None) -> dict[str, Any]:
        """Return why the slowest result of a call took so long."""
        instant = "" if at_s is None else f"?at={at_s!r}"
        answer: dict[str, Any] = self.ask("GET", f"/queries/{quote(query, safe='')}/why{instant}")
        return answer

    def overviews(self) -> Iterator[dict[str, Any]]:
        """Yield what the page shows, whenever it has changed, until the run ends."""
        state: dict[str, Any] = {}
        try:
            with self._opener.open(self._request("GET", "/events"), timeout=PATIENCE_S) as lines:
                for line in lines:
                    state = patched(state, json.loads(line))
                    yield state
        except HTTPError as error:
            raise self._refused(error) from error
        except (URLError, OSError, HTTPException, ValueError) as error:
            raise self._no_answer(getattr(error, "reason", error)) from error

    def drawing(self) -> dict[str, Any]:
        drawing: dict[str, Any] = self.ask("GET", "/network")
        return drawing

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = self.ask("GET", "/report")
        return report

    def add(self, fragment: dict[Any, Any], where: str) -> list[str]:
        added: list[str] = self.ask("POST", f"/add?where={quote(where)}", fragment)["added"]
        return added

    def check(self, fragment: dict[Any, Any], where: str) -> list[str]:
        """Check what `add` would add, without adding it."""
        body = self.ask("POST", f"/check?where={quote(where)}", fragment)
        checked: list[str] = body["checked"]
        return checked

    def drop(self, name: str) -> str:
        """Drop the query of this name, or else the stream; return which of the two it was."""
        status = self.status()
        queries = [query["query"] for query in status["queries"]]
        if name not in queries and name not in status["streams"]:
            names = [*queries, *status["streams"]]
            raise UnknownName(kind="query or stream", name=name, known=names)
        kind = "query" if name in queries else "stream"
        self.ask("DELETE", f"/{'queries' if kind == 'query' else 'streams'}/{name}")
        return kind

    def repair(self, query: str, action: str) -> None:
        """Restart, pause or resume a query."""
        self.ask("POST", f"/queries/{quote(query, safe='')}/{action}")

    def alter(self, query: str, sql: str, start_from: str | None = None) -> int:
        """Give a query another text; return the number of its version."""
        body = {"sql": sql, "from": start_from}
        return int(self.ask("PUT", f"/queries/{quote(query, safe='')}/sql", body)["version"])

    def set_query(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        """Change class, weight, deadline or QoS graph of a query; return all four."""
        path = f"/queries/{quote(name, safe='')}"
        changed: dict[str, Any] = self.ask("PATCH", path, values)
        return changed

    def set_policy(self, text: str) -> str:
        return str(self.ask("PUT", "/policy", {"policy": text})["policy"])

    def add_policy(self, text: str) -> None:
        """Add a policy to the library of a running `amos`."""
        self.ask("POST", "/policy/library", {"policy": text})

    def policy_explanation(self) -> dict[str, Any]:
        """Return the policy; of `amos`, also every score, and who was in charge when, and why."""
        explanation: dict[str, Any] = self.ask("GET", "/policy")
        return explanation

    def set_specification(self, text: str) -> None:
        self.ask("PUT", "/specification", {"specification": text})

    def stop(self, timeout_s: float = 120.0) -> bool:
        """Request a clean stop and wait for its end; return False if the time runs out first."""
        self.ask("POST", "/stop")
        until_s = time.monotonic() + timeout_s
        while time.monotonic() < until_s:
            try:
                if Control.read(self._state) != self._control:
                    return True
            except RecoveryRefused:
                return True
            time.sleep(0.1)
        return False

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request and return the answer."""
        data = None if body is None else json.dumps(body, default=str).encode()
        if data is not None and len(data) > BODY_BYTES:
            raise RequestRefused(
                message=f"the request has {len(data)} bytes, but must have at most {BODY_BYTES}."
                "\nFix: send it in parts"
            )
        request = self._request(method, path, data)
        try:
            with self._opener.open(request, timeout=PATIENCE_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise self._refused(error) from error
        except (URLError, OSError, HTTPException, ValueError) as error:
            raise self._no_answer(getattr(error, "reason", error)) from error

    def _request(self, method: str, path: str, data: bytes | None = None) -> Request:
        headers = {
            "Authorization": f"Bearer {self._control.token}", "Content-Type": "application/json",
        }  # fmt: skip
        return Request(self._control.address + path, method=method, data=data, headers=headers)

    def _refused(self, error: HTTPError) -> RequestRefused | RecoveryRefused:
        """Return the refusal of a Headgate, or the error for an answer of another program."""
        with error:
            return _refusal(error) or self._no_answer(f"HTTP {error.code}")

    def _no_answer(self, reason: object) -> RecoveryRefused:
        """Return the error for a port where nothing, or another program, answers."""
        return nothing_runs(self._state, f"no answer at {self._control.address} ({reason})")


def _only(certificate: str) -> ssl.SSLContext:
    """Return a TLS context that trusts this certificate, whatever name it is for, and no other."""
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _refusal(error: HTTPError) -> RequestRefused | None:
    try:
        body = json.load(error)
        return RequestRefused(message=body["error"], added=body.get("added", ()))
    except (ValueError, TypeError, KeyError):
        return None  # the answer is not from a Headgate
