"""The requests that change a run. Each is logged with its time and origin; most can be undone."""

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any, Protocol

from fastapi import Body, FastAPI, Request

from headgate.errors import RequestRefused
from headgate.policies.amos import Amos
from headgate.runtime import Change, Headgate

Text = Annotated[str, Body(embed=True)]
Rows = str | list[dict[str, Any]]


class Noted(Protocol):
    """Makes one change at a time: `with noted(request, kind, name=...) as values`."""

    def __call__(
        self, request: Request, kind: Any, **values: Any
    ) -> AbstractContextManager[dict[str, Any]]: ...


def add_changes(app: FastAPI, gate: Headgate) -> None:
    """Add the requests that change a run; one is made after the other."""
    turn = threading.RLock()

    @contextmanager
    def noted(request: Request, kind: Any, **values: Any) -> Iterator[dict[str, Any]]:
        """Log the change that the block makes, unless it is refused; the block may add values."""
        with turn:
            yield values
            gate.changes.note(time.time(), _origin(request), kind, **values)

    @app.get("/changes")
    def list_changes() -> dict[str, Any]:
        """Return all changes by request, the last one first, and what differs from the file."""
        return {"changes": gate.changes.to_list(), "differs": gate.changes.differences()}

    @app.post("/changes/{number}/undo")
    def undo(number: int, request: Request) -> dict[str, Any]:
        """Undo a change, if nothing has changed the same again since."""
        with turn:
            change = gate.changes.of_number(number)
            if change is None:
                raise RequestRefused(
                    message=f"change {number} cannot be undone: there is none, it is final, or what"
                    " it has changed was changed again.\nFix: choose one that"
                    " `GET /changes` marks with can_undo"
                )
            _undo(gate, change, request, noted)
        return {"undone": number}

    @app.patch("/queries/{name}")
    def set_query(
        name: str, change: Annotated[dict[str, Any], Body()], request: Request
    ) -> dict[str, Any]:
        """Change class, weight, deadline, QoS graph or `on_error` of a query."""
        with noted(request, "query", name=name) as values:
            before = gate.values_of(name)
            answer = gate.change_query(name, change)
            values["before"] = {key: before[key] for key in change}
            values["after"] = {key: answer[key] for key in change}
        return answer

    @app.post("/add")
    def add(
        fragment: Annotated[dict[str, Any], Body()], request: Request, where: str = "fragment"
    ) -> dict[str, list[str]]:
        """Add streams, views and queries, written as in a pipeline file: all of them or none."""
        with noted(request, "add", after=fragment) as values:
            try:
                added = gate.add(fragment, where)
            except RequestRefused as refused:
                if refused.added:  # a part of it that could not be dropped again
                    with noted(request, "add", name=", ".join(refused.added), after=fragment):
                        pass
                raise
            values["name"] = ", ".join(added)
        return {"added": added}

    @app.delete("/queries/{name}")
    def drop_query(name: str, request: Request) -> dict[str, str]:
        """Drop a query; its results stay."""
        with noted(request, "drop", name=name):
            gate.drop_query(name)
        return {"dropped": name}

    @app.delete("/streams/{name}")
    def drop_stream(name: str, request: Request) -> dict[str, str]:
        """Drop a stream that no query reads."""
        with noted(request, "drop stream", name=name):
            gate.drop_stream(name)
        return {"dropped": name}

    @app.post("/queries/{name}/restart")
    def restart(name: str, request: Request) -> dict[str, str]:
        """Start a query again where it stands."""
        with noted(request, "restart", name=name):
            gate.restart_query(name)
        return {"restarted": name}

    @app.post("/queries/{name}/pause")
    def pause(name: str, request: Request) -> dict[str, str]:
        """Pause a query, also in later runs."""
        with noted(request, "pause", name=name):
            gate.pause_query(name)
        return {"paused": name}

    @app.post("/queries/{name}/resume")
    def resume(name: str, request: Request) -> dict[str, str]:
        """Resume a query that is paused or stopped."""
        with noted(request, "resume", name=name):
            gate.resume_query(name)
        return {"resumed": name}

    @app.put("/queries/{name}/sql")
    def alter(
        name: str,
        sql: Text,
        request: Request,
        start_from: Annotated[str | None, Body(alias="from")] = None,
    ) -> dict[str, str | int]:
        """Give a query another text, its next version."""
        with noted(request, "sql", name=name, after=sql) as values:
            values["before"] = gate.explanation(name).sql
            version = gate.alter_query(name, sql=sql, start_from=start_from)
        return {"altered": name, "version": version}

    @app.put("/policy")
    def set_policy(policy: Text, request: Request) -> dict[str, str]:
        """Put another policy in charge."""
        with noted(request, "policy") as values:
            values["before"] = gate.policy_text
            gate.set_policy(policy)
            values["after"] = gate.policy_text
        return {"policy": gate.policy_in_charge()}

    @app.post("/policy/library")
    def add_policy(policy: Text, request: Request) -> dict[str, str]:
        """Add a policy to those among which `amos` chooses, until the run ends."""
        with noted(request, "library", name=policy):
            gate.add_policy(policy)
        return {"added": policy}

    @app.put("/specification")
    def set_specification(
        specification: Annotated[Rows, Body(embed=True)], request: Request
    ) -> dict[str, Any]:
        """Change what `amos` is asked for."""
        with noted(request, "specification", after=specification) as values:
            policy = gate.policy
            values["before"] = str(policy.specification) if isinstance(policy, Amos) else None
            gate.set_specification(specification)
        return {"specification": specification}


def _undo(gate: Headgate, change: Change, request: Request, noted: Noted) -> None:
    """Undo a change, and log this as a change."""
    name = change.name
    if change.kind == "add":
        # Each on its own: one that cannot be dropped does not hide that others were.
        first, *others = name.split(", ")
        for added in reversed(others):
            with noted(request, "drop", name=added):
                _drop(gate, added)
        with noted(request, "drop", name=first, undoes=change.number):
            _drop(gate, first)
        return
    opposite = {"pause": "resume", "resume": "pause"}.get(change.kind, change.kind)
    values = {"name": name, "before": change.after, "after": change.before}
    with noted(request, opposite, **values, undoes=change.number):
        match change.kind:
            case "policy":
                gate.set_policy(change.before)
            case "specification":
                gate.set_specification(change.before)
            case "query":
                gate.change_query(name, change.before)
            case "sql":
                gate.alter_query(name, sql=change.before)
            case "pause":
                gate.resume_query(name)
            case "resume":
                gate.pause_query(name)


def _drop(gate: Headgate, name: str) -> None:
    """Drop the query of a name, or else the stream."""
    if name in {query.name for query in gate.queries}:
        gate.drop_query(name)
    else:
        gate.drop_stream(name)


def _origin(request: Request) -> str:
    """Return who asks: a browser sends headers that nothing else does."""
    who = "page" if "sec-fetch-mode" in request.headers else "command"
    return f"{who} at {request.client.host if request.client else '?'}"
