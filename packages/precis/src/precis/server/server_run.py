"""Runs the service until it is stopped."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from precis.server.asgi_app import Access, make_app
from precis.server.client_keys import Keys
from precis.server.connections import ConnectionLimits
from precis.server.guarded_server import GuardedServer
from precis.server.limits import Limits
from precis.server.listener import LOOPBACK, is_loopback, listen, named, url_of
from precis.server.logs import LOG, log_to_stderr
from precis.server.model_pool import ModelPool
from precis_text.errors import RunError, UserError

_ORIGIN = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-f:]+\])(?::\d{1,5})?", re.IGNORECASE | re.ASCII)
_PREFIX = re.compile(r"(?:/[\w.~-]+)+", re.ASCII)
_LAST = 5.0  # seconds for the model to stop after the last request


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
    sites = frozenset(origin.lower() for origin in origins)
    return Access(keys=keys, hosts=LOOPBACK | {named(address.host)}, origins=sites)


def serve(
    models: ModelPool,
    *,
    address: Address,
    access: Access,
    limits: Limits,
    connections: ConnectionLimits,
    notify: Callable[[str], None],
) -> None:
    """Load the models and answer requests until SIGTERM or Ctrl-C, then finish running requests.

    SIGHUP reads the keys again.

    Args:
        models: loaded once the address is listened on.

    Raises:
        UserError: if the address cannot be listened on, or a model cannot be loaded.
        RunError: if the server could not start.
    """
    with listen(address.host, address.port) as opened:
        if access.keys is not None:
            signal.signal(signal.SIGHUP, lambda *_: reload_keys(access.keys))
        models.load_all()
        app = make_app(
            models, limits=limits, access=access, grace=min(address.grace, _LAST), prefix=address.prefix
        )
        log_to_stderr()
        server = GuardedServer(app, connections=connections, grace=address.grace, notify=notify)
        notify(f"listening on {url_of(address.host, opened)}{address.prefix} (Ctrl-C stops it)")
        server.run(sockets=[opened])
        if not server.started:
            raise RunError("the server did not start; its log says why")


def reload_keys(keys: Keys | None) -> None:
    """Read the file of keys again; keep the old keys, and log why, if it cannot be used."""
    if keys is None:
        return
    try:
        count = keys.reload()
    except UserError as error:
        LOG.error("keys_not_reloaded", extra={"fields": {"reason": str(error)}, "bounded": False})
    else:
        LOG.info("keys_reloaded", extra={"fields": {"keys": count}, "bounded": False})
