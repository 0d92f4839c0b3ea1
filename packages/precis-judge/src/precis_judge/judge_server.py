"""Serves the page on an address of this machine until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from precis.messages import Notify
from precis_judge.judging_study import JudgingStudy, open_study
from precis_judge.verdicts import VerdictStore
from precis_text.errors import RunError, UserError

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
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
        import uvicorn

        from precis_judge.judge_app import make_app
    except ModuleNotFoundError as error:
        raise UserError(
            f"the page needs {error.name}, which is not installed: pip install 'precis-summarizer[judge]'"
        ) from None
    study = open_study(folder)
    with VerdictStore.opened(study) as store, _listening(host, port) as listening:
        port = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        failures: list[RunError] = []

        def stop(error: RunError) -> None:
            failures.append(error)
            server.should_exit = True

        hosts = {f"{name}:{port}" for name in (*_LOOPBACK, shown)}
        app = make_app(store, hosts=hosts, on_failure=stop)
        notify(f"{folder}: {_told(study, store)}; press Ctrl-C to stop, repeat the command to resume")
        if f"{shown}" not in _LOOPBACK:
            notify(f"{host} is open to the network; links and verdicts are sent unencrypted")
        show_links({judge: f"http://{shown}:{port}/#{token}" for judge, token in study.links.items()})
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=3,
            limit_concurrency=200,
            h11_max_incomplete_event_size=1 << 16,
        )
        server = uvicorn.Server(config)
        server.run(sockets=[listening])
        if failures:
            raise failures[0]


def _listening(host: str, port: int) -> socket.socket:
    if host in _ANY:
        raise UserError(f"--host {host!r}: give the one address that judges use, not all addresses")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"--host {host} is not an address of this machine ({error}); use another --host"
        ) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UserError(f"--host {host} --port {port}: {error.strerror}; use another --port") from None
    return listening


def _told(study: JudgingStudy, store: VerdictStore) -> str:
    pages = sum(map(len, study.layout.pages.values()))
    return f"{len(store.verdicts):,} of {pages:,} pages have a verdict"
