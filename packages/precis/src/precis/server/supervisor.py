"""Messages to systemd, as `sd_notify(3)` describes them."""

from __future__ import annotations

import os
import socket


def tell_supervisor(state: str) -> bool:
    """Send a state such as "READY=1" to the supervisor; return False if none listens (`NOTIFY_SOCKET`)."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place.startswith(("/", "@")):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        try:
            sender.sendto(state.encode(), "\0" + place[1:] if place.startswith("@") else place)
        except OSError:
            return False  # the supervisor ends what it does not hear from
    return True
