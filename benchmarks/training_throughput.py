"""Speed of pre-training here: tokens/s, FLOPs per token, and the share of the machine's measured matmul peak.

    python -m benchmarks.training_throughput [--recipe zcodepp-mini] [--batch-size 8] [--steps 10] [--threads 2]
        [--precision bf16] [--json FILE]

Random ids go through the run's own objective and optimizer steps; medians, the first two steps are warm-up. FLOPs are
those of one step as torch's FlopCounterMode counts matrix products, forward and backward. The peak is that of a square
matrix product in the same precision on the same threads or GPU. It is measured in turn with the steps, since the speed
of a machine varies. The input pipeline is timed by itself, on one thread. Packing tokenizes invented documents into a
pack; making batches reads blocks in the training order, masks, draws spans and collates. "together" counts a token as
packed once and read once, which is the worst case.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from precis.data.batches.pretraining_batches import PreTrainingBatches
from precis.data.packs.mixture import PackedRows
from precis.data.packs.pack_writer import pack
from precis.data.packs.packed_text import PackedText
from precis.data.synthetic.corpus import make_pairs
from precis.data.text.unigram_tokenizer import load_tokenizer, train_tokenizer
from precis.phases.train.memory_plan import random_batches
from precis.phases.train.pretraining import words_of
from precis.recipes.catalogue import shaped_config
from precis.recipes.pretraining_runs import PreTrainRun, pretraining_run
from precis.training.optimizer import build_optimizer
from precis.training.training_loop import accelerator_for
from precis.training.updates import Updater

_SQUARE = {"cpu": 2048, "cuda": 8192}


def model_of(run: PreTrainRun) -> PreTrainedModel:
    """Build a new model of the run's shape."""
    torch.manual_seed(0)
    return run.objective.model(shaped_config(run.model), block_length=run.block_length)


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Time one call, the device's work included."""
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - began


def peak_flops(device: torch.device, precision: str) -> float:
    """Measure the FLOP/s of a square matrix product."""
    size = _SQUARE[device.type]
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds(lambda: left @ right, device)
    return max(2 * size**3 / seconds(lambda: left @ right, device) for _ in range(3))


def feeding(run: PreTrainRun, *, documents: int, batches: int) -> dict[str, float]:
    """Measure the tokens/s of packing, of making batches, and of both."""
    texts = [pair.document for pair in make_pairs(documents, seed=0)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        train_tokenizer(texts[:2000], vocab_size=4000).save_pretrained(folder / "words")
        packing = seconds(
            lambda: pack(texts, folder / "words", folder / "pack", dev_share=0.0), torch.device("cpu")
        )
        corpus = PackedText.open(folder / "pack")
        rows = PackedRows([(corpus.blocks(run.block_length), 1.0)], seed=0)
        source = PreTrainingBatches(
            rows,
            words_of(load_tokenizer(folder / "words")),
            corruption=run.corruption,
            batch_size=run.batch_size,
        )
        source.batch(0)
        making = statistics.median(
            seconds(lambda at=step: source.batch(at), torch.device("cpu"))  # type: ignore[misc]
            for step in range(batches)
        )
        packed = corpus.num_tokens / packing
        made = run.batch_size * run.block_length / making
    return {
        "packing_tokens_per_second": packed,
        "batches_tokens_per_second": made,
        "feed_tokens_per_second": 1 / (1 / packed + 1 / made),
    }


def measured(run: PreTrainRun, *, steps: int) -> dict[str, float]:
    """Measure everything about one run, by name."""
    fed = feeding(run, documents=20_000, batches=50)
    objective = run.objective.loss()
    accelerator = accelerator_for(objective)
    model = model_of(run)
    optimizer = build_optimizer(model, run.train)
    prepared, _ = accelerator.prepare(model, optimizer)
    prepared.train()
    batches = random_batches(run, run.model.vocab_size, rows=run.batch_size)
    updater = Updater(
        prepared,
        optimizer,
        objective=objective,
        settings=run.train,
        total_steps=steps + 3,
        accelerator=accelerator,
    )
    counter = FlopCounterMode(display=False)
    with counter:
        updater.update(batches, 0, asked_to_stop=bool)
    updater.update(batches, 1, asked_to_stop=bool)
    times, peaks = [], []
    for step in range(2, steps + 2):
        peaks.append(peak_flops(accelerator.device, run.train.precision))
        times.append(
            seconds(lambda at=step: updater.update(batches, at, asked_to_stop=bool), accelerator.device)  # type: ignore[misc]
        )
    tokens = run.batch_size * run.block_length
    flops = counter.get_total_flops()
    step_seconds, peak = statistics.median(times), statistics.median(peaks)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens_per_second": tokens / step_seconds,
        "fastest_tokens_per_second": tokens / min(times),
        "slowest_tokens_per_second": tokens / max(times),
        "flops_per_token": flops / tokens,
        "peak_flops": peak,
        "share_of_peak": flops / step_seconds / peak,
        **fed,
        "feed_over_training": fed["feed_tokens_per_second"] * step_seconds / tokens,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", default="zcodepp-mini")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--block-length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--precision", choices=["fp32", "bf16"])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    run = pretraining_run(arguments.recipe)
    run = replace(run, batch_size=arguments.batch_size, block_length=arguments.block_length)
    if arguments.precision:
        run = replace(run, train=replace(run.train, precision=arguments.precision))
    result = measured(run, steps=arguments.steps)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or "cpu"
    print(
        f"{run.name}, {run.train.precision}, {run.batch_size} x {run.block_length} tokens, {device}, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}"
    )
    print(f"  parameters          {result['parameters'] / 1e6:12,.1f} M")
    print(
        f"  training            {result['tokens_per_second']:12,.0f} tokens/s "
        f"({result['slowest_tokens_per_second']:,.0f} to {result['fastest_tokens_per_second']:,.0f})"
    )
    print(f"  FLOPs per token     {result['flops_per_token'] / 1e6:12,.1f} M")
    print(f"  matmul peak         {result['peak_flops'] / 1e9:12,.0f} GFLOP/s")
    print(f"  share of the peak   {result['share_of_peak']:12.0%}")
    print(f"  packing, 1 thread   {result['packing_tokens_per_second']:12,.0f} tokens/s")
    print(f"  batches, 1 thread   {result['batches_tokens_per_second']:12,.0f} tokens/s")
    print(
        f"  together            {result['feed_tokens_per_second']:12,.0f} tokens/s, "
        f"{result['feed_over_training']:,.0f} times the training"
    )
    if arguments.json:
        record = {**result, "recipe": run.name, "device": device}
        Path(arguments.json).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
