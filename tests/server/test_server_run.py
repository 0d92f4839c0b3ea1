"""A service ends cleanly also if a model still works when its time is up."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

PROGRAM = """
import signal
import torch
from precis.server.connections import ConnectionLimits
from precis.server.limits import Limits
from precis.server.listener import Address, listen
from precis.server.model_pool import ModelPool
from precis.server.server_run import access_to, serve
from tests.server_of_tests import ByWords

class Busy:
    name, modes, languages = "busy", ("abstract",), ()
    def counter(self):
        return ByWords()
    def make(self, texts, ask, on_progress, on_partial):
        print("working", flush=True)
        matrix = torch.rand(400, 400)
        while True:
            torch.linalg.eigh(matrix @ matrix.T)  # in C++, without Python's lock

def end(*_):
    raise SystemExit(0)  # as the command line does: Python then ends its threads

signal.signal(signal.SIGTERM, end)
address = Address(host="127.0.0.1", port=0, grace=1)
with listen(address.host, 0) as opened:
    print(opened.getsockname()[1], flush=True)
    serve(ModelPool.of(Busy()), opened=opened, address=address, access=access_to(address, None), limits=Limits(),
          connections=ConnectionLimits(), notify=lambda line: None)
"""


@pytest.mark.long
def test_a_model_that_still_works_does_not_abort_the_process() -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        port = int(server.stdout.readline())
        url = f"http://127.0.0.1:{port}/v1/summarize"
        with httpx.stream(
            "POST", url, json={"text": "Ann sings in the hall.", "stream": True}, timeout=60, trust_env=False
        ):
            assert server.stdout.readline() == "working\n"
            server.send_signal(signal.SIGTERM)
            errors = server.stderr.read()
        assert server.wait(30) == 0, errors
        assert "terminate called" not in errors
