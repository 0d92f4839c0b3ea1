"""uvicorn with bounded connections, which says what it waits for when it stops."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from precis.server.connections import ConnectionLimits, Connections

_KEEP_ALIVE = 30  # seconds between two requests of a connection
_LARGEST_HEAD = 1 << 16  # bytes


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
            h11_max_incomplete_event_size=_LARGEST_HEAD, backlog=128,
        ))  # fmt: skip
        self._notify = notify

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Run until a signal; end with the exit code of Ctrl-C, without a message, if that was the signal."""
        try:
            super().run(sockets)
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell the supervisor."""
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
