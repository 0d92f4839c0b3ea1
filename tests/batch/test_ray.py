"""A batch on Ray itself: it comes to its end, goes on after a kill, and a dead worker's documents are taken up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from tests.tiny_models import save

pytestmark = pytest.mark.slow
_LONGEST = 400


def _start(folder: Path, *options: str) -> subprocess.Popen[str]:
    words = [
        "batch",
        "rows.jsonl",
        "--out",
        "out",
        "--model",
        "tiny",
        "--words",
        "5",
        "--workers",
        "1",
        *options,
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "precis", *words],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save("zcodepp", tmp_path / "tiny")
    rows = [{"document": f"Ann sings in the hall. Bob listens. They go home at {n}."} for n in range(300)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"document": ""}]))
    return tmp_path


def _workers(session: int) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid,sid,args"], capture_output=True, text=True, check=True).stdout
    rows = (line.split(None, 2) for line in listed.splitlines()[1:])
    return [int(pid) for pid, sid, args in rows if sid == str(session) and "ray::MapWorker(MapB" in args]


def _wait_for_parts(folder: Path, command: subprocess.Popen[str]) -> None:
    until = time.monotonic() + _LONGEST
    while command.poll() is None and not list((folder / "out").glob("parts/*.parquet")):
        assert time.monotonic() < until
        time.sleep(0.1)


def _rows_of_a_part(folder: Path) -> int:
    """Documents in the first part, as soon as it is written."""
    (part, *_) = (folder / "out").glob("parts/*.parquet")
    until = time.monotonic() + 60
    while True:
        try:
            return parquet.read_metadata(part).num_rows
        except (OSError, arrow.ArrowInvalid):
            assert time.monotonic() < until
            time.sleep(0.1)


def test_killed_and_started_again_each_document_is_there_once(folder: Path) -> None:
    first = _start(folder)
    _wait_for_parts(folder, first)
    assert _rows_of_a_part(folder) == 32
    first.kill()
    first.communicate()
    second = _start(folder, "--verify")
    _wait_for_parts(folder, second)
    for worker in _workers(second.pid)[:1]:
        os.kill(worker, signal.SIGKILL)
    told = second.communicate(timeout=_LONGEST)[1]
    assert second.returncode == 0, told
    assert "resumes; " in told
    assert "verified: 301 documents, each with exactly one row; with the status error: 1" in told
    rows = [json.loads(line) for line in (folder / "out" / "summaries.jsonl").read_text().splitlines()]
    assert len({row["name"] for row in rows}) == len(rows) == 301
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "lock",
        "settings.json",
        "summaries.jsonl",
    ]
    third = _start(folder)
    assert third.communicate(timeout=_LONGEST)[1].endswith("(--verify names them)\n")


def test_sigterm_ends_a_batch_in_one_line(folder: Path) -> None:
    command = _start(folder)
    _wait_for_parts(folder, command)
    command.send_signal(signal.SIGTERM)
    told = command.communicate(timeout=60)[1]
    assert command.returncode == 128 + signal.SIGTERM
    assert told.endswith("error: ended by SIGTERM; repeat the command\n")
    assert "***" not in told


def _of_session(session: int) -> list[str]:
    """The processes of a command that still run, without the command's own."""
    listed = subprocess.run(
        ["ps", "-eo", "pid,sid,stat,args"], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split(None, 3) for line in listed.splitlines()[1:])
    return [args for pid, sid, state, args in rows if sid == str(session) != pid and "Z" not in state]


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("after", [0.2, 1.5])
def test_a_signal_while_ray_starts_leaves_no_process_behind(
    folder: Path, sent: signal.Signals, after: float
) -> None:
    command = _start(folder)
    until = time.monotonic() + 120
    while not _of_session(command.pid):  # Ray is starting
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(after)
    command.send_signal(sent)
    told = command.communicate(timeout=120)[1]
    assert command.returncode == 128 + sent
    assert "repeat the command" in told
    assert "ray log level" not in told
    until = time.monotonic() + 10
    while (left := _of_session(command.pid)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not left


def test_workers_share_the_processor_with_other_work_as_equals(folder: Path) -> None:
    command = _start(folder)
    try:
        end = time.monotonic() + _LONGEST
        while not (workers := _workers(command.pid)):
            assert time.monotonic() < end
            assert command.poll() is None
            time.sleep(0.2)
        assert {os.getpriority(os.PRIO_PROCESS, each) for each in workers} == {
            os.getpriority(os.PRIO_PROCESS, 0)
        }
    finally:
        command.send_signal(signal.SIGTERM)
        command.communicate(timeout=_LONGEST)
