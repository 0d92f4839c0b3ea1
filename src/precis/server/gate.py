"""What every request passes before the application sees it: host, key, rate, size; and what every answer carries.

Everything needs a key but the exact paths in `OPEN`, so that a path written in another way opens nothing.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from precis.server.keys import Keys, Rates
from precis.server.limits import Limits, Refused
from precis.server.logs import LOG, fault
from precis.server.metrics import Metrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = frozenset({"/", "/page.css", "/page.js", "/health", "/ready", "/openapi.json"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_DRAINED_FOR = 2.0  # seconds in which the rest of a refused body is read, so that its sender sees the answer
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


def error_body(refused: Refused) -> dict[str, Any]:
    """The body of an error, in the shape that OpenAI's clients read."""
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


class Gate:
    """ASGI middleware around the application.

    Args:
        keys: who may use it; if None, anybody who calls the host by a name in `hosts`.
        hosts: names of this host that a request without a key may use, so that no page of another site reaches it.
        routes: paths that metrics and logs may name.
    """

    def __init__(
        self,
        app: App,
        *,
        keys: Keys | None,
        hosts: frozenset[str],
        limits: Limits,
        metrics: Metrics,
        routes: frozenset[str],
    ) -> None:
        self._app, self._keys, self._hosts, self._limits = app, keys, hosts, limits
        self._metrics, self._routes = metrics, routes
        self._rates = Rates(limits.per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no web sockets here
        request = _Request(scope, receive, send, self._limits.body)
        started, name = time.monotonic(), "-"
        try:
            name = self._check(request)
            await self._app(scope, request.receive, request.send)
            if request.too_large:
                raise _too_large(self._limits.body)
        except Refused as refused:
            await request.refuse(refused)
        except Exception as error:
            fault(error)
            await request.refuse(Refused(500, "internal_error", "the server failed; its log says why"))
        finally:
            seconds = time.monotonic() - started
            route = scope["path"] if scope["path"] in self._routes else "other"
            self._metrics.request(route, request.status, seconds)
            LOG.info(
                "request",
                extra={
                    "fields": {
                        "id": request.id,
                        "key": name,
                        "route": route,
                        "status": request.status,
                        "bytes_in": request.bytes_in,
                        "seconds": round(seconds, 4),
                        **scope.get("state", {}).get("facts", {}),
                    }
                },
            )

    def _check(self, request: _Request) -> str:
        """Return the name of the key that a request bears; "-" where none is needed."""
        scope = request.scope
        scope.setdefault("state", {})
        scope["state"] = {**scope["state"], "id": request.id}
        key = None
        if self._keys is None:
            self._check_host(request)
        elif scope["path"] not in OPEN:
            key = self._keys.find(request.headers.get(b"authorization", b""))
            if key is None:
                raise Refused(401, "invalid_api_key", "this needs a key: Authorization: Bearer KEY")
        if key is not None and (seconds := self._rates.wait(key.name)):
            raise Refused(
                429,
                "rate_limit_exceeded",
                f"this key may ask {self._limits.per_minute} times a minute",
                retry_after=seconds,
            )
        length = request.headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18:
            raise Refused(400, "bad_length", "Content-Length is not a number of bytes")
        if int(length) > self._limits.body:
            raise _too_large(self._limits.body)
        return "-" if key is None else key.name

    def _check_host(self, request: _Request) -> None:
        host = request.headers.get(b"host", b"").decode("latin-1")
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        if name.lower() not in self._hosts:
            raise Refused(403, "unknown_host", "without keys this server answers to its own address alone")
        origin = request.headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2].lower() != host.lower():
            raise Refused(403, "other_origin", "without keys this server answers to its own page alone")


def _too_large(limit: int) -> Refused:
    return Refused(413, "body_too_large", f"a request has at most {limit:,} bytes here")


class _Request:
    """One request: counts its bytes, and adds what every answer carries."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        self.scope, self._receive, self._send, self._limit = scope, receive, send, limit
        self.id = uuid.uuid4().hex
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.status = self.bytes_in = 0
        self._begun = self.too_large = self._refused = False

    async def receive(self) -> Message:
        """The next part of the body, as long as it is not too large."""
        message = await self._receive()
        self.bytes_in += len(message.get("body", b""))
        if self.bytes_in > self._limit:
            self.too_large = True
            raise _too_large(self._limit)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer; not what the application makes of a body that it could not read."""
        if self.too_large and not self._refused:
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

    async def refuse(self, refused: Refused) -> None:
        """Answer with an error, if nothing was answered yet."""
        if self._begun:
            return
        self._refused = True
        body = json.dumps(error_body(refused)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if refused.retry_after is not None:
            headers.append((b"retry-after", str(refused.retry_after).encode()))
        if refused.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if refused.status == 413:
            headers.append((b"connection", b"close"))
        await self.send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": True})
        if refused.status == 413:
            await self._drain()
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _drain(self) -> None:
        """Read what is still being sent: a connection closed at once would take the answer with it."""
        until = time.monotonic() + _DRAINED_FOR
        while time.monotonic() < until:
            message = await self._receive()
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return
