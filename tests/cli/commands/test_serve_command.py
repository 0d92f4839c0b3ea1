"""`precis serve` as a user meets it: what cannot be is said before a model is loaded, and SIGTERM ends it well."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.outcomes import Run
from tests.tiny_models import save


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "0.0.0.0"], "--keys"),
        (["--keys", "/nowhere/keys"], "no such file"),
        (["--requests-per-minute", "5"], "--keys"),
        (["--max-tokens", "2000", "--queue-tokens", "1000"], "--queue-tokens"),
        (["--adapter", "x"], "--model"),
        (["--model", "a", "--model", "b", "--adapter", "x"], "exactly one --model"),
        (["--model", "a", "--model", "b", "--name", "one"], "2 models"),
        (["--model", "a", "--model", "b", "--name", "one", "--name", "one"], "--name one is given twice"),
        (["--model", "runs/a", "--model", "runs/a"], "runs/a is given twice"),
    ],
)
def test_what_cannot_be_is_one_line(precis: Run, words: list[str], message: str) -> None:
    outcome = precis("serve", *words)
    assert (outcome.code, message in outcome.error) == (2, True), outcome.error


def test_a_model_that_needs_more_than_its_memory_is_one_line(
    precis: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precis.server.served_model.ServedModel.size", 3 << 20)
    outcome = precis("serve", "--model-memory", "1", "--port", "0")
    assert outcome.code == 2
    assert "--model-memory 1: the model 'default'" in outcome.error


def test_a_taken_port_is_one_line(precis: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        outcome = precis("serve", "--port", str(taken.getsockname()[1]))
    assert outcome.code == 2
    assert "cannot listen" in outcome.error


def test_a_taken_port_is_refused_before_the_libraries_are_imported() -> None:
    child = (
        "import sys; from precis.cli import main; code = main(sys.argv[1:]); "
        "print('torch' in sys.modules); sys.exit(code)"
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["serve", "--port", str(taken.getsockname()[1])]
        ended = subprocess.run(
            [sys.executable, "-c", child, *words], capture_output=True, text=True, check=False
        )
    assert ended.returncode == 2
    assert "another process listens there" in ended.stderr
    assert ended.stdout.strip() == "False"


@pytest.mark.long
def test_it_serves_until_sigterm_and_logs_lines_of_json(tmp_path: Path) -> None:
    model = save("zcodepp", tmp_path / "model")
    log = tmp_path / "log"
    keys = tmp_path / "keys"
    keys.write_text(f"ann {'a' * 20}\n")
    environment = {"OMP_NUM_THREADS": "1", "PRECIS_SERVE_PORT": "0", "PRECIS_SERVE_KEYS": str(keys)}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "precis", "serve", "--model", str(model), "--threads", "1"],
            stderr=stream,
            env={**os.environ, **environment},
        )
        try:
            url = _address(log, process)
            keys.write_text(f"ann {'b' * 20}\n")
            process.send_signal(signal.SIGHUP)
            until = time.monotonic() + 30
            while "keys_reloaded" not in log.read_text() and time.monotonic() < until:
                time.sleep(0.05)
            answers = [
                httpx.post(
                    f"{url}/v1/summarize",
                    json={"text": "Ann sings. " * 9, "tokens": 5},
                    headers={"Authorization": f"Bearer {letter * 20}"},
                    trust_env=False,
                )
                for letter in "ab"
            ]
            assert [answer.status_code for answer in answers] == [401, 200]
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, -signal.SIGTERM)
        finally:
            process.kill()
            process.wait()
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    assert [line["status"] for line in lines if line["event"] == "request"][-1] == 200
    assert "stopping: no request is in work" in log.read_text()
    assert "Ann" not in log.read_text()


def _address(log: Path, process: subprocess.Popen) -> str:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        found = re.search(r"listening on (\S+)", log.read_text())
        if found and "Application startup complete" in log.read_text():
            return found[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text())
