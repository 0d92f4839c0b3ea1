"""Runs the service until it is stopped."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence

from precis.server.asgi_app import make_app
from precis.server.client_keys import Keys
from precis.server.connections import ConnectionLimits, GuardedServer
from precis.server.engine import MODEL_THREAD
from precis.server.limits import Limits
from precis.server.listener import LOOPBACK, Address, check_access, named, url_of
from precis.server.logs import LOG, log_to_stderr
from precis.server.middleware import Access
from precis.server.model_pool import ModelPool
from precis_text.errors import RunError, UserError

_LAST = 5.0  # seconds for the model to stop after the last request


def access_to(address: Address, keys: Keys | None, *, origins: Sequence[str] = ()) -> Access:
    """Return the access rules of a service at an address.

    Args:
        origins: sites whose pages may send requests; "*" for all, which needs keys.

    Raises:
        UserError: if other machines or all sites can reach it, and `keys` is None; or an origin is not a site.
    """
    check_access(address, has_keys=keys is not None, origins=origins)
    sites = frozenset(origin.lower() for origin in origins)
    return Access(keys=keys, hosts=LOOPBACK | {named(address.host)}, origins=sites)


def serve(
    models: ModelPool,
    *,
    opened: socket.socket,
    address: Address,
    access: Access,
    limits: Limits,
    connections: ConnectionLimits,
    notify: Callable[[str], None],
) -> None:
    """Load the models and answer requests until SIGTERM or Ctrl-C, then finish running requests.

    SIGHUP reads the keys again.

    Args:
        models: loaded by this call.
        opened: the socket that listens on the address.

    Raises:
        UserError: if a model cannot be loaded.
        RunError: if the server could not start.
    """
    if access.keys is not None:
        signal.signal(signal.SIGHUP, lambda *_: reload_keys(access.keys))
    models.load_all()
    app = make_app(
        models, limits=limits, access=access, grace=min(address.grace, _LAST), prefix=address.prefix
    )
    log_to_stderr()
    server = GuardedServer(app, connections=connections, grace=address.grace, notify=notify)
    notify(f"listening on {url_of(address.host, opened)}{address.prefix} (Ctrl-C stops it)")
    try:
        server.run(sockets=[opened])
    finally:
        end = sys.exception()
        if not isinstance(end, Exception) and any(
            each.name == MODEL_THREAD for each in threading.enumerate()
        ):
            logging.shutdown()  # a model still works: Python would stop its thread within torch, and so abort
            os._exit(getattr(end, "code", None) or 0)
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
