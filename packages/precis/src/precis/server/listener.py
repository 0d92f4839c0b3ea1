"""The address and the socket of a server, and who can reach it: machines, and pages of other sites.

This module needs no library, so that a wrong address or a taken port is refused at once.
"""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from precis_text.errors import UserError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ORIGIN = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-f:]+\])(?::\d{1,5})?", re.IGNORECASE | re.ASCII)
_PREFIX = re.compile(r"(?:/[\w.~-]+)+", re.ASCII)
_BACKLOG = 512  # connections that the system accepts before the server does
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


@dataclass(frozen=True, kw_only=True)
class Address:
    """The address of the service.

    Attributes:
        host: an address or a name of this machine.
        port: 0 for any free port.
        grace: seconds for requests to finish after SIGTERM.
        prefix: the path under which a proxy shows the service, as "/precis".
    """

    host: str = "127.0.0.1"
    port: int = 8000
    grace: float = 30.0
    prefix: str = ""

    def __post_init__(self) -> None:
        if self.prefix and not _PREFIX.fullmatch(self.prefix):
            raise UserError(
                f"--root-path {self.prefix}: write a path without a slash at its end, such as /precis"
            )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_access(address: Address, *, has_keys: bool, origins: Sequence[str] = ()) -> None:
    """Refuse an address and sites that need keys, if there are none.

    Args:
        origins: sites whose pages may send requests; "*" for all.

    Raises:
        UserError: if other machines or all sites can reach the server without keys; or an origin is not a site.
    """
    for origin in origins:
        if origin == "*" and not has_keys:
            raise UserError(
                "--allow-origin '*' lets every site use this server; give a file of keys with --keys, or name the site"
            )
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise UserError(
                f"--allow-origin {origin}: is not a site; write its scheme, name and port, as https://example.org:8443"
            )
    if not has_keys and not is_loopback(address.host):
        raise UserError(
            f"--host {address.host} is open to other machines; give a file of keys with --keys, or omit --host"
        )


def page_headers() -> dict[str, str]:
    """Return the headers of every answer by name, which keep pages of other sites out.

    A page shows only images in its own text, such as its empty icon.
    """
    return {
        "x-content-type-options": "nosniff", "x-frame-options": "DENY", "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store", "content-security-policy": _POLICY,
    }  # fmt: skip


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
