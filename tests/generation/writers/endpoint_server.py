"""A server of the chat protocol for tests: it answers as its script says, and records what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """Serves the next answer of the script; the last one again and again."""

    server: "Server"

    def do_GET(self) -> None:
        self.server.gets.append(self.path)
        body = json.dumps({"data": self.server.models}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        self.server.headers.append(dict(self.headers))
        script = self.server.script
        try:
            (script.pop(0) if len(script) > 1 else script[0])(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.server.cut_off.set()

    def start(self, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def event(self, record: dict[str, Any] | str) -> None:
        text = record if isinstance(record, str) else json.dumps(record)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def words(self, text: str) -> None:
        for word in text.split(" "):
            self.event({"choices": [{"delta": {"content": f"{word} "}, "finish_reason": None}]})

    def end(self, reason: str = "stop", *, read: int = 10_000) -> None:
        self.event({"choices": [{"delta": {}, "finish_reason": reason}]})
        self.event({"choices": [], "usage": {"prompt_tokens": read, "completion_tokens": 7}})
        self.event("[DONE]")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Attributes: `asked` bodies, their `headers`, paths of `gets`; `cut_off` is set once a client left."""

    daemon_threads = True

    def __init__(self, script: Sequence[Answer], models: Sequence[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.models = [*script], [*models]
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.gets: list[str] = []
        self.cut_off = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


@contextmanager
def serving(*script: Answer, models: Sequence[dict[str, Any]] = ({"id": "tiny"},)) -> Iterator[Server]:
    """A server in a thread."""
    server = Server(script, models)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def says(text: str, *, reason: str = "stop", read: int = 10_000) -> Answer:
    """Answer with a text."""

    def answer(handler: Handler, _: dict[str, Any]) -> None:
        handler.start(Content_Type="text/event-stream")
        handler.words(text)
        handler.end(reason, read=read)

    return answer


def refuses(status: int, said: str = "no", **headers: str) -> Answer:
    """Answer with an error."""

    def answer(handler: Handler, _: dict[str, Any]) -> None:
        handler.start(status, **headers)
        handler.wfile.write(json.dumps({"error": {"message": said}}).encode())

    return answer


def breaks_off(handler: Handler, _: dict[str, Any]) -> None:
    """Close the connection in the middle of a reply."""
    handler.start(Content_Type="text/event-stream")
    handler.words("Ann sold")
