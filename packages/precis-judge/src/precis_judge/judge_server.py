"""Serves the page on an address of this machine until it is stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from precis.messages import Notify
from precis.server.listener import LOOPBACK, is_loopback, listen, named, url_of
from precis.server.logs import log_to_stderr
from precis_judge.judging_study import JudgingStudy, open_study
from precis_judge.verdicts import VerdictStore
from precis_text.errors import RunError, UserError, install_line

_GRACE = 3.0  # seconds for requests to end
_ANY = ("", "0.0.0.0", "::", "*")


def serve(
    folder: Path, *, host: str, port: int, notify: Notify, show_links: Callable[[dict[str, str]], None]
) -> None:
    """Collect verdicts for the study in `folder` until the process is interrupted.

    Args:
        port: 0 takes a free port.
        show_links: receives each judge's link once the page is reachable.

    Raises:
        UserError: the study or FastAPI is missing, another process collects, or the address is not available.
        RunError: another program has replaced, deleted or changed the file of verdicts; no more are accepted.
    """
    try:
        from precis.server.connections import ConnectionLimits, GuardedServer
        from precis_judge.judge_app import make_app
    except ModuleNotFoundError as error:
        raise UserError(
            f"the page needs {error.name}, which is not installed: {install_line('judge')}"
        ) from None
    if host in _ANY:
        raise UserError(f"--host {host!r}: give the one address that judges use, not all addresses")
    study = open_study(folder)
    with VerdictStore.opened(study) as store, listen(host, port) as listening:
        port = listening.getsockname()[1]
        url = url_of(host, listening)
        failures: list[RunError] = []

        def stop(error: RunError) -> None:
            failures.append(error)
            server.should_exit = True

        hosts = {f"{name}:{port}" for name in (*LOOPBACK, named(host))}
        app = make_app(store, hosts=hosts, on_failure=stop)
        notify(f"{folder}: {_told(study, store)}; press Ctrl-C to stop, repeat the command to resume")
        if not is_loopback(host):
            notify(f"{host} is open to the network; links and verdicts are sent unencrypted")
        show_links({judge: f"{url}/#{token}" for judge, token in study.links.items()})
        server = GuardedServer(app, connections=ConnectionLimits(), grace=_GRACE, notify=notify)
        log_to_stderr(logging.WARNING)
        server.run(sockets=[listening])
        if failures:
            raise failures[0]


def _told(study: JudgingStudy, store: VerdictStore) -> str:
    pages = sum(map(len, study.layout.pages.values()))
    return f"{len(store.verdicts):,} of {pages:,} pages have a verdict"
