"""`make install` takes torch's CPU build where there is no NVIDIA device and the index of these builds answers."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "torch_index.py"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PyPI's torch has no CUDA")


class _Index(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/cpu/torch/" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def chosen(folder: Path, index: str, *, driver: str | None) -> tuple[str, str]:
    if driver is not None:
        (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{driver}\n")
        (folder / "nvidia-smi").chmod(0o755)
    ran = subprocess.run(
        [sys.executable, SCRIPT, index], env={"PATH": str(folder)}, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip(), ran.stderr


@pytest.mark.parametrize("driver", [None, "exit 9", "echo No devices found"])
def test_without_a_device_the_index_of_cpu_builds_is_taken(
    server: str, driver: str | None, tmp_path: Path
) -> None:
    index, why = chosen(tmp_path, f"{server}/cpu", driver=driver)
    assert index == f"{server}/cpu"
    assert "no NVIDIA device" in why


def test_with_a_device_pips_own_index_is_taken(server: str, tmp_path: Path) -> None:
    assert chosen(tmp_path, f"{server}/cpu", driver="echo 'GPU 0: H100'")[0] == ""


def test_an_index_that_does_not_answer_is_said_and_passed_over(server: str, tmp_path: Path) -> None:
    for index in (f"{server}/nothing", "http://127.0.0.1:9"):
        taken, why = chosen(tmp_path, index, driver=None)
        assert taken == ""
        assert f"{index} cannot be reached" in why
