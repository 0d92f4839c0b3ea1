"""Bodies that are too large, too slow or too many, and what is answered when the server stops."""

import asyncio
import gzip
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest

from precis.server import asgi_request
from precis.server.asgi_request import Exchange, Room
from precis.server.limits import ApiError, Limits
from tests.server.conftest import Serve, SlowModel
from tests.server_of_tests import Running
from tests.tiny_models import documents


def connect(service: Running) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", httpx.URL(service.url).port), timeout=15)
    return connection


def head(length: int, *more: str) -> bytes:
    lines = ["POST /v1/summarize HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


def all_of(connection: socket.socket) -> tuple[bytes, float]:
    """What comes until the server closes the connection, and the seconds until then."""
    began = time.monotonic()
    return connection.makefile("rb").read(), time.monotonic() - began


def test_a_refused_body_that_never_comes_does_not_hold_the_connection(service: Running) -> None:
    with connect(service) as connection:
        connection.sendall(head(100 << 20))
        answer, seconds = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 413")
    assert seconds < 8


def test_a_client_that_asks_before_it_sends_is_refused_in_words(service: Running) -> None:
    with connect(service) as connection:
        connection.sendall(head(100 << 20, "Expect: 100-continue"))
        answer, _ = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in answer


def test_a_body_that_stops_coming_is_given_up(serve: Serve) -> None:
    service = serve(limits=Limits(seconds=0.5))
    with connect(service) as connection:
        connection.sendall(head(100) + b'{"text":')
        answer, seconds = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body_too_slow" in answer
    assert seconds < 8


class Taker:
    """A body that takes room, and gives all of it up when it is told to."""

    def __init__(self, room: Room, client: str) -> None:
        self.room, self.client, self.held, self.gone = room, client, 0, False

    def take(self, count: int) -> bool:
        taken = self.room.take(count, self)  # type: ignore[arg-type]
        self.held += count * taken
        return taken

    def end(self) -> None:
        self.room.give(self.held, self)  # type: ignore[arg-type]
        self.held = 0

    def give_up(self) -> None:
        self.gone = True
        self.end()


def test_room_is_taken_and_given_back() -> None:
    room = Room(10)
    one, two = Taker(room, "a"), Taker(room, "b")
    assert one.take(6)
    room.whole(one)  # type: ignore[arg-type]
    assert [two.take(5), two.take(4)] == [False, True]
    one.end()
    assert two.take(5)


def test_unfinished_bodies_give_their_room_to_others_the_greediest_client_first() -> None:
    room = Room(10)
    greedy, patient = [Taker(room, "greedy") for _ in range(3)], Taker(room, "patient")
    assert [patient.take(2), *(one.take(2) for one in greedy)] == [True] * 4
    late = Taker(room, "late")
    assert late.take(6)
    assert [one.gone for one in (*greedy, patient)] == [True, True, False, False]


class Sender:
    """A client that sends bodies without an end, as fast as they are read."""

    def __init__(self, room: Room, key: str, *, part: int, parts: int) -> None:
        self.read, self._part, self._left = 0, part, parts
        scope = {"headers": [], "client": (key, 1)}
        self.exchange = Exchange(scope, self._receive, self._drop, Limits(), room)

    async def _receive(self) -> dict[str, object]:
        await asyncio.sleep(0)
        self._left -= 1
        self.read += self._part
        return {"type": "http.request", "body": bytes(self._part), "more_body": self._left > 0}

    async def _drop(self, message: object) -> None:
        pass

    async def send_all(self) -> float:
        """Send the body; return the seconds until it was read or given up."""
        began = time.monotonic()
        with suppress(ApiError):
            while (await self.exchange.receive())["more_body"]:
                pass
        return time.monotonic() - began


def test_the_bodies_of_a_client_come_at_a_pace_together_and_others_do_not_wait() -> None:
    async def sent() -> tuple[float, float, float]:
        room = Room(1 << 30)
        many = [Sender(room, "many", part=1 << 20, parts=3) for _ in range(8)]
        alone, short = (Sender(room, name, part=1 << 10, parts=2) for name in ("alone", "many"))
        short._left = 1  # whole in its first part
        began = time.monotonic()
        took = await asyncio.gather(*(one.send_all() for one in (alone, short, *many)))
        return took[0], took[1], time.monotonic() - began

    alone, short, all_of_many = asyncio.run(sent())
    assert all_of_many >= 16 * 2**20 / asgi_request._PACE  # all parts but the last ones
    assert max(alone, short) < all_of_many / 2


def test_a_client_whose_bodies_fill_the_room_cannot_fill_it_again_and_again() -> None:
    async def read() -> int:
        room = Room(1 << 20)
        senders = [Sender(room, "greedy", part=1 << 18, parts=1 << 20) for _ in range(8)]

        async def again(sender: Sender) -> None:
            while True:
                await sender.send_all()
                sender.exchange.end()
                sender.exchange = Exchange(
                    sender.exchange.scope, sender._receive, sender._drop, Limits(), room
                )

        with suppress(TimeoutError):
            async with asyncio.timeout(1.5):
                await asyncio.gather(*map(again, senders))
        return sum(sender.read for sender in senders)

    assert asyncio.run(read()) < asgi_request._PACE / 4


def test_bodies_together_have_a_limit(serve: Serve, slow: SlowModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limits, "all_bodies", 300)
    service = serve(slow)

    def post(text: str) -> httpx.Response:
        with service.client() as client:
            return client.post("/v1/summarize", json={"text": text})

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, "word " * 40)
        until = time.monotonic() + 10
        while not slow.batches and time.monotonic() < until:
            time.sleep(0.01)
        refused = post("word " * 40)
        slow.go.set()
        assert first.result().status_code == 200
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "bodies_full")
    assert int(refused.headers["retry-after"]) >= 1
    assert post("word " * 40).status_code == 200  # there is room again


def test_head_answers_as_get_does_without_a_body(service: Running) -> None:
    with service.client() as client:
        for path in ("/", "/health", "/ready", "/v1/models"):
            asked, got = client.head(path), client.get(path)
            assert (asked.status_code, asked.content) == (200, b"")
            assert asked.headers["content-length"] == got.headers["content-length"]
        assert client.head("/v1/summarize").status_code == 405


def test_a_request_that_the_end_cuts_off_is_told_to_come_again(serve: Serve, slow: SlowModel) -> None:
    service = serve(slow)
    service.server.config.timeout_graceful_shutdown = 1
    with ThreadPoolExecutor(1) as pool, service.client() as client:
        waiting = pool.submit(client.post, "/v1/summarize", json={"text": documents(1)[0]})
        until = time.monotonic() + 10
        while not slow.batches and time.monotonic() < until:
            time.sleep(0.01)
        threading.Thread(target=service.stop).start()
        answer = waiting.result()
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    ("length", "answer"),
    [
        ("9" * 18, b"HTTP/1.1 413"),  # larger than any body
        ("0" * 19, b"HTTP/1.1 400"),
        ("9" * 19, b"HTTP/1.1 400"),
    ],
)
def test_a_length_of_more_than_18_digits_is_no_number_of_bytes(
    service: Running, length: str, answer: bytes
) -> None:
    with connect(service) as connection:
        connection.sendall(head(0).replace(b"Content-Length: 0", b"Content-Length: " + length.encode()))
        assert connection.recv(12) == answer


def test_a_packed_body_is_refused_in_one_line_instead_of_being_read_as_text(service: Running) -> None:
    body = gzip.compress(json.dumps({"text": documents(1)[0]}).encode())
    kind = {"Content-Type": "application/json"}
    with service.client() as client:
        for path in ("/v1/summarize", "/v1/chat/completions"):
            answer = client.post(path, content=body, headers={**kind, "Content-Encoding": "gzip"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (415, "encoded_body")
            assert "without Content-Encoding" in answer.json()["error"]["message"]
        plain = client.post(
            "/v1/summarize", json={"text": documents(1)[0]}, headers={"Content-Encoding": "identity"}
        )
        assert plain.status_code == 200
