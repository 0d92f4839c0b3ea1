"""Keys: who has none gets nothing but the page, the schema and the two questions of a supervisor."""

import logging
import signal
import socket
import string
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from faults.service.intrusions import Target, try_all
from faults.service.payload import Payload, request
from precis.server import server_run
from precis.server.client_keys import Keys, Rates
from precis.server.connections import ConnectionLimits
from precis.server.limits import Limits
from precis.server.listener import Address
from precis.server.server_run import access_to, reload_keys
from precis_text.errors import UserError
from tests.server.conftest import Serve

SECRET = "0123456789abcdefABCDEF0123"


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    path = tmp_path / "keys"
    path.write_text(f"# ours\nann {SECRET}\nbob {SECRET[::-1]}\n")
    return Keys.read(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "contains no key"),
        ("ann", "line 1: write a name"),
        ("ann short", "at least 16"),
        (f"a {SECRET}\na {SECRET}x", "duplicate name a"),
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
    now[0] = 45.0
    assert rates.wait("a") == 15
    now[0] = 75.0  # one and a half are there
    assert [rates.wait("a"), rates.wait("a")] == [0, 15]


def test_a_long_pause_allows_no_more_than_a_minutes_requests() -> None:
    now = [0.0]
    rates = Rates(2, now=lambda: now[0])
    assert rates.wait("a") == 0
    now[0] = 36_000.0
    assert [rates.wait("a") for _ in range(3)] == [0, 0, 30]


def test_a_key_opens_and_its_rate_holds(serve: Serve, keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    service = serve(keys=keys, limits=Limits(per_minute=2))
    with service.client(headers={"Authorization": f"Bearer {SECRET}"}) as client:
        assert [client.get("/v1/models").status_code for _ in range(9)] == [200] * 9  # do not count
        statuses = [client.get("/metrics").status_code for _ in range(3)]
        with caplog.at_level(logging.INFO, "precis.server"):
            answer = client.get("/metrics")
            until = time.monotonic() + 10
            while not caplog.records and time.monotonic() < until:  # a line comes behind its answer
                time.sleep(0.01)
    assert statuses == [200, 200, 429]
    assert int(answer.headers["retry-after"]) >= 1
    fields = [vars(one)["fields"] for one in caplog.records if one.name == "precis.server"][-1]
    assert (fields["status"], fields["key"]) == (429, "ann")
    with service.client(headers={"Authorization": f"Bearer {SECRET[::-1]}"}) as client:
        assert client.get("/v1/models").status_code == 200


def test_keys_are_read_again_all_or_none(
    serve: Serve, keys: Keys, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    new = SECRET.swapcase()
    with serve(keys=keys).client() as client:

        def status(secret: str) -> int:
            return client.get("/v1/models", headers={"Authorization": f"Bearer {secret}"}).status_code

        assert [status(SECRET), status(new)] == [200, 401]
        (tmp_path / "keys").write_text(f"eve {new}\n")
        with caplog.at_level(logging.INFO, "precis.server"):
            reload_keys(keys)
        told: Any = next(each for each in caplog.records if each.message == "keys_reloaded")
        assert (told.fields, told.bounded) == ({"keys": 1}, False)
        assert [status(SECRET), status(new)] == [401, 200]
        (tmp_path / "keys").write_text(f"eve {new}\nshort key\n")
        with caplog.at_level(logging.ERROR, "precis.server"):
            reload_keys(keys)
        assert [status(SECRET), status(new)] == [401, 200]
    refused: Any = next(each for each in caplog.records if each.message == "keys_not_reloaded")
    assert "line 2" in refused.fields["reason"]
    assert not refused.bounded


def test_the_schema_says_where_a_key_is_needed(serve: Serve, keys: Keys) -> None:
    with serve(keys=keys).client() as client:
        schema = client.get("/openapi.json").json()
    needed = {path for path, way in schema["paths"].items() if next(iter(way.values()))["security"]}
    assert needed == schema["paths"].keys() - {"/health", "/ready"}
    with serve().client() as client:
        assert "securitySchemes" not in client.get("/openapi.json").json()["components"]


@pytest.mark.long
def test_a_thousand_payloads_get_nothing(serve: Serve, keys: Keys) -> None:
    service = serve(keys=keys)
    came, got_in = try_all(service.port, SECRET, "ann", every=2)
    assert sum(map(Counter.total, came.values())) > 1000
    assert got_in == []
    assert set(came) >= {
        "scheme",
        "other place",
        "key almost",
        "path",
        "file",
        "method",
        "length",
        "behind a key",
    }


@pytest.mark.long
def test_pages_of_other_sites_get_nothing_from_a_server_without_keys(serve: Serve) -> None:
    came, got_in = try_all(serve().port, "", "", every=3)
    assert got_in == []
    assert came["stranger"].total() > 100
    assert came["stranger"]["403"] > came["stranger"].total() / 2


def test_a_host_or_origin_that_gets_in_without_keys_is_found(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precis.server.middleware.Gate._check_host", lambda *_: None)
    port = serve().port
    target = Target(port, "", frozenset())
    assert not target.opens()
    assert target.attempt(Payload("stranger", request("/v1/models", host="evil.example"))) == ("200", False)
    _, got_in = try_all(port, "", "", every=40)
    assert len(got_in) > 3


def test_payloads_that_get_in_are_found(serve: Serve) -> None:
    service = serve()  # without keys everything is open
    target = Target(service.port, f"Authorization: Bearer {SECRET}", frozenset())
    assert not target.opens()
    assert target.attempt(Payload("path", request("/v1/models"))) == ("200", False)
    assert target.attempt(Payload("path", request("/v1/nothing"))) == ("404", True)
    assert target.attempt(Payload("length", request("/v1/models"), after_a_key=True)) == ("200", False)


class _NoModels:
    def load_all(self) -> None:
        raise UserError("no models here")


@pytest.mark.parametrize("has_keys", [True, False])
def test_a_service_reads_its_keys_again_on_sighup_only_if_it_has_some(
    keys: Keys, monkeypatch: pytest.MonkeyPatch, has_keys: bool
) -> None:
    again: list[Any] = []
    monkeypatch.setattr(server_run, "reload_keys", again.append)
    before = signal.getsignal(signal.SIGHUP)
    address = Address()
    try:
        with socket.socket() as opened, pytest.raises(UserError, match="no models here"):
            server_run.serve(
                _NoModels(),  # type: ignore[arg-type]
                opened=opened,
                address=address,
                access=access_to(address, keys if has_keys else None),
                limits=Limits(),
                connections=ConnectionLimits(),
                notify=lambda _: None,
            )
        handler = signal.getsignal(signal.SIGHUP)
        assert (handler is before) == (not has_keys)
        if has_keys:
            assert callable(handler)
            handler(signal.SIGHUP, None)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert again == ([keys] if has_keys else [])


def test_requests_of_a_key_have_no_limit_in_a_minute_by_default() -> None:
    assert Limits().per_minute == 0
    rates = Rates(0)
    assert [rates.wait("a") for _ in range(1000)] == [0] * 1000


def test_a_secret_of_16_letters_opens_by_its_own_scheme_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"ann {'s' * 16}\n\n  # old: eve {'e' * 40}\nbob {'t' * 40}\n")
    keys = Keys.read(path)
    assert [key.name for key in keys.keys] == ["ann", "bob"]
    opened = [keys.find(f"{scheme} {'s' * 16}".encode()) for scheme in ("Bearer", "bearer", "Basic")]
    assert [key and key.name for key in opened] == ["ann", "ann", None]
    assert [keys.find(sent) for sent in (b"", b"Bearer", b"Bearer " + b"s" * 15)] == [None] * 3
    signs = string.ascii_letters + string.digits + "-._~+/="
    path.write_text(f"ann {signs}\n")
    assert Keys.read(path).find(f"Bearer {signs}".encode())
    path.write_text(f"ann {'s' * 16} more\n")
    with pytest.raises(UserError, match="line 1: write a name, a space and a secret"):
        keys.reload()
    assert Keys(keys.keys).reload() == 2  # without a file they stay


def test_a_file_of_keys_has_at_most_a_mebibyte(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    line = f"ann {'s' * 16}\n"
    path.write_text(line + "#" * ((1 << 20) - len(line)))
    assert len(Keys.read(path).keys) == 1
    path.write_text(line + "#" * ((1 << 20) - len(line) + 1))
    with pytest.raises(UserError):
        Keys.read(path)


def test_a_key_that_is_printed_shows_its_name_alone(keys: Keys) -> None:
    assert str(keys.keys[0]) == "Key(name='ann')"
