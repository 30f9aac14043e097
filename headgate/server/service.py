"""The HTTP service of the control API of one Headgate, in its own thread."""

import logging
import os
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path as File
from typing import Annotated, Any
from urllib.parse import quote

import uvicorn
from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from headgate.access import sentence_of
from headgate.errors import HeadgateError, QueryRefused, RequestRefused, UnknownName
from headgate.policies import policies
from headgate.runtime import Headgate
from headgate.server.address import Address
from headgate.server.admission import Admission
from headgate.server.change_routes import add_changes
from headgate.server.control import Control
from headgate.server.limits import BACKLOG, HEADER_BYTES, Connection, LimitedBody
from headgate.server.page_routes import add_page
from headgate.server.prometheus import RunCollector, exposition
from headgate.server.updates import Updates
from headgate.server.what_if import WhatIf, add_what_if

log = logging.getLogger("headgate.server")

HEALTH = {"/health": "healthy", "/ready": "ready"}
"""What supervisors ask, and the key of the answer that decides between the codes 200 and 503."""

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The request is refused; `error` says why and what to do."},
    401: {"description": "The token is missing or wrong."},
    403: {"description": "The host, the origin or the token does not allow it."},
    404: {"description": "There is no such query, stream or path."},
    408: {"description": "The body took too long."},
    413: {"description": "The body is too large."},
    503: {"description": "The run is starting, unhealthy, or has too many watchers."},
}

AT_ANY_TIME = {
    *(("GET", path) for path in (*HEALTH, "/queries", "/metrics", "/events")),
    *(("GET", path) for path in ("/policies", "/openapi.json")),
    ("POST", "/stop"),
}
"""Requests that are answered even while the run is starting; so is the page."""


def control_app(
    gate: Headgate,
    admission: Admission,
    stop: Callable[[], None],
    updates: Updates,
    what_if: WhatIf,
) -> FastAPI:
    """Return the FastAPI application.

    Args:
        admission: decides who is admitted.
        stop: called when a request asks to end the run.
        updates: what the streams of events send.
        what_if: makes replays.
    """
    app = FastAPI(
        title="Headgate",
        version=version("headgate"),
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
    )  # no pages that load from elsewhere
    collector = RunCollector(gate)
    app.add_middleware(LimitedBody)

    @app.middleware("http")
    async def admit(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        method, path = request.method, request.url.path
        if refusal := admission.refusal(request):
            return _refusal(*refusal, close=True)
        is_page = path == "/" or path.startswith("/page/")
        if not (gate.running or is_page or (method, path) in AT_ANY_TIME):
            return _refusal(503, _starting(gate))
        answer = await go_on(request)
        if method not in ("GET", "HEAD"):
            origin = request.client.host if request.client else "?"
            log.info("%s %s from %s: %d", method, quote(path), origin, answer.status_code)
        return answer

    @app.exception_handler(HeadgateError)
    async def refused(request: Request, error: HeadgateError) -> Response:
        if isinstance(error, QueryRefused):
            return _refusal(
                400, str(error), query=error.query, line=error.line, column=error.column
            )
        if isinstance(error, RequestRefused):
            return _refusal(400, error.message, added=error.added)
        return _refusal(404 if isinstance(error, UnknownName) else 400, str(error))

    @app.exception_handler(HTTPException)
    @app.exception_handler(404)
    @app.exception_handler(405)
    async def unknown(request: Request, error: HTTPException) -> Response:
        what = f"{request.method} {request.url.path}"
        return _refusal(error.status_code, f"{what}: {str(error.detail).lower()}.")

    @app.exception_handler(RequestValidationError)
    async def misshaped(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        return _refusal(400, f"{request.url.path}: {key} is refused: {first['msg']}.")

    @app.exception_handler(UnicodeError)
    async def garbled(request: Request, error: UnicodeError) -> Response:
        return _refusal(400, f"{request.url.path}: the body holds text that is not valid Unicode.")

    @app.exception_handler(RecursionError)
    async def nested(request: Request, error: RecursionError) -> Response:
        return _refusal(400, f"{request.url.path}: the body is nested too deep.")

    @app.exception_handler(OSError)
    async def failed(request: Request, error: OSError) -> Response:
        return _refusal(400, f"{request.url.path}: {sentence_of(error)}")

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Response:
        return _refusal(500, f"internal error: {type(error).__name__}; see headgate.log.")

    @app.get("/health")
    @app.get("/ready")
    def health(request: Request) -> JSONResponse:
        """Return whether the run is healthy and ready, as the code 200 or 503."""
        answer = gate.health()
        return JSONResponse(answer, 200 if answer[HEALTH[request.url.path]] else 503)

    @app.get("/metrics", response_class=PlainTextResponse)
    def metrics() -> Response:
        """Return all figures in the text format of Prometheus."""
        return Response(exposition(collector), media_type=CONTENT_TYPE_LATEST)

    @app.get("/events", response_class=StreamingResponse)
    async def events() -> StreamingResponse:
        """Stream the overview, then what changes in it: a JSON merge patch a line."""
        lines = updates.watch()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)

    @app.get("/policies")
    def list_policies() -> list[dict[str, Any]]:
        """Return the policies of live runs, with their parameters and when to use them."""
        return [entry.to_dict() for entry in policies().values() if "spark" in entry.engines]

    @app.get("/queries")
    def status() -> dict[str, Any]:
        """Return state and figures of all queries."""
        return gate.status()

    @app.get("/queries/{name}")
    def explain(name: str) -> dict[str, Any]:
        """Return how a query runs."""
        return gate.explanation(name).to_dict()

    @app.get("/queries/{name}/why")
    def why(
        name: str, committed_at_s: Annotated[float | None, Query(alias="at")] = None
    ) -> dict[str, Any]:
        """Return why the slowest result of a call of a query took so long."""
        return gate.why(name, committed_at_s)

    @app.get("/network")
    def network() -> dict[str, Any]:
        """Return streams, shared parts, queries and sinks."""
        return gate.drawing().to_dict()

    @app.get("/report")
    def report() -> dict[str, Any]:
        """Return the report of the run so far."""
        return gate.report().to_dict()

    @app.post("/check")
    def check(
        fragment: Annotated[dict[str, Any], Body()], where: str = "fragment"
    ) -> dict[str, list[str]]:
        """Check what `/add` would add, and add nothing."""
        return {"checked": gate.check(fragment, where)}

    @app.get("/policy")
    def explain_policy() -> dict[str, Any]:
        """Return the policy; of `amos`, also every score, and who was in charge when, and why."""
        return gate.policy_explanation()

    @app.post("/stop")
    def end() -> dict[str, bool]:
        """Ask the run to end."""
        stop()
        return {"stopping": True}

    add_changes(app, gate)
    add_what_if(app, gate, what_if)
    add_page(app)
    _describe(app)
    return app


def _describe(app: FastAPI) -> None:
    """Make the OpenAPI document say what is true here: a misshaped request is answered with 400."""
    paths = app.openapi()["paths"]
    for path, operations in paths.items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["security"] = [] if path in HEALTH else [{"token": []}]
    document = app.openapi()
    document.setdefault("components", {})["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"}
    }


@contextmanager
def served(
    gate: Headgate, stop: Callable[[], None], address: Address | None = None
) -> Iterator[Control]:
    """Serve a Headgate, also while it is starting; yield where it listens.

    The file `control.json` stays until `control.remove`. A client that waits for the end of the run
    waits until the file is gone, so it is removed last.

    Args:
        address: where to listen; by default on loopback.

    Raises:
        ConfigRefused: the port is in use, or this machine has no such address.
    """
    place = address or Address()
    tokens = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    names = frozenset(name.lower() for name in (place.host, *place.names))
    updates, what_if = Updates(gate.overview), WhatIf(gate.state)
    admission = Admission(*tokens, names, open_metrics=gate.settings.open_metrics)
    listener = place.listen()
    server = uvicorn.Server(
        uvicorn.Config(
            control_app(gate, admission, stop, updates, what_if),
            log_config=None,
            access_log=False,
            lifespan="off",
            http=Connection,
            h11_max_incomplete_event_size=HEADER_BYTES,
            timeout_keep_alive=1,
            backlog=BACKLOG,
            ws="none",
            loop="asyncio",
            timeout_graceful_shutdown=2,
            ssl_certfile=place.certificate,
            ssl_keyfile=place.key,
        )
    )
    thread = threading.Thread(
        target=server.run, args=([listener],), name="headgate-control", daemon=True
    )
    certificate = str(File(place.certificate).absolute()) if place.certificate else ""
    endpoint = Control(
        listener.getsockname()[1], tokens[0], os.getpid(), tokens[1], place.own_host, certificate
    )
    thread.start()
    endpoint.write(gate.state)
    try:
        yield endpoint
    finally:
        updates.end()
        what_if.cancel()
        server.should_exit = True
        thread.join(10.0)
        listener.close()


def _starting(gate: Headgate) -> str:
    """Return why a request has to wait: who is starting the run, and how far the start is."""
    progress = gate.status().get("starting")
    if progress is None:  # the start has ended at this moment, or the run has
        return "the run is starting or stopping.\nFix: ask again in some seconds"
    return (
        f"the run is starting: process {os.getpid()} has rehearsed {progress['rehearsed']} of"
        f" {progress['of']} queries.\nFix: ask again when `headgate status` shows them"
    )


def _refusal(code: int, message: str, *, close: bool = False, **more: object) -> JSONResponse:
    """Return an answer that is an error.

    Args:
        close: whether to close the connection, without the rest of the request.
    """
    text = message.encode(errors="replace").decode()  # JSON can spell what UTF-8 cannot
    headers = {"Connection": "close"} if close else None
    return JSONResponse({"error": text, **more}, status_code=code, headers=headers)
