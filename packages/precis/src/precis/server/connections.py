"""A server with bounded connections, in all and for each address, and seconds for the head of a request.

    a new connection -> at the bound, the one that has waited longest for its client is closed -> room for the new one

So clients that send nothing never keep out a client that sends its request at once. A connection whose request is whole
is never closed here.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from precis.server.logs import LOG
from precis_text.config import Settings

_AT_ONCE = 128  # connections that the loop accepts in one turn, before it closes those beyond the bound
_OTHER_FILES = 128 + _AT_ONCE  # beside its connections: models, the reading process, logs
_TOLD_EVERY = 1.0  # seconds between log lines about closed connections
_KEEP_ALIVE = 30  # seconds between two requests of a connection
_LARGEST_HEAD = 1 << 16  # bytes
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n"
    b"cache-control: no-store\r\n\r\n"
)


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits(Settings):
    """Bounds on the connections of a server.

    Attributes:
        most: connections at once.
        of_one: connections at once of one address.
        head_seconds: from the connection, or the first byte of a later request, to the end of the head.
    """

    most: int = 2048
    of_one: int = 1024
    head_seconds: float = 10.0


def most_open(wanted: int) -> int:
    """Raise the limit of open files for `wanted` connections; return how many fit under it, at least 16."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(16, min(wanted, soft - _OTHER_FILES))


class _Line:
    """Connections in the order in which they came, in all and by address."""

    def __init__(self) -> None:
        self._all: dict[Connection, None] = {}
        self._of: dict[str, dict[Connection, None]] = {}

    def add(self, one: Connection) -> None:
        """Add a connection at the end; one that is in the line keeps its place."""
        self._all.setdefault(one)
        self._of.setdefault(one.address, {}).setdefault(one)

    def remove(self, one: Connection) -> None:
        """Remove a connection, if it is in the line."""
        self._all.pop(one, None)
        mine = self._of.get(one.address, {})
        mine.pop(one, None)
        if not mine:
            self._of.pop(one.address, None)

    def first(self, address: str | None) -> Connection | None:
        """Return the first connection, of one address if it is given."""
        return next(iter(self._all if address is None else self._of.get(address, {})), None)


class Connections:
    """The connections of one server, within `limits`."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._most = most_open(limits.most)
        self._open: Counter[str] = Counter()
        self._silent, self._sending = _Line(), _Line()
        self._closed: Counter[str] = Counter()

    def protocol(self) -> Any:
        """Return the protocol class for `uvicorn.Config(http=...)`."""
        return partial(Connection, self)

    def admit(self, one: Connection) -> bool:
        """Count a new connection; return False if all others of its address, or of all, have requests in work."""
        self._open[one.address] += 1
        of_one = self._open[one.address] > self.limits.of_one
        return not (of_one or self._open.total() > self._most) or self._make_room(
            one.address if of_one else None
        )

    def _make_room(self, address: str | None) -> bool:
        victim = self._silent.first(address) or self._sending.first(address)
        self.told("refused" if victim is None else "made_room")
        if victim is None:
            return False
        self.leave(victim)
        victim.transport.abort()
        return True

    def stand(self, one: Connection, *, silent: bool, sending: bool) -> None:
        """Note whether a connection waits for a request's head, or for the rest of its body."""
        for line, belongs in ((self._silent, silent), (self._sending, sending)):
            if belongs:
                line.add(one)
            else:
                line.remove(one)

    def leave(self, one: Connection) -> None:
        """Forget a connection; a second call does nothing."""
        if one.counted:
            one.counted = False
            self.stand(one, silent=False, sending=False)
            self._open[one.address] -= 1
            if not self._open[one.address]:
                del self._open[one.address]

    def told(self, reason: str) -> None:
        """Count a connection that was closed; one log line a second gives the counts."""
        if not self._closed:
            asyncio.get_running_loop().call_later(_TOLD_EVERY, self._tell)
        self._closed[reason] += 1

    def _tell(self) -> None:
        LOG.warning("connections_closed", extra={"fields": dict(self._closed), "bounded": False})
        self._closed.clear()


@final
class Connection(H11Protocol):
    """One connection; uvicorn reads its requests.

    Attributes:
        address: the address of the client.
        counted: it counts against the bounds.
    """

    address = ""
    counted = False

    def __init__(
        self,
        all_of_them: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = all_of_them
        self._until: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place among the connections, or answer 503."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.counted = True
        if not self._all.admit(self):
            self._all.leave(self)
            transport.write(_FULL)
            transport.close()
            return
        self._begin()
        self._stand()

    def data_received(self, data: bytes) -> None:
        """Read bytes; its first one starts the time for a head."""
        if self.transport.is_closing():
            return
        if self._idle and self._until is None:
            self._begin()
        super().data_received(data)
        self._stand()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self._idle and self._until is None and self.conn.trailing_data[0]:
            self._begin()  # a part of the next head has come already
        self._stand()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._end()
        self._all.leave(self)
        super().connection_lost(exc)

    @property
    def _idle(self) -> bool:
        """True if no request is in work."""
        return self.cycle is None or self.cycle.response_complete

    def _begin(self) -> None:
        self._until = self.loop.call_later(self._all.limits.head_seconds, self._late)

    def _end(self) -> None:
        if self._until is not None:
            self._until.cancel()
            self._until = None

    def _stand(self) -> None:
        idle = self._idle
        if not idle:
            self._end()
        if self.counted:
            self._all.stand(self, silent=idle, sending=not idle and self.cycle.more_body)

    def _late(self) -> None:
        self._until = None
        if self._idle:
            self._all.told("no_head")
            self.transport.abort()


class GuardedServer(uvicorn.Server):
    """A server of one application; `precis serve` and `precis judge serve` are such servers.

    Args:
        app: the application (ASGI).
        connections: bounds on its connections.
        grace: seconds for requests to end after SIGTERM.
        notify: receives a line when it starts to stop.
    """

    def __init__(
        self, app: Any, *, connections: ConnectionLimits, grace: float, notify: Callable[[str], None]
    ) -> None:
        super().__init__(uvicorn.Config(
            app, http=Connections(connections).protocol(), ws="none", log_config=None, access_log=False,
            server_header=False, timeout_graceful_shutdown=max(1, round(grace)), timeout_keep_alive=_KEEP_ALIVE,
            h11_max_incomplete_event_size=_LARGEST_HEAD, backlog=_AT_ONCE,
        ))  # fmt: skip
        self._notify = notify

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Run until a signal; end with the exit code of Ctrl-C, without a message, if that was the signal."""
        try:
            super().run(sockets)
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and notify the supervisor."""
        await super().startup(sockets)
        tell_supervisor("READY=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say how many requests are in work and how long they may take; then wait for them."""
        tell_supervisor("STOPPING=1")
        await asyncio.sleep(0)
        count, seconds = len(self.server_state.tasks), self.config.timeout_graceful_shutdown
        waits = f"waiting up to {seconds} s for {count} request{'s' * (count != 1)} in work"
        self._notify(f"stopping: {waits if count else 'no request is in work'}")
        await super().shutdown(sockets)


def tell_supervisor(state: str) -> bool:
    """Send a state such as "READY=1" to systemd (`sd_notify(3)`); return False if none listens (`NOTIFY_SOCKET`)."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place.startswith(("/", "@")):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        try:
            sender.sendto(state.encode(), "\0" + place[1:] if place.startswith("@") else place)
        except OSError:
            return False  # the supervisor ends what it does not hear from
    return True
