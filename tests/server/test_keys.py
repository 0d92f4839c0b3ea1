"""Keys: who has none gets nothing but the page, the schema and the two questions of a supervisor."""

import random
import socket
from pathlib import Path

import pytest

from precis.errors import UserError
from precis.server.keys import Keys, Rates
from precis.server.limits import Limits
from precis.server.run import Address, access_to

SECRET = "0123456789abcdef0123"


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    path = tmp_path / "keys"
    path.write_text(f"# ours\nann {SECRET}\nbob {SECRET[::-1]}\n")
    return Keys.read(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no key"),
        ("ann", "line 1: write a name"),
        ("ann short", "at least 16"),
        (f"a {SECRET}\na {SECRET}x", "there twice"),
        (f"a {SECRET}é", "letters, digits"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(UserError, match=problem) as caught:
        Keys.read(path)
    assert SECRET not in str(caught.value)


def test_others_need_keys() -> None:
    assert access_to(Address(host="127.0.0.1"), None).keys is None
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):
        with pytest.raises(UserError, match="--keys"):
            access_to(Address(host=host), None)


def test_rates_come_back_with_time() -> None:
    now = [0.0]
    rates = Rates(2, now=lambda: now[0])
    assert [rates.wait("a"), rates.wait("a"), rates.wait("a"), rates.wait("b")] == [0, 0, 30, 0]
    now[0] = 30.0
    assert [rates.wait("a"), rates.wait("a")] == [0, 30]


def test_a_key_opens_and_its_rate_holds(serve, keys: Keys) -> None:
    service = serve(keys=keys, limits=Limits(per_minute=2))
    with service.client(headers={"Authorization": f"Bearer {SECRET}"}) as client:
        statuses = [client.get("/v1/models").status_code for _ in range(3)]
        answer = client.get("/v1/models")
    assert statuses == [200, 200, 429]
    assert int(answer.headers["retry-after"]) >= 1
    with service.client(headers={"Authorization": f"Bearer {SECRET[::-1]}"}) as client:
        assert client.get("/v1/models").status_code == 200


def payloads(count: int) -> list[tuple[str, dict[str, bytes]]]:
    """Paths and headers of somebody without a key."""
    rng = random.Random(0)
    paths = ["/v1/models", "/metrics", "/v1/summarize", "/v1/responses"]
    turns = ["//{}", "/./{}", "/page.css/..{}", "/health/../{}", "{}/", "{}?x=/health", "/%2e{}", "{}%00"]
    turns += ["{};/health", "/health%2f..{}", "{}%2f", "/ready\\..{}", "{}#/health", "/%76{}", "{}"]
    schemes = ["", "Bearer", "Bearer ", "bearer {}", "Basic {}", "Bearer  {}", "Bearer {} {}", "{}"]
    made = []
    for _ in range(count):
        path = rng.choice(turns).format(rng.choice(paths))
        kind = rng.randrange(4)
        wrong = (
            SECRET[: rng.randrange(20)]
            if kind == 0
            else SECRET.upper()
            if kind == 1
            else SECRET + chr(rng.randrange(33, 127))
            if kind == 2
            else bytes(rng.randrange(33, 127) for _ in range(20)).decode()
        )
        headers = {"Authorization": rng.choice(schemes).replace("{}", wrong).encode()}
        if rng.random() < 0.3:
            headers["X-Forwarded-For"] = headers["X-Original-URL"] = b"/health"
        made.append((path, headers))
    return made


def test_a_thousand_payloads_get_nothing(serve, keys: Keys) -> None:
    service = serve(keys=keys)
    port = int(service.url.rsplit(":", 1)[1])
    for path, headers in payloads(1000):
        lines = [f"GET {path} HTTP/1.1".encode(), b"Host: localhost", b"Connection: close"]
        lines += [name.encode() + b": " + value for name, value in headers.items()]
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"\r\n".join([*lines, b"", b""]))
            answer = connection.makefile("rb").read()
        assert answer[9:12] in (b"400", b"401", b"404"), (path, headers, answer[:200])
        assert b"tiny" not in answer
