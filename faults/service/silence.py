"""Attack a server by clients that send nothing, or nothing whole: `python -m faults.service.silence`.

`precis serve` starts on loopback with a file of keys. A client with a key asks for a summary again and again. First it
has the server to itself. Then there are 2,000 silent connections, 100 heads that come a byte a second, and 64 bodies
whose last byte never comes, in turn; before each it has the server to itself again. The exit code is 1 if its median
answer takes more than twice the quiet time just before. It is also 1 if an answer does not have status 200, or the log
grows by 1 MB.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.service.load import texts
from faults.service.payload import request, secret_of

MOST_LOG = 1_000_000  # bytes
MOST_TIMES = 2.0  # the quiet time
_BODY = 4 << 20  # bytes, the most that a request may have


@dataclass(frozen=True)
class Attack:
    """Connections that are opened again whenever the server closes them.

    Attributes:
        count: connections at once.
        first: bytes that each sends at once.
        byte: sent to each once a second.
    """

    name: str
    count: int
    first: bytes = b""
    byte: bytes = b""


def attacks(secret: str) -> list[Attack]:
    """Return the attacks; the bodies have a key, since without one no body is read."""
    key = f"Authorization: Bearer {secret}"
    whole = request("/v1/summarize", key, method="POST", keep=True, body=b" " * _BODY)
    return [
        Attack("silent connections", 2000),
        Attack("slow heads", 100, b"GET /health HTTP/1.1\r\nX: ", b"a"),
        Attack("unfinished bodies", 64, whole[:-1]),
    ]


class Attackers(threading.Thread):
    """One attack on a port, until it is stopped."""

    def __init__(self, attack: Attack, port: int) -> None:
        super().__init__(daemon=True)
        self._attack, self._port = attack, port
        self._stop_now = threading.Event()
        self.opened = 0
        self.complete = threading.Event()  # all connections were open once

    def run(self) -> None:
        """Open connections, send, and open those again that were closed, at most 500 a second."""
        with selectors.DefaultSelector() as selector:
            while not self._stop_now.is_set():
                missing = self._attack.count - len(selector.get_map())
                for _ in range(min(missing, 50)):
                    self._open(selector)
                if missing <= 0 or self.opened >= self._attack.count:
                    self.complete.set()
                self._drop_closed(selector)
            for key in list(selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]

    def _open(self, selector: selectors.BaseSelector) -> None:
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        connection.setblocking(False)
        selector.register(
            connection, selectors.EVENT_READ | selectors.EVENT_WRITE, [memoryview(self._attack.first), 0.0]
        )
        self.opened += 1

    def _drop_closed(self, selector: selectors.BaseSelector) -> None:
        for key, events in selector.select(0.1):
            connection, state = key.fileobj, key.data
            assert isinstance(connection, socket.socket)
            try:
                if events & selectors.EVENT_READ and not connection.recv(65_536):
                    raise ConnectionResetError
                self._send(connection, state)
            except BlockingIOError:
                continue
            except OSError:
                selector.unregister(connection)
                connection.close()
        time.sleep(0.1)

    def _send(self, connection: socket.socket, state: list[memoryview | float]) -> None:
        left, last = state
        assert isinstance(left, memoryview)
        assert isinstance(last, float)
        if left:
            state[0] = left[connection.send(left) :]
        elif self._attack.byte and time.monotonic() - last > 1:
            connection.send(self._attack.byte)
            state[1] = time.monotonic()

    def end(self) -> None:
        """Stop and close all connections."""
        self._stop_now.set()
        self.join(30)


def answers(url: str, secret: str, *, count: int) -> list[float]:
    """Ask for summaries one after another, each over a connection of its own; return the seconds of each.

    Raises:
        SystemExit: an answer does not have status 200.
    """
    took = []
    for text in texts(count, seed=1):
        began = time.monotonic()
        answer = httpx.post(
            f"{url}/v1/summarize",
            json={"text": text, "words": 30},
            headers={"Authorization": f"Bearer {secret}"},
            timeout=60,
            trust_env=False,
        )
        if answer.status_code != 200:
            raise SystemExit(f"the client with a key got {answer.status_code}: {answer.text[:200]}")
        took.append(time.monotonic() - began)
    return took


def beside(attack: Attack, url: str, ask: Callable[[], list[float]]) -> tuple[list[float], int]:
    """Ask during an attack; return the seconds of each answer, and the connections that were opened."""
    attackers = Attackers(attack, int(url.rsplit(":", 1)[1]))
    attackers.start()
    attackers.complete.wait(60)
    try:
        return ask(), attackers.opened
    finally:
        attackers.end()


def start(keys: Path, log: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server with that file of keys and that log; return it and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "precis", "serve", "--port", str(port), "--keys", str(keys)]
    with log.open("wb") as stream:
        process = subprocess.Popen([*command, "--threads", "1"], stderr=stream)
    url = f"http://127.0.0.1:{port}"
    for _ in range(300):
        try:
            if httpx.get(f"{url}/ready", timeout=60, trust_env=False).status_code == 200:
                return process, url
        except httpx.HTTPError:
            time.sleep(0.2)
    process.kill()
    raise SystemExit("the server did not start")


def main() -> int:
    """Parse, start a server, and attack it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=40, help="asked for during each attack")
    options = parser.parse_args()
    ann, eve = secret_of(1), secret_of(2)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        keys, log = Path(folder) / "keys", Path(folder) / "log"
        keys.write_text(f"ann {ann}\neve {eve}\n")
        process, url = start(keys, log)
        try:
            answers(url, ann, count=5)
            for attack in attacks(eve):
                quiet = statistics.median(answers(url, ann, count=options.answers))
                print(f"{'quiet':20} median {1000 * quiet:6.0f} ms")
                before = log.stat().st_size
                took, opened = beside(attack, url, lambda: answers(url, ann, count=options.answers))
                grown, times = log.stat().st_size - before, statistics.median(took) / quiet
                failed |= times > MOST_TIMES or grown >= MOST_LOG
                print(
                    f"{attack.name:20} median {1000 * statistics.median(took):6.0f} ms  {times:.2f} times  "
                    f"longest {1000 * max(took):6.0f} ms  {opened:,} opened  log +{grown:,} bytes",
                    flush=True,
                )
        finally:
            process.terminate()
            process.wait(60)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
