"""A service behind a real socket, in this process."""

import socket
import threading
import time
from dataclasses import dataclass

import httpx
import uvicorn

from precis.server.asgi_app import Access, make_app
from precis.server.client_keys import Keys
from precis.server.limits import Limits
from precis.server.model_pool import ModelPool
from precis.server.served_model import ServedModel


@dataclass
class Running:
    """A service that listens."""

    url: str
    makers: ServedModel
    server: uvicorn.Server
    thread: threading.Thread

    def client(self, **options) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, **options)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()


def run(
    makers, *, limits: Limits | None = None, keys: Keys | None = None, access: Access | None = None
) -> Running:
    return run_pool(ModelPool.of(makers), makers, limits=limits, keys=keys, access=access)


def run_pool(
    pool: ModelPool,
    makers=None,
    *,
    limits: Limits | None = None,
    keys: Keys | None = None,
    access: Access | None = None,
) -> Running:
    app = make_app(pool, limits=limits or Limits(), access=access or Access(keys=keys), grace=10)
    opened = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=10)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    return Running(f"http://127.0.0.1:{opened.getsockname()[1]}", makers, server, thread)
