"""More than a thousand attempts to get in without a key: `python -m faults.service.intrusions`.

`precis serve` is started on loopback, once with a file of keys and once as it is by default, without keys. There the
pages of other sites must not get in. Each payload has a connection of its own. What may come back: an error of the
client's (4xx), an open resource as it is, or nothing. Exit code 1 if one gets anything else, or if the server does not
answer to its key, or to its own host, afterwards.
"""

from __future__ import annotations

import argparse
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.service.load import start
from faults.service import framings, keys_and_paths
from faults.service.payload import Payload, request, secret_of

OPEN = ("/", "/page.css", "/page.js", "/health", "/ready", "/openapi.json")
_WAIT = 0.5  # seconds for the answer to an incomplete request


def payloads(secret: str, name: str) -> list[Payload]:
    """List all payloads against a key and its name."""
    kinds = {
        "scheme": keys_and_paths.schemes(secret, name),
        "other place": keys_and_paths.places(secret, name),
        "key almost": keys_and_paths.keys(secret),
        "path": keys_and_paths.paths(),
        "file": keys_and_paths.files(),
        "method": framings.methods(),
    }
    made = [Payload(kind, sent) for kind, all_sent in kinds.items() for sent in all_sent]
    made += [Payload("length", sent, whole=False) for sent in framings.lengths()]
    made += [Payload("large", sent, whole=False) for sent in framings.large()]
    behind = framings.behind_a_key()
    return made + [Payload("behind a key", sent, after_a_key=True, whole=False) for sent in behind]


def keyless_payloads() -> list[Payload]:
    """List all payloads against a server without keys; none of them comes from its own page."""
    return [Payload("stranger", sent) for sent in keys_and_paths.strangers()]


@dataclass(frozen=True)
class Answer:
    """One answer of a server."""

    status: int
    length: str
    body: bytes


@dataclass(frozen=True)
class Target:
    """A server with keys, or without.

    Attributes:
        key: the header that opens it; "" for a server that opens to its own host.
        open: the bodies that every client may see.
    """

    port: int
    key: str
    open: frozenset[bytes]

    @classmethod
    def of(cls, port: int, secret: str) -> Target:
        """Ask a server for its open resources; without a secret, from its own host."""
        seen = frozenset(answers(send(port, request(path)))[0].body for path in OPEN)
        return cls(port, f"Authorization: Bearer {secret}" if secret else "", seen)

    def opens(self) -> bool:
        """Test whether it answers to its key, or without keys to its own host, and to no one else."""
        if self.key:
            asked, wanted = (request("/v1/models", self.key), request("/v1/models")), [200, 401]
        else:
            asked, wanted = (request("/v1/models"), request("/v1/models", host="evil.example")), [200, 403]
        return [answers(send(self.port, sent))[0].status for sent in asked] == wanted

    def attempt(self, payload: Payload) -> tuple[str, bool]:
        """Send a payload; return the outcome in a word, and whether it is allowed."""
        before = request("/v1/models", self.key, keep=True) if payload.after_a_key else b""
        found = answers(send(self.port, before + payload.sent, wait=None if payload.whole else _WAIT))
        if payload.after_a_key:
            if not found or found[0].status != 200:
                return "its own key was refused", False
            found = found[1:]
        if not found:
            return "closed", True
        return "+".join(str(one.status) for one in found), all(map(self.may_be, found))

    def may_be(self, answer: Answer) -> bool:
        """Test whether a client without a key may get an answer."""
        if answer.status == 200:  # HEAD has only the length
            lengths = {str(len(body)) for body in self.open}
            return answer.body in self.open or (not answer.body and answer.length in lengths)
        return 400 <= answer.status < 500


def send(port: int, sent: bytes, *, wait: float | None = None) -> bytes:
    """Send bytes over a connection of their own and read until it is closed, or nothing came for `wait` seconds."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=wait or 60) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # it was closed before all was sent
            connection.sendall(sent)
        with suppress(ConnectionResetError, *([] if wait is None else [TimeoutError])):
            while part := connection.recv(1 << 16):
                received += part
    return received


def answers(received: bytes) -> list[Answer]:
    """Parse the answers from the bytes of a connection.

    Raises:
        ValueError: the bytes are not HTTP answers.
    """
    return list(_answers(received))


def _answers(received: bytes) -> Iterator[Answer]:
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        if not first.startswith("HTTP/1.1 "):
            raise ValueError(f"no answer: {received[:80]!r}")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = headers.get("content-length", str(len(rest)))
        size = int(length) if not rest.startswith(b"HTTP/1.1 ") else 0  # an answer to HEAD lacks a body
        yield Answer(int(first[9:12]), length, rest[:size])
        received = rest[size:]


def try_all(
    port: int, secret: str, name: str, *, every: int = 1
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Send all payloads, or every `every`th; return the outcomes of each kind, and the payloads that got in.

    Args:
        secret: a key of the server; "" if it does not have one.
    """
    target = Target.of(port, secret)
    came: dict[str, Counter[str]] = {}
    got_in = [] if target.opens() else ["the key does not open before all of it"]
    for payload in (payloads(secret, name) if secret else keyless_payloads())[::every]:
        said, may = target.attempt(payload)
        came.setdefault(payload.kind, Counter())[said] += 1
        if not may:
            got_in.append(f"{payload.kind}: {payload.sent[:200]!r} got {said}")
    if not target.opens():
        got_in.append("the key does not open after all of it")
    return came, got_in


def main() -> int:
    """Parse, load the default model with a key, and try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the key")
    parser.add_argument("--every", type=int, default=1, help="send every Nth payload only")
    options = parser.parse_args()
    secret = secret_of(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "keys"
        file.write_text(f"ann {secret}\n")
        with_keys = _attack(secret, options.every, "--keys", str(file))
    return 1 if with_keys + _attack("", options.every) else 0


def _attack(secret: str, every: int, *how: str) -> int:
    """Start a server, try, and print what came; how many got in."""
    from precis.generation.model_location import default_model

    process, url = start(str(default_model()), "precis", 1, *how)
    began = time.monotonic()
    try:
        came, got_in = try_all(int(url.rsplit(":", 1)[1]), secret, "ann", every=every)
    finally:
        process.terminate()
        process.wait(60)
    for kind, counts in came.items():
        said = ", ".join(f"{count:,} {what}" for what, count in counts.most_common())
        print(f"{kind:13} {sum(counts.values()):5,} payloads: {said}")
    total = sum(sum(counts.values()) for counts in came.values())
    for one in got_in:
        print(f"GOT IN {one}")
    told = f"{total:,} payloads in {time.monotonic() - began:.0f} s, {len(got_in)} got in"
    print(f"{'with keys' if secret else 'without keys'}: {told}")
    return len(got_in)


if __name__ == "__main__":
    raise SystemExit(main())
