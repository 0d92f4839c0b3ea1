"""Requests as bytes, so that they can be wrong in ways that no client of HTTP allows."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass

SHUT = ("/v1/models", "/metrics", "/v1/summarize", "/v1/responses")
TEXT = b'{"text":"The harbour was closed on Monday. A storm had damaged two cranes."}'


@dataclass(frozen=True)
class Payload:
    """Bytes to send over a connection of their own.

    Attributes:
        kind: what it tries.
        sent: the bytes.
        after_a_key: a request with the right key goes before it on the same connection.
        whole: it is a whole request, so an answer comes without more.
    """

    kind: str
    sent: bytes
    after_a_key: bool = False
    whole: bool = True


def each(words: str) -> list[str]:
    """Split words at bars, ignoring line ends."""
    return words.replace("\n", "").split("|")


def secret_of(seed: int) -> str:
    """Draw a key of 40 letters and digits."""
    return "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=40))


def request(
    path: str,
    *headers: str | bytes,
    method: str = "GET",
    version: str = "1.1",
    host: str = "localhost",
    body: bytes = b"",
    keep: bool = False,
) -> bytes:
    """Build one request; the connection ends behind it unless it is kept."""
    lines: list[str | bytes] = [f"{method} {path} HTTP/{version}", f"Host: {host}", *headers]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if not keep:
        lines.append("Connection: close")
    return b"\r\n".join(line if isinstance(line, bytes) else line.encode() for line in [*lines, "", body])
