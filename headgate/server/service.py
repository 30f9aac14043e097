"""The HTTP service of the control API of one Headgate, in its own thread."""

import os
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import uvicorn
from fastapi import Body, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from headgate.access import sentence_of
from headgate.errors import HeadgateError, RequestRefused, UnknownName
from headgate.runtime import Headgate
from headgate.server import control
from headgate.server.control import Control
from headgate.server.limits import BACKLOG, HEADER_BYTES, Connection, LimitedBody

Text = Annotated[str, Body(embed=True)]
WITHOUT_TOKEN = {"/health": "healthy", "/ready": "ready"}
"""What supervisors ask, and the key of the answer that decides between the codes 200 and 503."""

AT_ANY_TIME = {("GET", "/queries"), ("POST", "/stop")}
"""Requests that are answered even while the run is starting."""


def control_app(gate: Headgate, token: str, stop: Callable[[], None]) -> FastAPI:
    """Return the FastAPI application.

    Args:
        token: the token that every request must send.
        stop: called when a request asks to end the run.
    """
    app = FastAPI(openapi_url=None)
    turn = threading.Lock()
    app.add_middleware(LimitedBody)

    @app.middleware("http")
    async def check_token(
        request: Request, go_on: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        if request.method == "GET" and request.url.path in WITHOUT_TOKEN:
            return await go_on(request)
        authorization = request.headers.get("authorization", "")
        if not secrets.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            return _refusal(
                401, "the token is missing or wrong.\nFix: send the header `Authorization: Bearer"
                f" TOKEN` with the token of {control.FILE} in the state directory",
                close=True,
            )  # fmt: skip
        if not gate.running and (request.method, request.url.path) not in AT_ANY_TIME:
            return _refusal(
                503, "the run is starting: its queries are being rehearsed.\nFix: ask again when"
                " `headgate status` shows them",
            )  # fmt: skip
        return await go_on(request)

    @app.exception_handler(HeadgateError)
    async def refused(request: Request, error: HeadgateError) -> Response:
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
        answer = gate.health()
        return JSONResponse(answer, 200 if answer[WITHOUT_TOKEN[request.url.path]] else 503)

    @app.get("/queries")
    def status() -> dict[str, Any]:
        return gate.status()

    @app.get("/queries/{name}")
    def explain(name: str) -> dict[str, Any]:
        return gate.explanation(name).to_dict()

    @app.patch("/queries/{name}")
    def set_query(name: str, change: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        with turn:
            return gate.change_query(name, change)

    @app.get("/network")
    def network() -> dict[str, Any]:
        return gate.drawing().to_dict()

    @app.get("/report")
    def report() -> dict[str, Any]:
        return gate.report().to_dict()

    @app.post("/add")
    def add(
        fragment: Annotated[dict[str, Any], Body()], where: str = "fragment"
    ) -> dict[str, list[str]]:
        with turn:
            return {"added": gate.add(fragment, where)}

    @app.delete("/queries/{name}")
    def drop_query(name: str) -> dict[str, str]:
        with turn:
            gate.drop_query(name)
        return {"dropped": name}

    @app.post("/queries/{name}/restart")
    def restart(name: str) -> dict[str, str]:
        with turn:
            gate.restart_query(name)
        return {"restarted": name}

    @app.post("/queries/{name}/pause")
    def pause(name: str) -> dict[str, str]:
        with turn:
            gate.pause_query(name)
        return {"paused": name}

    @app.post("/queries/{name}/resume")
    def resume(name: str) -> dict[str, str]:
        with turn:
            gate.resume_query(name)
        return {"resumed": name}

    @app.put("/queries/{name}/sql")
    def alter(
        name: str, sql: Text, start_from: Annotated[str | None, Body(alias="from")] = None
    ) -> dict[str, str | int]:
        with turn:
            version = gate.alter_query(name, sql=sql, start_from=start_from)
        return {"altered": name, "version": version}

    @app.delete("/streams/{name}")
    def drop_stream(name: str) -> dict[str, str]:
        with turn:
            gate.drop_stream(name)
        return {"dropped": name}

    @app.put("/policy")
    def set_policy(policy: Text) -> dict[str, str]:
        with turn:
            gate.set_policy(policy)
            return {"policy": gate.policy_in_charge()}

    @app.put("/specification")
    def set_specification(
        specification: Annotated[str | list[dict[str, Any]], Body(embed=True)],
    ) -> dict[str, Any]:
        with turn:
            gate.set_specification(specification)
        return {"specification": specification}

    @app.post("/stop")
    def end() -> dict[str, bool]:
        stop()
        return {"stopping": True}

    return app


@contextmanager
def served(gate: Headgate, stop: Callable[[], None]) -> Iterator[Control]:
    """Serve a Headgate on a free loopback port, also while it is starting; yield the address.

    The file `control.json` stays until `control.remove`. A client that waits for the end of the run
    waits until the file is gone, so it is removed last.
    """
    token = secrets.token_urlsafe(32)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            control_app(gate, token, stop),
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
        )
    )
    thread = threading.Thread(
        target=server.run, args=([listener],), name="headgate-control", daemon=True
    )
    endpoint = Control(listener.getsockname()[1], token, os.getpid())
    thread.start()
    endpoint.write(gate.state)
    try:
        yield endpoint
    finally:
        server.should_exit = True
        thread.join(10.0)
        listener.close()


def _refusal(code: int, message: str, *, close: bool = False, **more: object) -> JSONResponse:
    """Return an answer that is an error.

    Args:
        close: whether to close the connection, without the rest of the request.
    """
    text = message.encode(errors="replace").decode()  # JSON can spell what UTF-8 cannot
    headers = {"Connection": "close"} if close else None
    return JSONResponse({"error": text, **more}, status_code=code, headers=headers)
