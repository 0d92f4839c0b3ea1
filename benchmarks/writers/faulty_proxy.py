"""A proxy between precis and a server that makes one kind of fault."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

FAULTS = ("busy twice", "first stream breaks", "all streams break", "a byte at a time")
_BUSY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_BROKEN = 1200  # bytes of an answer before its connection breaks


class FaultyProxy:
    """A proxy in threads of this process; faults concern requests for a reply only.

    Attributes:
        address: its base address, with /v1.
    """

    def __init__(self, server: str, fault: str) -> None:
        parts = urlsplit(server)
        self._server, self._fault, self._asked = (str(parts.hostname), int(parts.port or 80)), fault, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server:
            request = client.recv(1 << 16)
            # a connection has one request, so that each one for a reply is seen
            request = request.replace(b"Connection: keep-alive", b"Connection: close", 1)
            is_reply = request.startswith(b"POST")
            self._asked += is_reply
            if is_reply and self._fault == "busy twice" and self._asked <= 2:
                _rest(client, request)
                client.sendall(_BUSY)
                return
            threading.Thread(target=_pass, args=(client, server, request), daemon=True).start()
            with suppress(BrokenPipeError, ConnectionResetError):  # the client has what it wants, or gave up
                self._answer(client, server, faulty=is_reply)

    def _answer(self, client: socket.socket, server: socket.socket, *, faulty: bool) -> None:
        """Pass the answer on, with the fault."""
        breaks = faulty and (
            self._fault == "all streams break" or (self._fault == "first stream breaks" and self._asked == 1)
        )
        slow = faulty and self._fault == "a byte at a time"
        passed = 0
        while block := _received(server):
            block = block[: _BROKEN - passed] if breaks else block
            passed += len(block)
            if slow:
                for byte in block:
                    client.sendall(bytes([byte]))
                    time.sleep(0.0005)
            else:
                client.sendall(block)
            if breaks and passed >= _BROKEN:
                client.shutdown(socket.SHUT_RDWR)  # closing would wait for the thread that reads
                return

    def __enter__(self) -> FaultyProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(1 << 16)
    except OSError:
        return b""


def _pass(client: socket.socket, server: socket.socket, first: bytes) -> None:
    """Pass a request on until its client leaves."""
    block = first
    while block:
        try:
            server.sendall(block)
        except OSError:
            return
        block = _received(client)


def _rest(client: socket.socket, first: bytes) -> None:
    """Read the rest of a request, by its length."""
    head, _, body = first.partition(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ),
        0,
    )
    while len(body) < length and (block := client.recv(1 << 16)):
        body += block
