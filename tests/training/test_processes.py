"""The number of processes leaves no mark on the curve."""

import multiprocessing
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from training import tiny

from precis.training import JsonLines
from precis.training.callbacks import read_metrics

SETTINGS: dict[str, Any] = {"steps": 6, "gradient_accumulation": 2, "log_every": 1, "validate_every": 3}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _worker(rank: int, processes: int, port: int, folder: Path, stop_at: int | None) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
    }
    torch.set_num_threads(1)

    class Source(tiny.RowSource):
        def batch(self, step: int) -> tiny.Rows:
            if rank == 1 and step == stop_at:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().batch(step)

    tiny.run(
        folder,
        model=tiny.TinyModel(dropout=0.0),
        batches=Source(rank=rank, world_size=processes),
        validate=tiny.validation_loss,
        callbacks=[JsonLines()],
        **SETTINGS,
    )
    torch.distributed.destroy_process_group()


def _run(folder: Path, *, processes: int, stop_at: int | None = None) -> list[dict[str, Any]]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["precis.training", "torch._dynamo"])
    port = _free_port()
    workers = [
        context.Process(target=_worker, args=(rank, processes, port, folder, stop_at))
        for rank in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    return read_metrics(folder / "metrics.jsonl")


def test_two_processes_give_the_curve_of_one_and_a_signal_to_one_stops_both(tmp_path: Path) -> None:
    tiny.run(
        tmp_path / "one",
        model=tiny.TinyModel(dropout=0.0),
        validate=tiny.validation_loss,
        callbacks=[JsonLines()],
        **SETTINGS,
    )
    alone = read_metrics(tmp_path / "one" / "metrics.jsonl")

    _run(tmp_path / "two", processes=2, stop_at=6)
    # The source's micro-batch 6 belongs to the fourth step.
    stopped_at = max(path.name for path in (tmp_path / "two" / "checkpoints").glob("step-*"))
    assert stopped_at == "step-00000004"
    together = _run(tmp_path / "two", processes=2)

    assert [r["step"] for r in together] == [r["step"] for r in alone]
    for one, two in zip(alone, together, strict=True):
        assert two["loss"] == pytest.approx(one["loss"], abs=1e-5)
        assert two.get("tokens") == one.get("tokens")
        assert two.get("gradient_norm", 0) == pytest.approx(one.get("gradient_norm", 0), rel=1e-4)
