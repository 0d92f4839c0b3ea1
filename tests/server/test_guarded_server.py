"""What a server says when it stops, to its supervisor, and to a second process on its port."""

import asyncio
import errno
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from precis.messages import silent
from precis.server.connections import ConnectionLimits, GuardedServer, most_open, tell_supervisor
from precis.server.listener import is_loopback, listen, url_of
from precis_text.errors import UserError
from tests.server.conftest import Serve, SlowModel


def test_a_second_listener_is_told_who_has_the_port_before_it_does_anything() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        assert url_of("127.0.0.1", first) == f"http://127.0.0.1:{port}"
        with pytest.raises(UserError, match=f"port {port}: cannot listen: another process listens there"):
            listen("127.0.0.1", port)


def test_a_port_that_the_system_refuses_is_said_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(socket.socket):
        def bind(self, _: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("precis.server.listener.socket.socket", Refusing)
    with pytest.raises(UserError, match="port 80: cannot listen: Permission denied; use another --port"):
        listen("127.0.0.1", 80)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_of_another_machine_is_one_line(host: str) -> None:
    with pytest.raises(UserError, match="use another --host"):
        listen(host, 0)


def test_loopback_is_known() -> None:
    hosts = ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "LOCALHOST", "0.0.0.0", "10.0.0.1", "example.org")
    assert [is_loopback(host) for host in hosts] == [True] * 5 + [False] * 3


def test_stopping_says_what_it_waits_for(serve: Serve, slow: SlowModel) -> None:
    service = serve(slow)
    with ThreadPoolExecutor(1) as pool, service.client() as client:
        waiting = pool.submit(client.post, "/v1/summarize", json={"text": "one two three"})
        until = time.monotonic() + 10
        while not slow.batches and time.monotonic() < until:
            time.sleep(0.01)
        threading.Timer(0.3, slow.go.set).start()
        service.stop()
        assert waiting.result().status_code == 200
    assert service.told == ["stopping: waiting up to 10 s for 1 request in work"]
    idle = serve()
    idle.stop()
    assert idle.told == ["stopping: no request is in work"]


@pytest.mark.parametrize("abstract", [False, True])
def test_the_supervisor_hears_that_the_server_is_ready(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool
) -> None:
    place = f"precis-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.settimeout(10)
        supervisor.bind("\0" + place if abstract else place)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + place if abstract else place)
        service = serve()
        assert supervisor.recv(100) == b"READY=1"
        service.stop()
        assert supervisor.recv(100) == b"STOPPING=1"
        assert tell_supervisor("WATCHDOG=1")


@pytest.mark.parametrize("place", ["", "relative", "/no/such/socket"])
def test_without_a_supervisor_nothing_is_sent(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", place)
    assert not tell_supervisor("READY=1")


def test_few_files_bound_the_connections_and_leave_room_for_those_of_one_turn() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (300, 600))\n"
        "from precis.server.connections import most_open; print(most_open(50), most_open(2048))\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    few, most, files = map(int, said.split())
    assert (few, files) == (50, 600)
    server = GuardedServer(None, connections=ConnectionLimits(), grace=1, notify=silent)
    assert files - most >= 128 + server.config.backlog


def test_ctrl_c_ends_a_server_by_its_exit_code_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("uvicorn.Server.run", interrupted)
    server = GuardedServer(None, connections=ConnectionLimits(), grace=1.0, notify=silent)
    with pytest.raises(SystemExit) as ended:
        server.run()
    assert ended.value.code == 130


@pytest.mark.parametrize(("grace", "seconds"), [(0.2, 1), (1.4, 1), (2.6, 3)])
def test_a_server_waits_whole_seconds_and_tells_nobody_what_it_is(grace: float, seconds: int) -> None:
    config = GuardedServer(None, connections=ConnectionLimits(), grace=grace, notify=silent).config
    assert config.timeout_graceful_shutdown == seconds
    assert (config.server_header, config.access_log, config.timeout_keep_alive) == (False, False, 30)
    assert config.h11_max_incomplete_event_size == 65_536


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "fit", "raised"),
    [
        (-1, -1, 5000, 5000, None),
        (100, -1, 5000, 5000, 5256),
        (100, 1000, 5000, 744, 1000),
        (100, 1000, 50, 50, 306),
        (306, 1000, 50, 50, None),
        (100, 120, 50, 16, 120),
    ],
)
def test_as_many_connections_as_files_allow_are_open_and_at_least_16(
    soft: int, hard: int, wanted: int, fit: int, raised: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr("resource.setrlimit", lambda _, both: limits.append(both))
    assert most_open(wanted) == fit
    assert limits == ([] if raised is None else [(raised, hard)])


def test_a_server_looks_for_its_requests_at_once_when_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    told: list[str] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async def stop(*_: object) -> None:
        pass

    monkeypatch.setattr("precis.server.connections.asyncio", SimpleNamespace(sleep=pause))
    monkeypatch.setattr("uvicorn.Server.shutdown", stop)
    server = GuardedServer(None, connections=ConnectionLimits(), grace=1.0, notify=told.append)
    asyncio.run(server.shutdown())
    assert (pauses, told) == ([0], ["stopping: no request is in work"])
