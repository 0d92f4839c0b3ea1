"""Bodies that are too large, too slow or too many, and what is answered when the server stops."""

import asyncio
import gzip
import hashlib
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from precis.server import asgi_request, middleware
from precis.server.asgi_request import Exchange, Room
from precis.server.client_keys import Key, Keys
from precis.server.limits import ApiError, Limits
from precis.server.metrics import Metrics
from precis.server.middleware import Access, Gate
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


@pytest.mark.long
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


@pytest.mark.long
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
    assert [two.take(2), two.gone] == [False, True]  # nobody else has room to give up
    assert Taker(room, "c").take(10)


def test_unfinished_bodies_give_their_room_to_others_the_greediest_client_first() -> None:
    room = Room(10)
    greedy, patient = [Taker(room, "greedy") for _ in range(3)], Taker(room, "patient")
    assert [patient.take(2), *(one.take(2) for one in greedy)] == [True] * 4
    late = Taker(room, "late")
    assert late.take(6)
    assert [one.gone for one in (*greedy, patient)] == [True, True, False, False]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that bodies wait, on a clock that stands still."""
    seconds: list[float] = []

    async def sleep(wait: float) -> None:
        seconds.append(wait)

    monkeypatch.setattr(asgi_request, "time", SimpleNamespace(monotonic=lambda: 100.0))
    monkeypatch.setattr(asgi_request, "asyncio", SimpleNamespace(sleep=sleep))
    return seconds


def paced(room: Room, *parts: tuple[int, str]) -> None:
    async def run() -> None:
        for count, client in parts:
            await room.pace(count, client)

    asyncio.run(run())


def test_64_mebibytes_of_a_client_take_a_second(waits: list[float]) -> None:
    paced(Room(10), (64 << 20, "a"), (32 << 20, "a"), (32 << 20, "b"), (0, "c"))
    assert waits == [1.0, 1.5, 0.5, 0.0]


def test_a_client_that_crowds_its_own_bodies_out_waits_a_second_and_another_does_not(
    waits: list[float],
) -> None:
    room = Room(10)
    assert [Taker(room, "a").take(6), Taker(room, "a").take(6), Taker(room, "b").take(10)] == [True] * 3
    paced(room, (0, "a"), (0, "b"), (96 << 20, "a"))
    assert Taker(room, "b").take(5)
    paced(room, (0, "b"))
    greedy = Taker(room, "a")
    assert [greedy.take(5), greedy.take(6)] == [True, False]
    paced(room, (0, "a"))  # it waits longer already
    assert waits == [1.0, 0.0, 2.5, 1.0, 2.5]


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
    assert all_of_many >= 16 / 64  # seconds of all parts but the last ones, at 64 MiB a second
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

    assert asyncio.run(read()) < 16 << 20


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
    assert refused.headers["retry-after"] == "5"
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
    assert answer.headers["retry-after"] == "5"


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


async def answered(
    refused: ApiError, *parts: tuple[bytes, bool], **headers: str
) -> tuple[int, dict[bytes, bytes], bytes, int]:
    """Return the status, headers and body of an error's answer, and how many parts of the request are left."""
    left = [{"type": "http.request", "body": body, "more_body": more} for body, more in parts]
    sent: list[Any] = []

    async def receive() -> Any:
        return left.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("a", 1),
    }
    await Exchange(scope, receive, send, Limits(), Room(100)).refuse(refused)
    assert [message.get("more_body") for message in sent] == [None, True, False]
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], dict(sent[0]["headers"]), body, len(left)


def test_an_error_is_answered_with_what_its_client_needs() -> None:
    status, headers, body, _ = asyncio.run(answered(ApiError(401, "invalid_api_key", "no key")))
    assert (status, json.loads(body)["error"]["code"]) == (401, "invalid_api_key")
    assert (headers[b"content-type"], int(headers[b"content-length"])) == (b"application/json", len(body))
    assert headers[b"www-authenticate"] == b"Bearer"
    assert not {b"retry-after", b"connection"} & {*headers}
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert len(headers[b"x-request-id"]) == 32
    _, headers, _, _ = asyncio.run(answered(ApiError(503, "queue_full", "full", retry_after=7)))
    assert headers[b"retry-after"] == b"7"
    assert not {b"www-authenticate", b"connection"} & {*headers}


def test_the_rest_of_a_body_that_is_too_large_is_read_unless_its_client_waits_for_leave() -> None:
    parts = (b"a", True), (b"b", True), (b"c", False), (b"next", True)
    large = ApiError(413, "body_too_large", "too large")
    _, headers, _, left = asyncio.run(answered(large, *parts))
    assert (headers[b"connection"], left) == (b"close", 1)
    _, _, _, left = asyncio.run(answered(large, *parts, expect="100-continue"))
    assert left == 4
    _, _, _, left = asyncio.run(answered(ApiError(422, "empty_document", "empty"), *parts))
    assert left == 4


def test_the_rest_of_a_body_ends_with_its_client() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> str:
        exchange = Exchange({"headers": [], "client": ("10.0.0.1", 5)}, receive, send, Limits(), Room(100))
        await exchange.refuse(ApiError(413, "body_too_large", "too large"))
        return exchange.client

    assert asyncio.run(run()) == "10.0.0.1"
    assert [message.get("more_body") for message in sent] == [None, True, False]


@pytest.mark.parametrize("is_waiting", [True, False])
def test_a_body_that_gave_its_room_to_another_is_told_to_come_again(is_waiting: bool) -> None:
    async def run() -> ApiError:
        parts = iter([b"12345"] if is_waiting else [b"12345", b"6"])
        room = Room(10)

        async def receive() -> Any:
            for part in parts:
                return {"type": "http.request", "body": part, "more_body": True}
            await asyncio.Event().wait()

        exchange = Exchange({"headers": []}, receive, receive, Limits(), room)  # type: ignore[arg-type]
        await exchange.receive()
        reading = asyncio.create_task(exchange.receive())
        if is_waiting:
            await asyncio.sleep(0)
        assert Taker(room, "other").take(8)
        with pytest.raises(ApiError) as refused:
            await reading
        assert refused.value is exchange.stopped
        return refused.value

    refused = asyncio.run(run())
    assert (refused.status, refused.code, refused.retry_after) == (503, "bodies_full", 5)


def test_an_answer_keeps_its_own_headers_and_a_refusal_after_it_says_nothing() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> Exchange:
        exchange = Exchange({"headers": []}, send, send, Limits(), Room(100))  # type: ignore[arg-type]
        assert (exchange.status, exchange.bytes_in, exchange.key, exchange.client) == (0, 0, "-", "")
        own = [(b"cache-control", b"max-age=5")]
        await exchange.send({"type": "http.response.start", "status": 201, "headers": own})
        await exchange.refuse(ApiError(500, "internal_error", "failed"))
        return exchange

    assert asyncio.run(run()).status == 201
    (start,) = sent
    assert [value for name, value in start["headers"] if name == b"cache-control"] == [b"max-age=5"]


def test_bytes_of_a_body_are_counted_to_its_limit_and_give_their_room_back() -> None:
    async def run() -> tuple[int, str]:
        parts = iter([(b"12345", True), (b"67890", True), (b"!", False)])
        room = Room(100)

        async def receive() -> Any:
            body, more = next(parts)
            return {"type": "http.request", "body": body, "more_body": more}

        exchange = Exchange({"headers": []}, receive, receive, Limits(body=10), room)  # type: ignore[arg-type]
        assert [(await exchange.receive())["body"] for _ in range(2)] == [b"12345", b"67890"]
        assert (exchange.held, room._left) == (10, 90)
        with pytest.raises(ApiError) as refused:
            await exchange.receive()
        exchange.end()
        assert (exchange.held, room._left) == (0, 100)
        return exchange.bytes_in, refused.value.code

    assert asyncio.run(run()) == (11, "body_too_large")


def test_a_body_is_whole_with_its_only_part_and_then_keeps_its_room() -> None:
    async def run() -> tuple[bool, str]:
        parts = iter([{"type": "http.request", "body": b"123456"}, {"type": "http.disconnect"}])
        room = Room(10)

        async def receive() -> Any:
            return next(parts)

        exchange = Exchange({"headers": []}, receive, receive, Limits(), room)  # type: ignore[arg-type]
        await exchange.receive()
        return Taker(room, "other").take(5), (await exchange.receive())["type"]

    assert asyncio.run(run()) == (False, "http.disconnect")


def gate(app: Any, *, keys: Keys | None = None, limits: Limits | None = None) -> Gate:
    access = Access(keys=keys, origins=frozenset({"https://example.org"}))
    return Gate(
        app,
        access=access,
        limits=limits or Limits(),
        metrics=Metrics(),
        routes=frozenset({"/", "/v1/summarize"}),
    )


async def through(
    made: Gate, path: str = "/v1/summarize", *headers: tuple[str, str], method: str = "POST"
) -> tuple[int, str]:
    """Return the status of an answer and the code of its error."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    told = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"type": "http", "method": method, "path": path, "headers": told, "client": ("a", 1)}
    await made(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(body)["error"]["code"] if body else ""


async def accepts(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers everything but HEAD, which it never sees."""
    await send({"type": "http.response.start", "status": 200 if scope["method"] != "HEAD" else 405})


SECRET = "s" * 40


@pytest.mark.parametrize(
    ("path", "headers", "told"),
    [
        ("/v1/summarize", [], (401, "invalid_api_key")),
        ("/v1/summarize", [("authorization", f"Bearer {SECRET}")], (200, "")),
        ("/v1/summarize", [("authorization", f"Bearer {SECRET}")] * 2, (400, "two_keys")),
        ("/v1/summarize", [("authorization", f"Bearer {SECRET}x")], (401, "invalid_api_key")),
        ("/health", [], (200, "")),
        ("/health/", [], (401, "invalid_api_key")),
    ],
)
def test_a_path_that_is_not_open_needs_one_key(path: str, headers: Any, told: tuple[int, str]) -> None:
    keys = Keys((Key("ann", hashlib.sha256(SECRET.encode()).digest()),))
    assert asyncio.run(through(gate(accepts, keys=keys), path, *headers)) == told


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ([("host", "localhost:80")], (200, "")),
        ([("host", "[::1]")], (200, "")),
        ([("host", "[::1]:80")], (200, "")),
        ([("host", "evil.example:1:localhost")], (403, "unknown_host")),
        ([("host", "LOCALHOST")], (200, "")),
        ([], (403, "unknown_host")),
        ([("host", "evil.example")], (403, "unknown_host")),
        ([("host", "localhost:80"), ("origin", "http://LOCALHOST:80")], (200, "")),
        ([("host", "localhost:80"), ("origin", "http://localhost:81")], (403, "other_origin")),
        ([("host", "localhost"), ("origin", "https://Example.org")], (200, "")),
        ([("host", "localhost"), ("content-encoding", "Identity")], (200, "")),
        ([("host", "localhost"), ("content-encoding", "")], (200, "")),
        ([("host", "localhost"), ("content-encoding", "gzip")], (415, "encoded_body")),
        ([("host", "localhost"), ("content-length", "10")], (200, "")),
        ([("host", "localhost"), ("content-length", "11")], (413, "body_too_large")),
        ([("host", "localhost"), ("content-length", "-1")], (400, "bad_length")),
        ([("host", "localhost"), ("content-length", "9" * 18)], (413, "body_too_large")),
        ([("host", "localhost"), ("content-length", "9" * 19)], (400, "bad_length")),
    ],
)
def test_without_keys_hosts_origins_and_sizes_decide(headers: Any, told: tuple[int, str]) -> None:
    assert asyncio.run(through(gate(accepts, limits=Limits(body=10)), "/v1/summarize", *headers)) == told


def test_requests_of_a_key_are_counted_but_not_those_for_models() -> None:
    keys = Keys((Key("ann", hashlib.sha256(SECRET.encode()).digest()),))
    made = gate(accepts, keys=keys, limits=Limits(per_minute=1))
    header = ("authorization", f"Bearer {SECRET}")
    paths = ["/v1/models"] * 3 + ["/v1/summarize"] * 2
    found = [asyncio.run(through(made, path, header))[0] for path in paths]
    assert found == [200, 200, 200, 200, 429]


def test_what_is_no_request_passes_only_at_the_beginning_and_the_end() -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    async def run() -> None:
        nothing: Any = None
        for kind in ("lifespan", "websocket"):
            await gate(app)({"type": kind}, nothing, nothing)

    asyncio.run(run())
    assert seen == ["lifespan"]


def test_a_fault_and_a_head_are_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    host = ("host", "localhost")
    assert asyncio.run(through(gate(fails), "/", host)) == (500, "internal_error")
    assert "fault" in [each.message for each in caplog.records]
    assert asyncio.run(through(gate(accepts), "/", host, method="HEAD")) == (200, "")


@pytest.mark.parametrize(
    ("path", "host", "bounded", "route"),
    [
        ("/v1/summarize", "localhost", False, "/v1/summarize"),
        ("/v1/summarize", "evil.example", True, "/v1/summarize"),
        ("/", "localhost", True, "/"),
        ("/nowhere", "localhost", False, "other"),
    ],
)
def test_lines_of_requests_that_cost_nothing_are_bounded(
    path: str, host: str, bounded: bool, route: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "precis.server"):
        asyncio.run(through(gate(accepts), path, ("host", host)))
    told = [vars(each) for each in caplog.records if each.message == "request"]
    assert [(each["bounded"], each["fields"]["route"]) for each in told] == [(bounded, route)]


@pytest.mark.parametrize("status", [400, 499, 503])
def test_lines_of_refused_requests_without_a_key_are_bounded(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        raise ApiError(status, "no", "no")

    with caplog.at_level("INFO", "precis.server"):
        asyncio.run(through(gate(refuses), "/v1/summarize", ("host", "localhost")))
    assert [vars(each)["bounded"] for each in caplog.records if each.message == "request"] == [True]


def test_the_seconds_of_a_request_are_logged_to_the_tenth_of_a_millisecond(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = iter([1.0, 1.123456])
    monkeypatch.setattr(middleware, "time", SimpleNamespace(monotonic=clock.__next__))
    with caplog.at_level("INFO", "precis.server"):
        asyncio.run(through(gate(accepts), "/", ("host", "localhost")))
    assert [vars(each)["fields"]["seconds"] for each in caplog.records if each.message == "request"] == [
        0.1235
    ]
