"""Asks a running Headgate, which is found by its state directory."""

import json
import time
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from headgate.errors import RecoveryRefused, RequestRefused, UnknownName
from headgate.server.control import Control, nothing_runs

PATIENCE_S = 600.0
"""To add a query takes as long as it is rehearsed."""


class Client:
    """Every method is one request.

    Raises:
        RecoveryRefused: nothing runs in the state directory.
        RequestRefused: it has refused the request; the message is that of its exception.
    """

    def __init__(self, state: Path) -> None:
        self._state, self._control = state, Control.read(state)
        self._opener = build_opener(ProxyHandler({}))  # loopback, whatever proxy the user has

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", "/queries")
        return found

    def explanation(self, query: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/queries/{quote(query, safe='')}")
        return found

    def drawing(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", "/network")
        return found

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", "/report")
        return found

    def add(self, fragment: dict[Any, Any], where: str) -> list[str]:
        found: list[str] = self.ask("POST", f"/add?where={quote(where)}", fragment)["added"]
        return found

    def drop(self, name: str) -> str:
        """Drops the query of a name or, where none has it, the stream; says which it was."""
        status = self.status()
        queries = [each["query"] for each in status["queries"]]
        if name not in queries and name not in status["streams"]:
            known = [*queries, *status["streams"]]
            raise UnknownName(kind="query or stream", name=name, known=known)
        kind = "query" if name in queries else "stream"
        self.ask("DELETE", f"/{'queries' if kind == 'query' else 'streams'}/{name}")
        return kind

    def set_policy(self, text: str) -> str:
        return str(self.ask("PUT", "/policy", {"policy": text})["policy"])

    def set_specification(self, text: str) -> None:
        self.ask("PUT", "/specification", {"specification": text})

    def stop(self, timeout_s: float = 120.0) -> bool:
        """Asks for a clean stop and waits for its end; False when time ran out first."""
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
        """Gives the answer to a request."""
        request = Request(
            self._control.address + path,
            method=method,
            data=None if body is None else json.dumps(body, default=str).encode(),
            headers={
                "Authorization": f"Bearer {self._control.token}",
                "Content-Type": "application/json",
            },
        )
        try:
            with self._opener.open(request, timeout=PATIENCE_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                refusal = _refusal(error)
            if refusal is None:
                raise self._nobody(f"HTTP {error.code}") from error
            raise refusal from error
        except (URLError, OSError, HTTPException, ValueError) as error:
            raise self._nobody(getattr(error, "reason", error)) from error

    def _nobody(self, reason: object) -> RecoveryRefused:
        """Gives the error for a port where nobody, or somebody else, answers."""
        found = f"nobody who answers at {self._control.address} ({reason})"
        return nothing_runs(self._state, found)


def _refusal(error: HTTPError) -> RequestRefused | None:
    try:
        told = json.load(error)
        return RequestRefused(message=told["error"], added=told.get("added", ()))
    except (ValueError, TypeError, KeyError):
        return None  # this is no Headgate
