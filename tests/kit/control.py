"""Requests to the run of the fixture `gate` of tests/server."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from headgate.server import Client, Control

HOT = "SELECT location, ts FROM sensors WHERE temperature > 35"
ALL = "SELECT temperature FROM sensors"


def row(client: Client, query: str) -> dict[str, Any]:
    """Return the row of a query in the status."""
    return next(entry for entry in client.status()["queries"] if entry["query"] == query)


def answer(control: Control, path: str, token: str | None, **more: Any) -> tuple[int, Any]:
    """Send a request; return the status code and the answer."""
    headers = {"Content-Type": "application/json"}
    headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urlopen(Request(control.address + path, headers=headers, **more)) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)
