"""A killed process of several ends the run, and the same command takes it up."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from precis.data.packs.pack_writer import pack
from precis.training.callbacks import read_metrics
from tests.devices import ON_THE_CPU
from tests.tiny_models import documents, our_tokenizer

_SMALL = (
    "--recipe zcodepp-micro --set model.hidden_size=16 --set model.num_attention_heads=2 "
    "--set model.intermediate_size=32 --set model.encoder_layers=1 --set model.decoder_layers=1 "
    "--set train.warmup_steps=1 --set train.log_every=1 --set train.save_every=5 --set validation_blocks=4 "
    "--batch-size 4 --block-length 64 --precision fp32 --threads 1"
)


def launch(folder: Path, *, steps: int) -> "subprocess.Popen[bytes]":
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "-m",
        "precis",
        "pretrain",
    ]
    options = ["--corpus", str(folder / "pack"), "--out", str(folder / "run"), "--steps", str(steps)]
    environment = {**os.environ, **ON_THE_CPU, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*command, *options, *_SMALL.split()], env=environment)


def ranks(launcher: int) -> list[int]:
    """Process ids of the launcher's children."""
    listed = subprocess.run(["pgrep", "-P", str(launcher)], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]


def reached(folder: Path) -> int:
    path = folder / "run" / "metrics.jsonl"
    return max((int(r["step"]) for r in read_metrics(path)), default=0) if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_ends_the_run_within_a_minute_and_it_resumes(tmp_path: Path, victim: int) -> None:
    our_tokenizer().save_pretrained(tmp_path / "words")
    pack(documents(60), tmp_path / "words", tmp_path / "pack", dev_share=0.2)
    launcher = launch(tmp_path, steps=100_000)
    until = time.monotonic() + 120
    while reached(tmp_path) < 12:
        assert time.monotonic() < until, "the run did not get under way"
        assert launcher.poll() is None
        time.sleep(0.2)
    os.kill(sorted(ranks(launcher.pid))[victim], signal.SIGKILL)
    began = time.monotonic()
    assert launcher.wait(timeout=60) != 0
    assert time.monotonic() - began < 60
    stopped = reached(tmp_path)
    settled = [
        int(p.name.removeprefix("step-")) for p in (tmp_path / "run" / "checkpoints").glob("step-????????")
    ]
    assert settled
    again = launch(tmp_path, steps=100_000)
    until = time.monotonic() + 120
    while reached(tmp_path) <= stopped + 3:
        assert time.monotonic() < until, "the run was not taken up"
        assert again.poll() is None
        time.sleep(0.2)
    again.send_signal(signal.SIGTERM)
    again.wait(timeout=60)
    records = [r for r in read_metrics(tmp_path / "run" / "metrics.jsonl") if r["kind"] == "train"]
    steps = [int(r["step"]) for r in records]
    assert steps == list(range(1, steps[-1] + 1))  # none lost, none told twice
