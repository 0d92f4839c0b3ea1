"""Requests that violate HTTP: methods, versions, false lengths, headers without end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from faults.service.payload import SHUT, TEXT, each, request

_METHODS = each("HEAD|OPTIONS|PUT|PATCH|DELETE|TRACE|CONNECT|PROPFIND|POST|get|Get|GETS|HEALTH|G\tET|")
_LENGTHS = each("0|5|+5|-1|0x10|5, 5|5, 6|1e3|5\x00|\u0665|99999999999999999999|| |5 5|5;q=1")
_CODINGS = each(
    'chunked|Chunked|chunked, identity|identity, chunked|gzip, chunked|xchunked| chunked|chunked\x0b|"chunked"'
)
_HIDDEN = ("Transfer-Encoding : chunked", "Transfer_Encoding: chunked", "X: y\nTransfer-Encoding: chunked")
_SIZES = each("5|-1|+5|0x5|5 5||g|FFFFFFFFFFFFFFFF|ffffffffffffffffffff|00000000000000000005")


def methods() -> Iterator[bytes]:
    """Yield other methods and versions of HTTP, and other protocols."""
    for method, path in product(_METHODS, (*SHUT, "/", "/health")):
        yield request(path, method=method)
        yield request(path, method=method, body=TEXT)
    for header in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        yield request("/health", f"{header}: POST", body=TEXT)
        yield request("/v1/summarize", f"{header}: GET", method="POST", body=TEXT)
    for version in ("0.9", "1.0", "1.2", "2.0", "3", "1.1 ", "", "1.1.1"):
        yield request("/v1/models", version=version)
    yield b"GET /v1/models\r\n\r\n"
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    socket = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: " + "A" * 22 + "==",
    )
    for path in SHUT:
        yield request(path, *socket)
        yield request(
            path, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"
        )


def _head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def lengths() -> Iterator[bytes]:
    """Yield bodies with a false length, followed by a request for a closed resource that may be read by mistake."""
    inner, chunked = request("/v1/models"), "Transfer-Encoding: chunked"
    for path, length in product(("/health", "/v1/summarize"), _LENGTHS):
        yield _head("POST", path, f"Content-Length: {length}") + inner
    for pair in (("5", "500"), ("500", "5"), ("0", "5")):
        yield _head("POST", "/health", *(f"Content-Length: {length}" for length in pair)) + inner
    for path, coding in product(("/health", "/v1/summarize"), _CODINGS):
        for lengths_too in ((), ("Content-Length: 4",), ("Content-Length: 600",)):
            yield _head("POST", path, f"Transfer-Encoding: {coding}", *lengths_too) + b"0\r\n\r\n" + inner
    for header in (*_HIDDEN, "Transfer-Encoding:\r\n chunked"):
        yield _head("POST", "/health", header, "Content-Length: 5") + b"0\r\n\r\n" + inner
    for size, end in product([*_SIZES, "5;" + "x" * 9000], ("\r\n", "\n", "\r")):
        yield _head("POST", "/health", chunked) + f"{size}{end}hello\r\n0\r\n\r\n".encode() + inner
    yield _head("POST", "/health", chunked) + b"5\r\nhello0\r\n\r\n" + inner
    yield _head("POST", "/health", chunked) + b"0\r\nAuthorization: Bearer x\r\n\r\n" + inner
    for line in (b"\n", b"\r", b"\r\r\n", b"\n\n"):
        yield b"GET /health HTTP/1.1" + line + b"Host: localhost" + line + line + inner
    yield _head("GET", "/health", "X: a\nGET /v1/models HTTP/1.1") + inner
    yield _head("GET", "/health", "no colon") + inner
    yield b"\r\n" * 50 + inner
    yield bytes(range(256)) + inner


def behind_a_key() -> Iterator[bytes]:
    """Yield requests that would use the key of the request before them, if a connection had a key."""
    for path, method in product(SHUT, ("GET", "POST", "HEAD")):
        yield request(path, method=method)
    yield request("/v1/models", "Authorization: ")
    yield request("/v1/models", "Connection: keep-alive, Authorization")
    yield request("/health", keep=True) + request("/v1/models", keep=True) + request("/metrics")
    yield from lengths()


def large() -> Iterator[bytes]:
    """Yield heads of up to 2 MB."""
    for count in (5_000, 60_000, 200_000, 2_000_000):
        long = "a" * count
        yield request("/v1/models", f"Authorization: Bearer {long}")
        yield request("/v1/models", f"Authorization: {long} x")
        yield request(f"/{long}")
        yield request(f"/v1/models?{long}")
        yield request("/v1/models", f"{long}: x")
        yield request("/v1/models", *(f"X-{number}: y" for number in range(count // 50)))
        yield request("/v1/models", method=long)
        yield request("/v1/summarize", method="POST", body=b'{"text": "%s"}' % long.encode())
        yield long.encode()
