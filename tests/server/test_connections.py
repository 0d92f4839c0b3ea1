"""Clients that send nothing, or little: they keep nobody out, and their connections end."""

import asyncio
import socket
import time
from contextlib import ExitStack
from typing import Any

import pytest

from precis.server.connections import ConnectionLimits, Connections
from precis.server.limits import Limits
from tests.server.conftest import Serve, SlowModel
from tests.server_of_tests import Running

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


def connect(service: Running, *, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=10, source_address=(source, 0))


def ended(connection: socket.socket) -> bytes:
    """What came until the server closed the connection."""
    received = b""
    try:
        while part := connection.recv(4096):
            received += part
    except ConnectionResetError:
        pass
    return received


def test_a_head_that_does_not_come_ends_its_connection(serve: Serve) -> None:
    service = serve(connections=ConnectionLimits(head_seconds=0.3))
    for sent in (b"", HEAD):
        with connect(service) as connection:
            connection.sendall(sent)
            began = time.monotonic()
            assert ended(connection) == b""
            assert 0.2 < time.monotonic() - began < 5


def test_bytes_in_time_do_not_buy_a_head_more_time(serve: Serve) -> None:
    service = serve(connections=ConnectionLimits(head_seconds=0.5))
    with connect(service) as connection:
        began = time.monotonic()
        connection.settimeout(0.1)
        while time.monotonic() - began < 5:
            try:
                connection.sendall(b"a")
                if connection.recv(10) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() - began < 3


@pytest.mark.long
def test_a_second_request_has_the_time_of_a_first(serve: Serve) -> None:
    service = serve(connections=ConnectionLimits(head_seconds=0.4))
    with connect(service) as connection:
        for _ in range(3):
            connection.sendall(HEAD + b"\r\n")
            received = b""
            while not received.endswith(b"}"):
                received += connection.recv(4096)
            assert received.startswith(b"HTTP/1.1 200")
            time.sleep(0.6)  # longer than a head may take: nothing of one has come
        connection.sendall(HEAD)
        began = time.monotonic()
        assert ended(connection) == b""
        assert time.monotonic() - began < 5


def test_work_is_not_ended_by_the_time_for_heads(serve: Serve, slow: SlowModel) -> None:
    service = serve(slow, connections=ConnectionLimits(head_seconds=0.2))
    with connect(service) as connection:
        body = b'{"text": "one two three"}'
        connection.sendall(
            b"POST /v1/summarize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        time.sleep(0.8)
        slow.go.set()
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("limits", [ConnectionLimits(most=16), ConnectionLimits(of_one=16)])
def test_beyond_the_bound_those_that_wait_longest_are_closed(serve: Serve, limits: ConnectionLimits) -> None:
    service = serve(connections=limits)
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(service)) for _ in range(40)]
        with service.client() as client:
            assert client.get("/health").status_code == 200
        assert ended(silent[0]) == b""
        silent[-1].sendall(HEAD + b"\r\n")
        assert silent[-1].recv(4096).startswith(b"HTTP/1.1 200")


def test_many_of_one_address_close_none_of_another(serve: Serve) -> None:
    service = serve(connections=ConnectionLimits(of_one=4))
    with ExitStack() as stack:
        other = stack.enter_context(connect(service, source="127.0.0.2"))
        for _ in range(12):
            stack.enter_context(connect(service))
        with service.client() as client:
            assert client.get("/health").status_code == 200
        other.sendall(HEAD + b"\r\n")
        assert other.recv(4096).startswith(b"HTTP/1.1 200")


def test_where_all_have_requests_in_work_the_next_is_told_to_come_again(
    serve: Serve, slow: SlowModel
) -> None:
    service = serve(slow, connections=ConnectionLimits(of_one=2))
    body = b'{"text": "one two three"}'
    asked = (
        b"POST /v1/summarize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    with ExitStack() as stack:
        working = [stack.enter_context(connect(service)) for _ in range(2)]
        for one in working:
            one.sendall(asked)
        until = time.monotonic() + 10
        while not slow.batches and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.2)
        with connect(service) as refused:
            answer = ended(refused)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in answer
        slow.go.set()
        assert all(one.recv(4096).startswith(b"HTTP/1.1 200") for one in working)


def test_unfinished_bodies_keep_nobody_out(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limits, "all_bodies", 40_000)
    service = serve()
    head = (
        b"POST /v1/summarize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 10000\r\n\r\n" + b" " * 9_999
    )
    with ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(connect(service, source="127.0.0.3")).sendall(head)
        for _ in range(3):
            with service.client() as client:
                answer = client.post("/v1/summarize", json={"text": "Ann sings. " * 500, "words": 5})
            assert answer.status_code == 200


@pytest.mark.long
def test_a_body_slower_than_the_least_rate_is_given_up(serve: Serve) -> None:
    service = serve(limits=Limits(pause=0.4))
    with connect(service) as connection:
        connection.sendall(
            b"POST /v1/summarize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
            b"Content-Type: application/json\r\n\r\n{"
        )
        answer = ended(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body_too_slow" in answer


def test_the_time_of_a_body_grows_with_what_came() -> None:
    limits = Limits(rate=1000, seconds=60)
    assert [limits.body_due(count) for count in (0, 5000, 10**9)] == [10, 15, 60]


class Client:
    """A connection that notes whether it was closed."""

    def __init__(self, address: str) -> None:
        self.address, self.counted, self.is_closed = address, True, False
        self.transport = self

    def abort(self) -> None:
        self.is_closed = True


def come(
    connections: Connections, address: str, *, silent: bool = True, sending: bool = False
) -> tuple[Client, bool]:
    """Return a connection and whether it was let in."""
    client: Any = Client(address)
    is_let_in = connections.admit(client)
    connections.stand(client, silent=silent, sending=sending)
    return client, is_let_in


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a server have fewer than 16 connections."""
    monkeypatch.setattr("precis.server.connections.most_open", lambda wanted: wanted)


@pytest.mark.usefixtures("few")
def test_as_many_as_the_bounds_stay_and_one_more_closes_the_first() -> None:
    async def run() -> list[bool]:
        connections = Connections(ConnectionLimits(most=3, of_one=2))
        clients, let_in = zip(*(come(connections, address) for address in "aaabb"), strict=True)
        assert all(let_in)
        return [client.is_closed for client in clients]

    assert asyncio.run(run()) == [True, True, False, False, False]  # one of a's, then the first of all


@pytest.mark.usefixtures("few")
def test_those_that_send_a_body_give_way_after_the_silent_and_those_in_work_never() -> None:
    async def run() -> tuple[list[bool], list[bool]]:
        connections = Connections(ConnectionLimits(most=3))
        sending, _ = come(connections, "a", silent=False, sending=True)
        working, _ = come(connections, "a", silent=False)
        silent, _ = come(connections, "a")
        let_in = [come(connections, "b", silent=False)[1] for _ in range(3)]
        return let_in, [each.is_closed for each in (silent, sending, working)]

    assert asyncio.run(run()) == ([True, True, False], [True, True, False])


@pytest.mark.usefixtures("few")
def test_a_connection_that_leaves_twice_is_forgotten_once() -> None:
    async def run() -> None:
        connections = Connections(ConnectionLimits())
        clients: list[Any] = [come(connections, address, sending=True)[0] for address in "aab"]
        one, other, _ = clients
        for _ in range(2):
            connections.leave(one)
        assert connections._open == {"a": 1, "b": 1}
        assert [line.first("a") for line in (connections._silent, connections._sending)] == [other, other]
        assert connections._silent.first(None) is other
        for each in clients[1:]:
            connections.leave(each)
        assert dict(connections._open) == {}
        assert [line.first(None) for line in (connections._silent, connections._sending)] == [None, None]
        assert connections._silent._of == {}

    asyncio.run(run())


def test_the_reasons_of_closed_connections_are_counted_one_by_one() -> None:
    async def run() -> dict[str, int]:
        connections = Connections(ConnectionLimits(of_one=1))
        come(connections, "a")
        come(connections, "a", silent=False)
        come(connections, "a", silent=False)
        return dict(connections._closed)

    assert asyncio.run(run()) == {"made_room": 1, "refused": 1}


def test_closed_connections_are_told_together_and_then_those_after_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("precis.server.connections._TOLD_EVERY", 0.01)

    async def run() -> None:
        connections = Connections(ConnectionLimits())
        for reasons in (("refused", "no_head", "refused"), ("no_head",)):
            for reason in reasons:
                connections.told(reason)
            await asyncio.sleep(0.05)

    asyncio.run(run())
    told: list[Any] = [each for each in caplog.records if each.message == "connections_closed"]
    assert [each.fields for each in told] == [{"refused": 2, "no_head": 1}, {"no_head": 1}]
    assert [each.bounded for each in told] == [False, False]  # one line a second is bound enough


def test_a_connection_may_rest_between_requests_and_a_head_has_its_time_from_its_first_byte(
    serve: Serve,
) -> None:
    service = serve(connections=ConnectionLimits(head_seconds=0.2))
    with connect(service) as connection:
        for more in (b"", HEAD):  # which comes together with the request before it
            connection.sendall(HEAD[:9])
            time.sleep(0.02)  # in two parts
            connection.sendall(HEAD[9:] + b"\r\n" + more)
            received = b""
            while not received.endswith(b"}"):
                received += connection.recv(4096)
            assert received.startswith(b"HTTP/1.1 200")
            if not more:
                time.sleep(0.3)  # longer than a head may take: nothing of one has come
        assert ended(connection) == b""


def test_a_later_head_that_stops_coming_ends_its_connection(serve: Serve) -> None:
    service = serve(connections=ConnectionLimits(head_seconds=0.1))
    with connect(service) as connection:
        connection.sendall(HEAD + b"\r\n")
        received = b""
        while not received.endswith(b"}"):
            received += connection.recv(4096)
        connection.sendall(HEAD)
        assert ended(connection) == b""
