"""Limits of the control API: what a connection, a request and its body may take."""

import asyncio
import resource
from typing import Any

import h11
from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.server.control import BODY_BYTES

CONNECTIONS = 64
"""Most connections at a time, or an eighth of the file descriptors that the process may open."""

HEADER_S, BODY_S = 10.0, 30.0
"""Seconds that the head of a request, and then its body, may take to arrive."""

HEADER_BYTES = 64 << 10

BACKLOG = 32
"""Connections that are accepted at once, before the first of them can be closed."""


def most_connections() -> int:
    """Return how many connections are open at most. The other descriptors are the engine's."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(CONNECTIONS, soft // 8))


class Connection(H11Protocol):
    """A connection that is closed unless the head of a request arrives in time.

    While there are too many, a new one takes the place of the one that has waited longest without
    a request. So connections that ask nothing never keep a client out.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEADER_S, transport.abort)
        if len(self.connections) > most_connections():
            waiting = [other for other in self.connections if _waits(other)]
            min(waiting, key=_deadline_of, default=self).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _waits(connection: Any) -> bool:
    return connection._deadline is not None and not connection.transport.is_closing()


def _deadline_of(connection: Any) -> float:
    return float(connection._deadline.when())


class LimitedBody:
    """An application whose requests have bodies of limited size, which arrive in limited time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        read_bytes, ends_at_s = 0, asyncio.get_running_loop().time() + BODY_S
        is_complete = False

        async def limited() -> Message:
            nonlocal read_bytes, is_complete
            if is_complete:
                return await receive()  # waits for the client to go away
            try:
                async with asyncio.timeout_at(ends_at_s):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, f"the body took longer than {BODY_S:g} s") from error
            read_bytes += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if read_bytes > BODY_BYTES:
                raise HTTPException(413, f"the body has more than {BODY_BYTES} bytes")
            return message

        await self._app(scope, limited, send)
