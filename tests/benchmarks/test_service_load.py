"""A server that keeps memory of each request is found, and one that does not is let be."""

import subprocess
import sys

import pytest

from benchmarks.service.load import MOST_KEPT, kept_by_each

SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

kept, size = [], int(sys.argv[1])

class Answer(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        kept.append(b"x" * size)
        said = b'{"summaries": [{"summary": ""}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.mark.parametrize(("leak", "is_found"), [(0, False), (100 << 10, True)])
def test_a_leak_of_100_kib_a_request_is_found(leak: int, is_found: bool) -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(leak)], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        kept = kept_by_each(server, f"http://127.0.0.1:{port}", ["A text."] * 64, {"words": 5})
    finally:
        server.kill()
        server.wait()
    assert (kept > MOST_KEPT) is is_found
