"""STATE/calls.json: what a run remembers of its calls, so that `why` answers after its end."""

import base64
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path as File
from typing import Any

from headgate.access import PRIVATE
from headgate.errors import HeadgateError
from headgate.model.query import QueryClass
from headgate.policies.interface import Ranking
from headgate.runtime.live.run_names import Members
from headgate.runtime.live.why import why
from headgate.runtime.policy_text import Spelled
from headgate.runtime.run.call_log import CallLog

log = logging.getLogger("headgate")

FILE = "calls.json"


def save_calls(state: File, call_log: CallLog, members: Members) -> None:
    """Write what a run that has ended remembers of its calls."""
    data = {"members": _members_data(members), "calls": call_log.to_dict(_encoded)}
    try:
        PRIVATE.write(state / FILE, json.dumps(data, separators=(",", ":")).encode())
    except OSError as error:
        log.warning("%s could not be written: %s", FILE, error)


def past_why(state: File, name: str, at_s: float | None = None) -> dict[str, Any] | None:
    """Return `why` of a query from what the last run has left; None if it has left nothing."""
    calls = read_calls(state)
    return None if calls is None else why(*calls, name, at_s, None)


def read_calls(state: File) -> tuple[CallLog, Members] | None:
    """Return what the last run of a state directory remembers; None if it has left nothing."""
    try:
        data = json.loads((state / FILE).read_text())
    except (OSError, ValueError):
        return None
    members = data["members"]
    return CallLog.from_dict(data["calls"], base64.b64decode, cache(_ranking)), Members(
        members["ids"],
        {int(number): name for number, name in members["names"].items()},
        {name: QueryClass(**values) for name, values in members["classes"].items()},
        {int(number): name for number, name in members["segments"].items()},
        members["streams"],
        {int(stream): unit for stream, unit in members["producers"].items()},
        {int(stream): tuple(sources) for stream, sources in members["sources"].items()},
    )


def _members_data(members: Members) -> Mapping[str, Any]:
    return {
        "ids": dict(members.ids), "names": dict(members.names), "segments": dict(members.segments),
        "classes": {name: asdict(entry) for name, entry in members.classes.items()},
        "streams": list(members.streams), "producers": dict(members.producers),
        "sources": dict(members.sources),
    }  # fmt: skip


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _ranking(policy: str) -> Ranking | None:
    """Return the policy that ranked units, from its text; None if it is not registered here."""
    try:
        return Spelled(policy).make().ranking(0.0)
    except HeadgateError:
        return None
