"""One request and its answer: limits on the size and time of its body."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from precis.server.limits import ApiError, Limits
from precis.server.listener import page_headers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_DRAINED_FOR = 2.0  # seconds for reading the rest of a refused body, so that its sender sees the answer
_PACE = 64 << 20  # bytes a second of all bodies of a client; a gigabyte costs the answering thread a second
_CROWDED = 1.0  # seconds that the bodies of a client wait when one of them had to give way to another
_HEADERS = [(name.encode(), value.encode()) for name, value in page_headers().items()]


def error_body(refused: ApiError) -> dict[str, Any]:
    """Return the body of an error in OpenAI's format."""
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = "server_error" if refused.status >= 500 else kinds.get(refused.status, "invalid_request_error")
    return {"error": {"message": refused.message, "type": kind, "param": refused.param, "code": refused.code}}


def note_code(scope: Scope, refused: ApiError) -> None:
    """Keep the code of an error for the log."""
    state = scope.setdefault("state", {})
    state["facts"] = {**state.get("facts", {}), "code": refused.code}


def body_too_large(limit: int) -> ApiError:
    """Return the error for a body above the limit."""
    return ApiError(413, "body_too_large", f"the body exceeds {limit:,} bytes; send a shorter one")


def _no_room() -> ApiError:
    problem = "the bodies of other requests leave no room for this one; try again later"
    return ApiError(503, "bodies_full", problem, retry_after=5)


class Room:
    """Memory budget for the bodies of all requests together.

    A body that is not whole gives its room to others when it is short: the one that began first, of the client whose
    unfinished bodies hold the most. So only whole bodies can keep a request out.

    Args:
        size: bytes.
    """

    def __init__(self, size: int) -> None:
        self._left = size
        self._unfinished: dict[Exchange, None] = {}  # in the order of their beginnings
        self._free_at: dict[str, float] = {}  # the time at which a client may send more

    def take(self, count: int, taker: Exchange) -> bool:
        """Take `count` bytes; return False if fewer are left, or `taker` itself had to give up its room."""
        while count > self._left and (victim := self._victim()) is not None:
            victim.give_up()
            if victim.client == taker.client:  # else it would fill the room again at once
                free = time.monotonic() + _CROWDED
                self._free_at[taker.client] = max(self._free_at.get(taker.client, 0.0), free)
            if victim is taker:
                return False
        if count > self._left:
            return False
        self._left -= count
        self._unfinished.setdefault(taker)
        return True

    def whole(self, taker: Exchange) -> None:
        """Note that the body is whole and keeps its room."""
        self._unfinished.pop(taker, None)

    def give(self, count: int, taker: Exchange) -> None:
        """Give bytes back."""
        self._unfinished.pop(taker, None)
        self._left += count

    async def pace(self, count: int, client: str) -> None:
        """Wait after `count` bytes of an unfinished body, so that the bodies of a client leave time for others."""
        now = time.monotonic()
        self._free_at = {one: free for one, free in self._free_at.items() if free > now}
        self._free_at[client] = self._free_at.get(client, now) + count / _PACE
        await asyncio.sleep(self._free_at[client] - now)

    def _victim(self) -> Exchange | None:
        held: Counter[str] = Counter()
        for one in self._unfinished:
            held[one.client] += one.held
        most = max(held, key=held.__getitem__, default=None)
        return next((one for one in self._unfinished if one.client == most), None)


class Exchange:
    """One request: counts its bytes, stops a body that is too large or too slow, and answers with errors.

    Attributes:
        id: its name in answers and logs.
        key: the name of its key; "-" if it has none.
        stopped: the reason for not reading the whole body, if any.
        status: HTTP status of the answer; 0 before there is one.
        bytes_in: bytes of the body so far.
        held: bytes of the room.
        client: the name of its key, or the address that it comes from.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits, room: Room) -> None:
        self.scope, self._receive, self._send, self._limits, self._room = scope, receive, send, limits, room
        self.id = uuid.uuid4().hex
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.most = limits.body_of(self.headers.get(b"content-type", b""))  # bytes of the body
        self.stopped: ApiError | None = None
        self.status = self.bytes_in = 0
        self.held = 0
        self.key = "-"
        self.client = str((scope.get("client") or ("",))[0])
        self._since = asyncio.get_running_loop().time()
        self._waiting: asyncio.Timeout | None = None
        self._gave_up = False
        self._begun = self._refused = self._complete = False

    async def receive(self) -> Message:
        """Receive the next part of the body, or after its end the client's disconnect.

        Raises:
            ApiError: if the body is too large or too slow, or its bytes exceed the room.
        """
        if self._complete:
            return await self._receive()
        message = await self._part()
        self._complete = not message.get("more_body", False)
        count = len(message.get("body", b""))
        self.bytes_in += count
        if self.bytes_in > self.most:
            raise self._stop(body_too_large(self.most))
        if not self._room.take(count, self):
            raise self._stop(_no_room())
        self.held += count
        if self._complete:
            self._room.whole(self)
        else:
            await self._room.pace(count, self.client)
        return message

    async def _part(self) -> Message:
        """Receive a part of the body in its time; see `Limits.body_due`."""
        if self._gave_up:
            raise self._stop(_no_room())
        now = asyncio.get_running_loop().time()
        due = min(self._since + self._limits.body_due(self.bytes_in), now + self._limits.pause)
        try:
            async with asyncio.timeout_at(due) as self._waiting:
                return await self._receive()
        except TimeoutError:
            if self._gave_up:
                raise self._stop(_no_room()) from None
            problem = f"the body stopped, or came with less than {self._limits.rate:,} bytes a second"
            raise self._stop(ApiError(408, "body_too_slow", problem)) from None
        finally:
            self._waiting = None

    def give_up(self) -> None:
        """Give back the room of a body that is not whole; its request ends with 503."""
        self._gave_up = True
        self.end()
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

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
        note_code(self.scope, refused)
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
        # a client that expects 100-continue sends nothing yet
        if unread and not self._complete and b"expect" not in self.headers:
            await self._drain()
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _drain(self) -> None:
        """Read the rest of the body, since closing the connection at once would lose the answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAINED_FOR):
                while (part := await self._receive()).get("more_body", False):  # a disconnect has none
                    await self._room.pace(len(part["body"]), self.client)

    def end(self) -> None:
        """Give back the room of the body."""
        self._room.give(self.held, self)
        self.held = 0
