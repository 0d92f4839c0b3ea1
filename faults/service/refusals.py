"""Time until the service refuses excessive requests: `python -m faults.service.refusals`.

Each request is sent several times to `precis serve` with the default model, on a connection of its own. Time runs from
the first byte that is sent to the first byte of the answer. Exit code 1 if an answer is another one, or if the quickest
of a kind takes 100 ms: on a busy machine, the quickest shows the time that the service itself takes.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from benchmarks.service.load import cpu_seconds, start
from faults.service.payload import request

LIMIT = 0.1  # seconds
BILLION = 10**9
_SUMMARIZE, _CHAT, _RESPONSES = "/v1/summarize", "/v1/chat/completions", "/v1/responses"


@dataclass(frozen=True)
class Excess:
    """A request that asks for too much.

    Attributes:
        sent: all of its bytes, or the first ones.
        more: mebibytes of zeros that follow them.
    """

    name: str
    status: int
    sent: bytes
    more: int = 0


def excesses(model: str = "default") -> Iterator[Excess]:
    """Yield all excessive requests, for a service whose model has that name."""
    head = request(_SUMMARIZE, f"Content-Length: {100 << 20}", method="POST")
    yield Excess("a body of 100 MB, announced", 413, head)
    yield Excess("a body of 100 MB, sent", 413, head, more=100)
    million = "a b " * 1_000_000
    yield Excess("a document of a million tokens", 413, _post(_SUMMARIZE, text=million))
    yield Excess("a million tokens in ten documents", 413, _post(_SUMMARIZE, text=[million[:400_000]] * 10))
    yield Excess("a chat of a million tokens", 413, _chat(model, million))
    for field in ("words", "sentences", "tokens", "min_words"):
        yield Excess(f"{field} = 10^9", 422, _post(_SUMMARIZE, text="A text.", **{field: BILLION}))
    for field in ("n", "max_tokens", "max_completion_tokens"):
        yield Excess(f"{field} = 10^9", 400, _chat(model, "A text.", **{field: BILLION}))
    yield Excess(
        "max_output_tokens = 10^9", 400, _post(_RESPONSES, model=model, input="A", max_output_tokens=BILLION)
    )
    yield Excess(
        "words of a million digits", 400, _post_raw(b'{"text": "A", "words": 1' + b"0" * 1_000_000 + b"}")
    )
    yield Excess("a hundred thousand lists in lists", 400, _post_raw(b'{"text": ' + b"[" * 100_000))
    yield Excess("65 documents", 413, _post(_SUMMARIZE, text=["A text."] * 65))


def _post(path: str, **value: Any) -> bytes:
    return request(path, method="POST", body=json.dumps(value).encode())


def _post_raw(body: bytes) -> bytes:
    return request(_SUMMARIZE, method="POST", body=body)


def _chat(model: str, text: str, **more: int) -> bytes:
    return _post(_CHAT, model=model, messages=[{"role": "user", "content": text}], **more)


def refuse(port: int, excess: Excess) -> tuple[int, float]:
    """Send it: the status of the answer, and the seconds until it came."""

    def send() -> None:
        with suppress(OSError):  # it is refused before all was sent
            connection.sendall(excess.sent)
            for _ in range(excess.more):
                connection.sendall(bytes(1 << 20))

    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        sender = threading.Thread(target=send)
        began = time.perf_counter()
        sender.start()
        answer = connection.recv(4096)
        seconds = time.perf_counter() - began
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        sender.join()
    return int(answer[9:12]), seconds


def main() -> int:
    """Parse, load the default model, and send."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    from precis.generation.model_location import default_model

    process, url = start(str(default_model()), "precis", 1)
    well = True
    try:
        for excess in excesses():
            used = cpu_seconds(process)
            came = [refuse(int(url.rsplit(":", 1)[1]), excess) for _ in range(options.times)]
            used = (cpu_seconds(process) - used) / options.times
            statuses, seconds = {status for status, _ in came}, [took for _, took in came]
            here = statuses == {excess.status} and min(seconds) < LIMIT
            well &= here
            said = [
                f"{excess.name:34} {'/'.join(map(str, sorted(statuses)))}",
                f"quickest {1000 * min(seconds):5.1f} ms",
                f"median {1000 * statistics.median(seconds):6.1f} ms",
                f"CPU {1000 * used:5.1f} ms",
            ]
            print("  ".join(said if here else [*said, "FAILED"]), flush=True)
    finally:
        process.terminate()
        process.wait(60)
    return 0 if well else 1


if __name__ == "__main__":
    raise SystemExit(main())
