"""Clients of the service without sockets: they call the ASGI application, in an order that a seed gives.

Some send their bodies in pieces, some leave before the body is whole, some while they wait, and some send no JSON. A
client that stays gets the summary that its document has by itself, or 503 while the queue is full. Those that left must
not hold their place: afterwards every document is answered.
"""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from precis.server.asgi_app import make_app
from precis.server.limits import Limits
from precis.server.middleware import Access
from precis.server.model_pool import ModelPool
from precis.server.served_model import ServedModel

_WAYS = ("whole", "pieces", "leaves early", "leaves while it waits", "no JSON")
_LIMITS = Limits(tokens=1500, queue=1500, seconds=60.0)  # room for a few documents at a time


@dataclass(frozen=True)
class Client:
    """A client.

    Attributes:
        document: the number of its document.
        way: how it behaves.
        turns: turns of the event loop before it starts; one that leaves while it waits does so after as many ms.
    """

    document: int
    way: str
    turns: int


def clients(rng: random.Random, documents: int, count: int = 12) -> list[Client]:
    """Draw clients."""
    return [Client(rng.randrange(documents), rng.choice(_WAYS), rng.randrange(40)) for _ in range(count)]


def faults_of(model: str, documents: Sequence[str], drawn: Sequence[Client]) -> list[str]:
    """Serve a model to these clients; return what was wrong."""
    served = ServedModel.load(model, name="simulated")
    return asyncio.run(_serve(served, documents, drawn))


async def _serve(served: ServedModel, documents: Sequence[str], drawn: Sequence[Client]) -> list[str]:
    app: Any = make_app(ModelPool.of(served), limits=_LIMITS, access=Access(keys=None), grace=10)
    async with _Life(app):
        alone = [await _ask(app, Client(number, "whole", 0), text) for number, text in enumerate(documents)]
        wrong = [
            f"document {number} by itself: {status}: {body}"
            for number, (status, body) in enumerate(alone)
            if status != 200
        ]
        found = await asyncio.gather(*(_ask(app, each, documents[each.document]) for each in drawn))
        for client, (status, body) in zip(drawn, found, strict=True):
            wrong += _problems(client, status, body, alone[client.document][1])
        again = [await _ask(app, Client(number, "whole", 0), text) for number, text in enumerate(documents)]
        wrong += [
            f"document {number} differs afterwards: {each}"
            for number, each in enumerate(again)
            if each != alone[number]
        ]
        wrong += await _held_places(app)
    return wrong


async def _held_places(app: Any) -> list[str]:
    """Return the line of the metrics with a queue that stays filled; wait first for batches of clients that left."""
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client:
        for _ in range(200):
            lines = (await client.get("/metrics")).text.splitlines()
            (queued,) = [line for line in lines if line.startswith("precis_queue_documents ")]
            if float(queued.split()[1]) == 0:
                return []
            await asyncio.sleep(0.01)
    return [f"no client waits, and yet: {queued}"]


def _problems(client: Client, status: int, body: Any, wanted: Any) -> list[str]:
    if client.way.startswith("leaves"):
        return []  # no client reads the answer; what it held is seen afterwards
    expected = (400, 422) if client.way == "no JSON" else (200, 503)
    if status not in expected:
        return [f"{client}: status {status}: {body}"]
    return [f"{client}: another summary"] if status == 200 and body != wanted else []


async def _ask(app: Any, client: Client, text: str) -> tuple[int, Any]:
    """Send the request of a client; return status and answer, 0 and None for one that left."""
    for _ in range(client.turns):
        await asyncio.sleep(0)
    content = b"{no" if client.way == "no JSON" else json.dumps({"text": text}).encode()
    cut = len(content) // 2
    coming = [content[:cut], content[cut:]] if client.way in ("pieces", "leaves early") else [content]
    if client.way == "leaves early":
        coming = coming[:1]
    sent, told, answered = 0, [], asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal sent
        await asyncio.sleep(0)
        if sent < len(coming):
            sent += 1
            more = sent < len(coming) or client.way == "leaves early"
            return {"type": "http.request", "body": coming[sent - 1], "more_body": more}
        if client.way == "leaves while it waits":
            await asyncio.sleep(client.turns / 1000)
        elif client.way != "leaves early":
            await answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        told.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            answered.set()

    await app(_scope(len(content)), receive, send)
    if not told or client.way.startswith("leaves"):
        return 0, None
    body = b"".join(each.get("body", b"") for each in told[1:])
    return told[0]["status"], _without_times(json.loads(body))


def _without_times(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in ("id", "created", "seconds")}


def _scope(length: int) -> dict[str, Any]:
    headers = [
        (b"host", b"127.0.0.1:1"),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % length),
    ]
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/v1/summarize", "raw_path": b"/v1/summarize", "query_string": b"", "root_path": "",
        "headers": headers, "client": ("127.0.0.1", 2), "server": ("127.0.0.1", 1),
    }  # fmt: skip


class _Life:
    """The life of an ASGI application: started on entering, stopped on leaving."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._asked: asyncio.Queue[str] = asyncio.Queue()
        self._told: asyncio.Queue[str] = asyncio.Queue()

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._app({"type": "lifespan"}, self._receive, self._send))
        await self._asked.put("startup")
        assert await self._told.get() == "lifespan.startup.complete"

    async def __aexit__(self, *_: object) -> None:
        await self._asked.put("shutdown")
        assert await self._told.get() == "lifespan.shutdown.complete"
        await self._task

    async def _receive(self) -> dict[str, str]:
        return {"type": f"lifespan.{await self._asked.get()}"}

    async def _send(self, message: dict[str, Any]) -> None:
        await self._told.put(message["type"])
