"""Middleware that checks the host, key, rate and size of every request, and logs every answer.

All paths need a key except the exact paths in `OPEN`, so that another spelling of a path opens nothing.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from precis.server.asgi_request import App, Exchange, Receive, Room, Scope, Send, body_too_large
from precis.server.client_keys import Keys, Rates
from precis.server.limits import ApiError, Limits, server_failed
from precis.server.listener import LOOPBACK
from precis.server.logs import LOG, fault
from precis.server.metrics import Metrics

OPEN = frozenset({"/", "/page.css", "/page.js", "/health", "/ready", "/openapi.json"})
#: Paths whose requests do not count against a key's limit.
UNCOUNTED = frozenset({"/v1/models"})


@dataclass(frozen=True, kw_only=True)
class Access:
    """The access rules of the service.

    Attributes:
        keys: keys of the clients; if None, the `Host` header must be in `hosts`, which keeps out pages of other sites.
        hosts: host names without port.
        origins: sites whose pages may send requests (CORS), as "https://example.org"; "*" for all of them.
    """

    keys: Keys | None = None
    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = frozenset()


class Gate:
    """ASGI middleware around the application.

    Args:
        routes: paths that metrics and logs may name.
    """

    def __init__(
        self, app: App, *, access: Access, limits: Limits, metrics: Metrics, routes: frozenset[str]
    ) -> None:
        self._app, self._access, self._limits = app, access, limits
        self._metrics, self._routes = metrics, routes
        self._rates, self._room = Rates(limits.per_minute), Room(limits.all_bodies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # web sockets are not supported
        request = Exchange(scope, receive, send, self._limits, self._room)
        started = time.monotonic()
        try:
            self._check(request)
            # Treat HEAD like GET; uvicorn omits the body.
            asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await self._app(asked, request.receive, request.send)
            if request.stopped is not None:
                raise request.stopped
        except ApiError as refused:
            await request.refuse(refused)
        except asyncio.CancelledError:  # uvicorn's grace period after SIGTERM is over
            problem = "the server stopped before the answer was ready"
            await request.refuse(ApiError(503, "stopping", problem, retry_after=5))
        except Exception as error:
            fault(error)
            await request.refuse(server_failed())
        finally:
            request.end()
            seconds = time.monotonic() - started
            route = scope["path"] if scope["path"] in self._routes else "other"
            self._metrics.request(route, request.status, seconds)
            fields = {
                "id": request.id, "key": request.key, "route": route, "status": request.status,
                "bytes_in": request.bytes_in, "seconds": round(seconds, 4),
                **scope.get("state", {}).get("facts", {}),
            }  # fmt: skip
            bounded = request.key == "-" and (request.status >= 400 or route in OPEN)
            LOG.info("request", extra={"fields": fields, "bounded": bounded})

    def _check(self, request: Exchange) -> None:
        """Refuse a request without a key, beyond its rate, or with a body that is too large; note its key."""
        scope = request.scope
        scope.setdefault("state", {})
        scope["state"] = {**scope["state"], "id": request.id}
        key = None
        if self._access.keys is None:
            self._check_host(request)
        elif scope["path"] not in OPEN:
            if sum(header == b"authorization" for header, _ in scope["headers"]) > 1:
                raise ApiError(400, "two_keys", "the request has several Authorization headers; send one")
            key = self._access.keys.find(request.headers.get(b"authorization", b""))
            if key is None:
                raise ApiError(401, "invalid_api_key", "missing or wrong key; use Authorization: Bearer KEY")
            request.key = request.client = key.name
        counts = key is not None and scope["path"] not in UNCOUNTED
        if counts and (seconds := self._rates.wait(request.key)):
            problem = f"this key is limited to {self._limits.per_minute} requests a minute"
            raise ApiError(429, "rate_limit_exceeded", problem, retry_after=seconds)
        if request.headers.get(b"content-encoding", b"identity").lower() not in (b"", b"identity"):
            problem = "this server does not unpack bodies; send the body as it is, without Content-Encoding"
            raise ApiError(415, "encoded_body", problem)
        length = request.headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18:
            raise ApiError(400, "bad_length", "Content-Length is not a number of bytes")
        if int(length) > request.most:
            raise body_too_large(request.most)

    def _check_host(self, request: Exchange) -> None:
        host = request.headers.get(b"host", b"").decode("latin-1")
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        if name.lower() not in self._access.hosts:
            problem = "without keys, this server accepts only its own host name; its operator can set --keys"
            raise ApiError(403, "unknown_host", problem)
        origin = request.headers.get(b"origin", b"").decode("latin-1").lower()
        if origin and origin not in self._access.origins and origin.partition("://")[2] != host.lower():
            problem = "without keys, this server accepts only its own page and the sites of --allow-origin"
            raise ApiError(403, "other_origin", problem)
