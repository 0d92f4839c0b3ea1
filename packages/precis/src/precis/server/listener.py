"""The socket of a server, and which machines can reach it."""

from __future__ import annotations

import errno
import ipaddress
import socket

from precis_text.errors import UserError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_BACKLOG = 512  # connections that the system accepts before the server does


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def named(host: str) -> str:
    """Return an address as a URL has it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host.lower()


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that a second process on the port fails at once.

    Args:
        port: 0 for any free port.

    Raises:
        UserError: if the address is not one of this machine, or another process listens there.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"--host {host}: cannot listen: it is not an address of this machine ({error}); use another --host"
        ) from None
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        reason = (
            "another process listens there" if error.errno == errno.EADDRINUSE else error.strerror or error
        )
        option = "--host" if error.errno == errno.EADDRNOTAVAIL else "--port"
        raise UserError(f"{host}, port {port}: cannot listen: {reason}; use another {option}") from None
    return opened


def url_of(host: str, opened: socket.socket) -> str:
    """Return the URL of a listening socket."""
    return f"http://{named(host)}:{opened.getsockname()[1]}"
