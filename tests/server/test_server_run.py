"""A service ends cleanly also if a model still works when its time is up."""

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from precis.server import server_run
from precis.server.connections import ConnectionLimits
from precis.server.engine import MODEL_THREAD
from precis.server.limits import Limits
from precis.server.listener import Address, listen
from precis.server.model_pool import ModelPool
from precis.server.server_run import access_to, serve
from precis_text.errors import RunError

PROGRAM = """
import logging
import os
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


def _serve(
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    grace: float = 30.0,
    starts: bool = True,
    threads: Sequence[str] = (),
    end: Any = None,
) -> dict[str, Any]:
    """Run a service that ends at once; write down what is said and done, and return what its parts were made with."""
    made: dict[str, Any] = {}

    class Ending:
        started = starts

        def __init__(self, app: object, **options: Any) -> None:
            made["server"] = options

        def run(self, sockets: list[socket.socket]) -> None:
            if end is not None:
                raise end

    monkeypatch.setattr(server_run, "make_app", lambda _, **options: made.update(options))
    monkeypatch.setattr(server_run, "log_to_stderr", lambda: None)
    monkeypatch.setattr(server_run, "GuardedServer", Ending)
    # the module's own name alone: a service of other tests has such threads
    running = [SimpleNamespace(name=name) for name in threads]
    monkeypatch.setattr(server_run, "threading", SimpleNamespace(enumerate=lambda: running))
    monkeypatch.setattr(logging, "shutdown", lambda: said.append("logs are written"))
    monkeypatch.setattr(os, "_exit", lambda code: said.append(f"exit code {code}"))
    address = Address(port=0, grace=grace, prefix="/precis")
    with listen(address.host, 0) as opened:

        def notify(line: str) -> None:
            said.append(line.replace(f":{opened.getsockname()[1]}", ":PORT"))

        serve(
            ModelPool({}), opened=opened, address=address, access=access_to(address, None), limits=Limits(),
            connections=ConnectionLimits(), notify=notify,
        )  # fmt: skip
    return made


LISTENING = "listening on http://127.0.0.1:PORT/precis (Ctrl-C stops it)"


@pytest.mark.parametrize(("grace", "of_the_model"), [(2.0, 2.0), (30.0, 5.0)])
def test_the_model_has_at_most_five_seconds_after_the_last_request(
    grace: float, of_the_model: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    made = _serve(said, monkeypatch, grace=grace)
    assert (made["grace"], made["server"]["grace"], made["prefix"]) == (of_the_model, grace, "/precis")
    assert said == [LISTENING]


def test_a_server_that_did_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match="did not start; its log says why"):
        _serve([], monkeypatch, starts=False)


@pytest.mark.parametrize(
    ("end", "is_working", "code"),
    [
        (None, True, 0),
        (SystemExit(130), True, 130),
        (SystemExit(), True, 0),
        (SystemExit(130), False, None),
        (ZeroDivisionError(), True, None),  # which the command has to tell
    ],
)
def test_the_process_ends_at_once_if_a_model_still_works(
    end: BaseException | None, is_working: bool, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    with nullcontext() if end is None else pytest.raises(type(end)):
        _serve(said, monkeypatch, threads=["another", *[MODEL_THREAD] * is_working], end=end)
    assert said == [LISTENING, *([] if code is None else ["logs are written", f"exit code {code}"])]
