"""Runs the service until it is stopped."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import uvicorn

from precis.server.asgi_app import Access, make_app
from precis.server.client_keys import Keys
from precis.server.limits import Limits
from precis.server.logs import log_to_stderr
from precis.server.middleware import LOOPBACK
from precis.server.model_pool import ModelPool
from precis_text.errors import RunError, UserError

_ORIGIN = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-f:]+\])(?::\d{1,5})?", re.IGNORECASE | re.ASCII)
_LAST = 5.0  # seconds for the model to stop after the last request


@dataclass(frozen=True, kw_only=True)
class Address:
    """The address of the service.

    Attributes:
        host: an address or a name of this machine.
        port: 0 for any free port.
        grace: seconds for requests to finish after SIGTERM.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    grace: float = 30.0


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def access_to(address: Address, keys: Keys | None, *, origins: Sequence[str] = ()) -> Access:
    """Return the access rules of a service at an address.

    Args:
        origins: sites whose pages may send requests; "*" for all, which needs keys.

    Raises:
        UserError: if other machines or all sites can reach it, and `keys` is None; or an origin is not a site.
    """
    for origin in origins:
        if origin == "*" and keys is None:
            raise UserError(
                "--allow-origin '*' lets every site use this server; give a file of keys with --keys, or name the site"
            )
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise UserError(
                f"--allow-origin {origin}: is not a site; write its scheme, name and port, as https://example.org:8443"
            )
    if keys is None and not is_loopback(address.host):
        raise UserError(
            f"--host {address.host} is open to other machines; give a file of keys with --keys, or omit --host"
        )
    named = f"[{address.host}]" if ":" in address.host else address.host.lower()
    sites = frozenset(origin.lower() for origin in origins)
    return Access(keys=keys, hosts=LOOPBACK | {named}, origins=sites)


def listen(address: Address) -> socket.socket:
    """Return a socket bound to the address.

    Raises:
        UserError: if the address belongs to another machine, or is in use.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((address.host, address.port))
    except OSError as error:
        opened.close()
        reason = error.strerror or error
        raise UserError(
            f"{address.host}, port {address.port}: cannot listen: {reason}; use another --port"
        ) from None
    return opened


def serve(
    models: ModelPool,
    *,
    address: Address,
    access: Access,
    limits: Limits,
    notify: Callable[[str], None],
) -> None:
    """Load the models and answer requests until SIGTERM or Ctrl-C, then finish running requests.

    Args:
        models: loaded after the address is bound.

    Raises:
        UserError: if the address cannot be bound, or a model cannot be loaded.
        RunError: if the server could not start.
    """
    opened = listen(address)
    try:
        models.load_all()
        app = make_app(models, limits=limits, access=access, grace=min(address.grace, _LAST))
        log_to_stderr()
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=max(1, round(address.grace)),
            timeout_keep_alive=30,
        )
        server = uvicorn.Server(config)
        host, port = opened.getsockname()[:2]
        notify(f"listening on http://{f'[{host}]' if ':' in host else host}:{port} (Ctrl-C stops it)")
        server.run(sockets=[opened])
        if not server.started:
            raise RunError("the server did not start; its log says why")
    finally:
        opened.close()
