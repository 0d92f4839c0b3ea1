"""One request and its answer: limits on the size and time of the body, and headers of every answer."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from precis.server.limits import ApiError, Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_DRAINED_FOR = 2.0  # seconds for reading the rest of a refused body, so that its sender sees the answer
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
]


def error_body(refused: ApiError) -> dict[str, Any]:
    """Return the body of an error in OpenAI's format."""
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = "server_error" if refused.status >= 500 else kinds.get(refused.status, "invalid_request_error")
    return {
        "error": {
            "message": refused.message,
            "type": kind,
            "param": refused.param,
            "code": refused.code,
        }
    }


def body_too_large(limit: int) -> ApiError:
    """Return the error for a body above the limit."""
    return ApiError(413, "body_too_large", f"the body exceeds {limit:,} bytes; send a shorter one")


class Room:
    """Memory budget for the bodies of all requests together.

    Args:
        size: bytes.
    """

    def __init__(self, size: int) -> None:
        self._left = size

    def take(self, count: int) -> bool:
        """Take `count` bytes; return False if fewer are left."""
        if count > self._left:
            return False
        self._left -= count
        return True

    def give(self, count: int) -> None:
        """Give bytes back."""
        self._left += count


class Exchange:
    """One request: counts its bytes, stops a body that is too large or too slow, and answers with errors.

    Attributes:
        id: its name in answers and logs.
        stopped: the reason for not reading the whole body, if any.
        status: HTTP status of the answer; 0 before there is one.
        bytes_in: bytes of the body so far.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits, room: Room) -> None:
        self.scope, self._receive, self._send, self._limits, self._room = scope, receive, send, limits, room
        self.id = uuid.uuid4().hex
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.most = limits.body_of(self.headers.get(b"content-type", b""))  # bytes of the body
        self.stopped: ApiError | None = None
        self.status = self.bytes_in = 0
        self._held = 0  # bytes of the room
        self._until = asyncio.get_running_loop().time() + limits.seconds
        self._begun = self._refused = self._complete = False

    async def receive(self) -> Message:
        """Receive the next part of the body, or after its end the client's disconnect.

        Raises:
            Refused: if the body is too large or too slow, or its bytes exceed the room.
        """
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            problem = f"the body did not arrive within {self._limits.seconds:g} seconds"
            raise self._stop(ApiError(408, "body_too_slow", problem)) from None
        self._complete = not message.get("more_body", False)
        count = len(message.get("body", b""))
        self.bytes_in += count
        if self.bytes_in > self.most:
            raise self._stop(body_too_large(self.most))
        if not self._room.take(count):
            problem = "the bodies of other requests leave no room for this one; try again later"
            raise self._stop(ApiError(503, "bodies_full", problem, retry_after=5))
        self._held += count
        return message

    def _stop(self, refused: ApiError) -> ApiError:
        self.stopped = refused
        return refused

    async def send(self, message: Message) -> None:
        """Send a part of the answer; drop the application's answer to a body that was stopped."""
        if self.stopped is not None and not self._refused:
            return
        if message["type"] == "http.response.start":
            self._begun = True
            self.status = message["status"]
            own = {name for name, _ in message.get("headers", [])}
            message["headers"] = [
                *message.get("headers", []),
                *(pair for pair in _HEADERS if pair[0] not in own),
                (b"x-request-id", self.id.encode()),
            ]
        await self._send(message)

    async def refuse(self, refused: ApiError) -> None:
        """Answer with an error, if no answer has started."""
        if self._begun:
            return
        self._refused = True
        body = json.dumps(error_body(refused)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if refused.retry_after is not None:
            headers.append((b"retry-after", str(refused.retry_after).encode()))
        if refused.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        unread = self.stopped is not None or refused.status == 413
        if unread:
            headers.append((b"connection", b"close"))
        await self.send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": True})
        if (
            unread and not self._complete and b"expect" not in self.headers
        ):  # a client that expects 100-continue sends nothing yet
            await self._drain()
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _drain(self) -> None:
        """Read the rest of the body, since closing the connection at once would lose the answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAINED_FOR):
                while (await self._receive()).get("more_body", False):  # a disconnect has none
                    pass

    def end(self) -> None:
        """Give back the room of the body."""
        self._room.give(self._held)
        self._held = 0
