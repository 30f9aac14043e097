"""The requests that change a run. Each is logged with its time and origin; most can be undone."""

import threading
import time
from typing import Annotated, Any

from fastapi import Body, FastAPI, Request

from headgate.errors import RequestRefused
from headgate.policies.amos import Amos
from headgate.runtime import Change, Headgate

Text = Annotated[str, Body(embed=True)]
Rows = str | list[dict[str, Any]]


def add_changes(app: FastAPI, gate: Headgate) -> None:
    """Add the requests that change a run; one is made after the other."""
    turn = threading.Lock()

    def note(request: Request, kind: Any, **values: Any) -> Change:
        return gate.changes.note(time.time(), _origin(request), kind, **values)

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
            gone: list[str] = []
            try:
                kind, name = _undo(gate, change, gone)
            except Exception:
                if gone:  # a part of an addition; the next start must know
                    note(request, "drop", name=", ".join(gone))
                raise
            values = {"name": name, "before": change.after, "after": change.before}
            note(request, kind, **values, undoes=number)
            return {"undone": number}

    @app.patch("/queries/{name}")
    def set_query(
        name: str, change: Annotated[dict[str, Any], Body()], request: Request
    ) -> dict[str, Any]:
        """Change class, weight, deadline, QoS graph or `on_error` of a query."""
        with turn:
            before = gate.values_of(name)
            answer = gate.change_query(name, change)
            values = {key: [before[key], answer[key]] for key in change}
            note(
                request, "query", name=name, before={key: was for key, (was, _) in values.items()},
                after={key: now for key, (_, now) in values.items()},
            )  # fmt: skip
            return answer

    @app.post("/add")
    def add(
        fragment: Annotated[dict[str, Any], Body()], request: Request, where: str = "fragment"
    ) -> dict[str, list[str]]:
        """Add streams, views and queries, written as in a pipeline file: all of them or none."""
        with turn:
            try:
                added = gate.add(fragment, where)
            except RequestRefused as refused:
                if refused.added:
                    note(request, "add", name=", ".join(refused.added), after=fragment)
                raise
            note(request, "add", name=", ".join(added), after=fragment)
            return {"added": added}

    @app.delete("/queries/{name}")
    def drop_query(name: str, request: Request) -> dict[str, str]:
        """Drop a query; its results stay."""
        with turn:
            gate.drop_query(name)
            note(request, "drop", name=name)
        return {"dropped": name}

    @app.delete("/streams/{name}")
    def drop_stream(name: str, request: Request) -> dict[str, str]:
        """Drop a stream that no query reads."""
        with turn:
            gate.drop_stream(name)
            note(request, "drop stream", name=name)
        return {"dropped": name}

    @app.post("/queries/{name}/restart")
    def restart(name: str, request: Request) -> dict[str, str]:
        """Start a query again where it stands."""
        with turn:
            gate.restart_query(name)
            note(request, "restart", name=name)
        return {"restarted": name}

    @app.post("/queries/{name}/pause")
    def pause(name: str, request: Request) -> dict[str, str]:
        """Pause a query, also in later runs."""
        with turn:
            gate.pause_query(name)
            note(request, "pause", name=name)
        return {"paused": name}

    @app.post("/queries/{name}/resume")
    def resume(name: str, request: Request) -> dict[str, str]:
        """Resume a query that is paused or stopped."""
        with turn:
            gate.resume_query(name)
            note(request, "resume", name=name)
        return {"resumed": name}

    @app.put("/queries/{name}/sql")
    def alter(
        name: str,
        sql: Text,
        request: Request,
        start_from: Annotated[str | None, Body(alias="from")] = None,
    ) -> dict[str, str | int]:
        """Give a query another text, its next version."""
        with turn:
            before = gate.explanation(name).sql
            version = gate.alter_query(name, sql=sql, start_from=start_from)
            note(request, "sql", name=name, before=before, after=sql)
        return {"altered": name, "version": version}

    @app.put("/policy")
    def set_policy(policy: Text, request: Request) -> dict[str, str]:
        """Put another policy in charge."""
        with turn:
            before = gate.policy_text
            gate.set_policy(policy)
            note(request, "policy", before=before, after=gate.policy_text)
            return {"policy": gate.policy_in_charge()}

    @app.post("/policy/library")
    def add_policy(policy: Text, request: Request) -> dict[str, str]:
        """Add a policy to those among which `amos` chooses, until the run ends."""
        with turn:
            gate.add_policy(policy)
            note(request, "library", name=policy)
        return {"added": policy}

    @app.put("/specification")
    def set_specification(
        specification: Annotated[Rows, Body(embed=True)], request: Request
    ) -> dict[str, Any]:
        """Change what `amos` is asked for."""
        with turn:
            policy = gate.policy
            before = str(policy.specification) if isinstance(policy, Amos) else None
            gate.set_specification(specification)
            note(request, "specification", before=before, after=specification)
        return {"specification": specification}


def _undo(gate: Headgate, change: Change, gone: list[str]) -> tuple[str, str]:
    """Undo a change; return the kind and the name of the change that this is.

    Args:
        gone: gets the names of what is dropped, one after the other.
    """
    name = change.name
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
            return "resume", name
        case "resume":
            gate.pause_query(name)
            return "pause", name
        case "add":
            queries = {query.name for query in gate.queries}
            for added in reversed(name.split(", ")):
                if added in queries:
                    gate.drop_query(added)
                else:
                    gate.drop_stream(added)
                gone.append(added)
            return "drop", name
    return change.kind, name


def _origin(request: Request) -> str:
    """Return who asks: a browser sends headers that nothing else does."""
    who = "page" if "sec-fetch-mode" in request.headers else "command"
    return f"{who} at {request.client.host if request.client else '?'}"
