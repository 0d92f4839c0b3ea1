"""The cost of a training step of a tuned model, measured in a separate process.

`step_cost` starts `python -m precis_experiments.tuning_cost`, which loads the base, attaches the prefix, creates AdamW
for the trainable parameters, and runs steps on batches of random tokens. Memory is the peak of the process above that
of the loaded libraries: weights, gradients, moments and activations.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass

import torch

from precis.data.batches.length_buckets import Batch
from precis.generation.model_loader import load_model
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.process import peak_mib
from precis.recipes.run_plan import native_precision
from precis.training.optimizer import build_optimizer
from precis.training.training_settings import TrainSettings
from precis.tuning import Tuning, attach
from precis_text.config import Settings
from precis_text.errors import RunError

_EXACT_PEAK = {"MALLOC_MMAP_THRESHOLD_": "65536"}  # glibc then returns the pages of large blocks at once


@dataclass(frozen=True, kw_only=True)
class StepAsked(Settings):
    """A step to measure.

    Attributes:
        base: a model's folder or hub name.
        tuning: the settings of the prefix; if None, the whole model is fine-tuned.
        rows, source_tokens, target_tokens: size of the batch.
        steps: number of timed steps, after one for warmup.
    """

    base: str
    tuning: Tuning | None
    rows: int = 16
    source_tokens: int = 128
    target_tokens: int = 32
    steps: int = 8


def step_cost(asked: StepAsked, *, threads: int) -> dict[str, float]:
    """Return the median seconds of a step, peak memory in MB, and the numbers of trained and of all parameters.

    Raises:
        RunError: the process failed; the message has its last line.
    """
    done = subprocess.run(
        [sys.executable, "-m", "precis_experiments.tuning_cost", str(threads)],
        input=json.dumps(asked.to_dict()),
        capture_output=True,
        text=True,
        env={**os.environ, **_EXACT_PEAK},
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"cannot measure a step of {asked.base}: {last}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(asked: StepAsked) -> dict[str, float]:
    """Return the result of `step_cost`, measured in this process."""
    before = peak_mib() or 0.0
    model = load_model(asked.base).model.train()
    device = next(model.parameters()).device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    if asked.tuning is not None:
        attach(model, asked.tuning)
    optimizer = build_optimizer(model, TrainSettings(steps=1))
    objective, batch = SequenceToSequence(), _batch(asked, model.config.vocab_size).to(device)
    seconds = []
    for _ in range(1 + asked.steps):
        began = time.perf_counter()
        with torch.autocast(device.type, torch.bfloat16) if native_precision() == "bf16" else nullcontext():
            loss = objective(model, batch)
        loss.total.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    peak = (
        torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else (peak_mib() or 0.0) - before
    )
    sizes = [(p.numel(), p.requires_grad) for p in model.parameters()]
    return {
        "seconds": statistics.median(seconds[1:]),
        "peak_mb": peak,
        "trained": sum(size for size, trained in sizes if trained),
        "parameters": sum(size for size, _ in sizes),
    }


def _batch(asked: StepAsked, vocabulary: int) -> Batch:
    draw = torch.Generator().manual_seed(0)
    ids, labels = (
        torch.randint(10, vocabulary, (asked.rows, length), generator=draw)
        for length in (asked.source_tokens, asked.target_tokens)
    )
    return Batch(ids, torch.ones_like(ids), labels)


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    print(json.dumps(measure(StepAsked.from_dict(json.load(sys.stdin)))))
