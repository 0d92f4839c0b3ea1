"""Disentangled attention on a CUDA device: our ways beside transformers', timed with CUDA events.

    python benchmarks/gpu/attention.py [--lengths 512 1024 ...] [--dtype bf16] [--peak-tflops 989] [--json FILE]

The core alone (no projections), 12 heads of 64, so many documents that a batch has 16,384 tokens, random weights.
Ways: the plain path (gathered bias and torch's fused kernel), FlexAttention compiled with captured tables, the Triton
kernel, training with scores made again, transformers' DeBERTa-v2, and torch's kernel without position scores as the
floor. Every way is first compared with the plain path in fp32 on 512 tokens; a way that is wrong there, or fails, is
left out. The ways of a length take turns, in another order each round: median, lowest and highest round are printed.
A way that fails at a length is named with its error and the others go on; JSON is written after every length.
The share of peak counts the multiplications of plain attention only (4 n^2 e a head), so that it says how much of the
device does the work that cannot be avoided; give the device's own peak with --peak-tflops.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from precis.bench.harness import rotated
from precis.bench.machine import describe
from precis.bench.peers import Size, deberta_config
from precis.nn.attention import attend, merge_heads, split_heads
from precis.nn.attention_paths import fused
from precis.nn.disentangled_flex import attend_flex
from precis.nn.disentangled_training import attend_recomputing
from precis.nn.relative_positions import LogBuckets
from precis.nn.score_bias import DisentangledBias
from precis.training.sealed import write_atomically

HEADS, WIDTH, TOKENS = 12, 64, 16_384
SCALE = (3 * WIDTH) ** -0.5
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
Way = Callable[[Tensor, DisentangledBias], Tensor]
Core = Callable[[Tensor, Tensor], Tensor]
Rows = list[dict[str, Any]]


def plain(states: Tensor, bias: DisentangledBias) -> Tensor:
    """The gathered bias as an additive mask; holds n x n numbers."""
    scores = bias.rows(0, states.shape[-2])
    if scores.requires_grad:
        return ((states * SCALE @ states.mT + scores).softmax(-1)) @ states
    return fused(states, states, states, prefix=None, scores=scores, mask=None, scale=SCALE, dropout=0.0)


def flex(states: Tensor, bias: DisentangledBias) -> Tensor:
    return attend_flex(states, states, states, bias, valid=None, scale=SCALE)


def kernel(states: Tensor, bias: DisentangledBias) -> Tensor:
    from precis.nn.disentangled_triton import attend_triton

    return attend_triton(states, states, states, bias, valid=None, scale=SCALE)


def recomputing(states: Tensor, bias: DisentangledBias) -> Tensor:
    return attend_recomputing(states, states, states, bias, valid=None, scale=SCALE, dropout=0.0)


def chosen(states: Tensor, bias: DisentangledBias) -> Tensor:
    """What `attend` takes by itself."""
    return attend(states, states, states, bias=bias, scale=SCALE)


def without_positions(states: Tensor, bias: DisentangledBias) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(states, states, states, scale=SCALE)


FORWARD: dict[str, Way] = {
    "plain": plain,
    "flex": flex,
    "triton": kernel,
    "attend": chosen,
    "without positions": without_positions,
}
TRAINING: dict[str, Way] = {
    "plain": plain,
    "recomputing": recomputing,
    "attend": chosen,
    "without positions": without_positions,
}


def ours(way: Way) -> Core:
    """A way as a function of states (b n d) and table (r d)."""

    def core(states: Tensor, table: Tensor) -> Tensor:
        split = split_heads(states, HEADS)
        rows = split_heads(table[None] * SCALE, HEADS)[0]
        bias = DisentangledBias(
            queries=split, keys=split, position_keys=rows, position_queries=rows, buckets=LogBuckets(256, 512)
        )
        return merge_heads(way(split, bias))

    return core


def transformers_core(batch: int, length: int) -> Core:
    """transformers' self-attention with identities as projections."""
    from transformers.models.deberta_v2 import modeling_deberta_v2 as source

    module: Any = source.DisentangledSelfAttention(
        deberta_config(Size(width=HEADS * WIDTH, heads=HEADS))
    ).cuda()
    for name in ("query_proj", "key_proj", "value_proj"):
        setattr(module, name, torch.nn.Identity())
    everything = torch.ones(batch, 1, length, length, dtype=torch.bool, device="cuda")
    sample = torch.empty(batch, length, 1, device="cuda")
    relative = source.build_relative_position(sample, sample, bucket_size=256, max_position=512)
    return lambda states, table: module(states, everything, relative_pos=relative, rel_embeddings=table)[0]


def inputs(batch: int, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    states = torch.randn(batch, length, HEADS * WIDTH, device="cuda", dtype=dtype)
    return states, 0.1 * torch.randn(512, HEADS * WIDTH, device="cuda", dtype=dtype)


def check() -> dict[str, str]:
    """Every way against the plain path in fp32, values, and gradients of that for training: what is wrong, by way.

    At 512 tokens, and at 1,536, where most keys are farther away than the table tells apart.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    wrong: dict[str, str] = {}
    for length in (512, 1536):
        wrong = {name: f"{length} tokens: {error}" for name, error in wrong_at(length).items()} | wrong
    for name in sorted(set(_checked(FORWARD)) | set(_checked(TRAINING))):
        print(f"{name}: {wrong.get(name, 'agrees with the plain path')}", flush=True)
    return wrong


def _checked(ways: Mapping[str, Way]) -> dict[str, Way]:
    """All but the yardstick and the one that computes something else."""
    return {name: way for name, way in ways.items() if way not in (plain, without_positions)}


def wrong_at(length: int) -> dict[str, str]:
    """What is wrong at one length."""
    states, table = (x.requires_grad_() for x in inputs(2, length, torch.float32))
    expected = ours(plain)(states, table)
    gradients = torch.autograd.grad(expected.square().sum(), (states, table))

    def values(way: Way) -> None:
        with torch.no_grad():
            torch.testing.assert_close(ours(way)(states, table), expected, atol=1e-4, rtol=0.0)

    def training(way: Way) -> None:
        found = torch.autograd.grad(ours(way)(states, table).square().sum(), (states, table))
        torch.testing.assert_close(found, gradients, atol=1e-3, rtol=1e-3)

    wrong = {}
    for compare, ways in ((values, FORWARD), (training, TRAINING)):
        for name, way in _checked(ways).items():
            try:
                compare(way)
            except Exception as error:  # the other ways are still to be measured
                wrong[name] = _one_line(error)
    return wrong


def time_ms(work: Callable[[], object], repeats: int = 5) -> float:
    """Median of CUDA events."""
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def peak_mb(work: Callable[[], object]) -> float:
    """What a pass adds to the device's memory at its peak, after three passes to warm up."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    held = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - held) / 2**20


def one_pass(core: Core, states: Tensor, table: Tensor, *, backward: bool) -> Callable[[], object]:
    def forward() -> object:
        with torch.no_grad():
            return core(states, table)

    def both() -> object:
        asked = [states.requires_grad_(), table.requires_grad_()]
        return torch.autograd.grad(core(states, table).sum(), asked, allow_unused=True)

    return both if backward else forward


def race(builds: Mapping[str, Callable[[], Callable[[], object]]], rounds: int) -> dict[str, dict[str, Any]]:
    """Milliseconds and peak MB of every way, or its error.

    Args:
        builds: name of a way -> what gives its pass; building may fail too.
    """
    passes: dict[str, Callable[[], object]] = {}
    found: dict[str, dict[str, Any]] = {}
    times: dict[str, list[float]] = {name: [] for name in builds}

    def tried(name: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # named in its row; the other ways go on
            found[name] = {"error": _one_line(error)}
            passes.pop(name, None)
            with suppress(RuntimeError):  # a device that is lost refuses this too
                torch.cuda.empty_cache()

    def prepare(name: str) -> None:
        passes[name] = builds[name]()
        found[name] = {"peak_mb": peak_mb(passes[name])}

    for name in builds:
        tried(name, lambda name=name: prepare(name))
    for number in range(rounds):
        for name in rotated(list(passes), number):
            tried(name, lambda name=name: times[name].append(time_ms(passes[name])))
    for name in passes:
        walls = times[name]
        found[name] |= {"ms": statistics.median(walls), "ms_low": min(walls), "ms_high": max(walls)}
    return found


def rows_of(length: int, options: argparse.Namespace, *, backward: bool, wrong: Mapping[str, str]) -> Rows:
    """A row for every way at one length."""
    batch = max(1, TOKENS // length)
    states, table = inputs(batch, length, DTYPES[options.dtype])
    cores: dict[str, Callable[[], Core]] = {
        name: lambda way=way: ours(way)
        for name, way in (TRAINING if backward else FORWARD).items()
        if name not in wrong
    }
    cores["transformers"] = lambda: transformers_core(batch, length)
    builds = {
        name: lambda core=core: one_pass(core(), states.detach(), table.detach(), backward=backward)
        for name, core in cores.items()
    }
    work = (14 if backward else 4) * batch * HEADS * length**2 * WIDTH
    rows = []
    for name, found in race(builds, options.rounds).items():
        if "ms" in found and options.peak_tflops:
            found["share_of_peak"] = work / (found["ms"] * 1e9 * options.peak_tflops)
        rows.append({"tokens": length, "batch": batch, "backward": backward, "way": name, **found})
    return rows


def _one_line(error: Exception) -> str:
    text = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    return f"{type(error).__name__}: {text[:300]}"


def main() -> None:
    options = _options()
    if not torch.cuda.is_available():
        raise SystemExit("this script needs a CUDA device")
    record: dict[str, Any] = {
        "machine": {**describe(), "device": torch.cuda.get_device_name()},
        "dtype": options.dtype,
        "rounds": options.rounds,
        "left_out": check(),
        "rows": [],
    }
    for backward in (False, True):
        for length in options.lengths:
            rows = rows_of(length, options, backward=backward, wrong=record["left_out"])
            print(*rows, sep="\n", flush=True)
            record["rows"] += rows
            if options.json:
                options.json.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(options.json, json.dumps(record, indent=1) + "\n")
    if record["left_out"] or any("error" in row for row in record["rows"]):
        raise SystemExit("some ways failed; see above")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 512, 1024, 2048, 4096, 8192, 16_384])
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--peak-tflops", type=float, help="the device's peak for this type; default: no share"
    )
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
