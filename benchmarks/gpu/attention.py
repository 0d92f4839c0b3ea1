"""Disentangled attention on a CUDA device: our ways beside transformers', timed with CUDA events.

    python benchmarks/gpu/attention.py [--lengths 512 1024 ...] [--dtype bf16] [--peak-tflops 989] [--json FILE]

The core alone (no projections), 12 heads of 64, so many documents that a batch has 16,384 tokens, random weights.
Ways: the plain path (gathered bias and torch's fused kernel), FlexAttention compiled with captured tables, the Triton
kernel, training with scores made again, transformers' DeBERTa-v2, and torch's kernel without position scores as the
floor. Every way is first compared with the plain path in fp32 on 512 tokens; a way that fails that stops the script.
The share of peak counts the multiplications of plain attention only (4 n^2 e a head), so that it says how much of the
device does the work that cannot be avoided; give the device's own peak with --peak-tflops.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from precis.bench.machine import describe
from precis.bench.peers import Size, deberta_config
from precis.nn.attention import attend, merge_heads, split_heads
from precis.nn.attention_paths import fused
from precis.nn.disentangled_flex import attend_flex
from precis.nn.disentangled_training import attend_recomputing
from precis.nn.relative_positions import LogBuckets
from precis.nn.score_bias import DisentangledBias

HEADS, WIDTH, TOKENS = 12, 64, 16_384
SCALE = (3 * WIDTH) ** -0.5
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
Way = Callable[[Tensor, DisentangledBias], Tensor]


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


def ours(way: Way) -> Callable[[Tensor, Tensor], Tensor]:
    """A way as a function of states (b n d) and table (r d)."""

    def core(states: Tensor, table: Tensor) -> Tensor:
        split = split_heads(states, HEADS)
        rows = split_heads(table[None] * SCALE, HEADS)[0]
        bias = DisentangledBias(
            queries=split, keys=split, position_keys=rows, position_queries=rows, buckets=LogBuckets(256, 512)
        )
        return merge_heads(way(split, bias))

    return core


def transformers_core(batch: int, length: int) -> Callable[[Tensor, Tensor], Tensor]:
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


def check() -> None:
    """Every way against the plain path in fp32: values, and gradients of those for training."""
    torch.backends.cuda.matmul.allow_tf32 = False
    states, table = (x.requires_grad_() for x in inputs(2, 512, torch.float32))
    expected = ours(plain)(states, table)
    gradients = torch.autograd.grad(expected.square().sum(), (states, table))
    for name, way in {"flex": flex, "triton": kernel}.items():
        with torch.no_grad():
            error = (ours(way)(states, table) - expected).abs().max().item()
        print(f"{name}: largest difference from the plain path {error:.1e}")
        if not error < 1e-4:
            raise SystemExit(f"{name} is wrong")
    found = ours(recomputing)(states, table)
    for one, other in zip(torch.autograd.grad(found.square().sum(), (states, table)), gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
    print("recomputing: gradients agree")


def time_ms(work: Callable[[], object], repeats: int = 20) -> float:
    """Median of CUDA events, after three passes to warm up."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def measure(
    core: Callable[[Tensor, Tensor], Tensor], states: Tensor, table: Tensor, *, backward: bool
) -> dict[str, Any]:
    """Milliseconds and peak MB of a pass, or why there are none."""

    def forward() -> object:
        with torch.no_grad():
            return core(states, table)

    def both() -> object:
        asked = [states.requires_grad_(), table.requires_grad_()]
        return torch.autograd.grad(core(states, table).sum(), asked, allow_unused=True)

    work = both if backward else forward
    try:
        milliseconds = time_ms(work)
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        torch.cuda.synchronize()
        peak = (torch.cuda.max_memory_allocated() - held) / 2**20
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"error": "out of memory"}
    return {"ms": milliseconds, "peak_mb": peak}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 512, 1024, 2048, 4096, 8192, 16_384])
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument(
        "--peak-tflops", type=float, help="the device's peak for this type; default: no share"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this script needs a CUDA device")
    check()
    rows = []
    for backward in (False, True):
        for length in arguments.lengths:
            batch = max(1, TOKENS // length)
            states, table = inputs(batch, length, DTYPES[arguments.dtype])
            ways = {name: ours(way) for name, way in (TRAINING if backward else FORWARD).items()}
            ways["transformers"] = transformers_core(batch, length)
            for name, core in ways.items():
                found = measure(core, states.detach(), table.detach(), backward=backward)
                work = (14 if backward else 4) * batch * HEADS * length**2 * WIDTH
                if "ms" in found and arguments.peak_tflops:
                    found["share_of_peak"] = work / (found["ms"] * 1e9 * arguments.peak_tflops)
                rows.append({"tokens": length, "batch": batch, "backward": backward, "way": name, **found})
                print(rows[-1], flush=True)
    if arguments.json:
        head = {**describe(), "device": torch.cuda.get_device_name()}
        arguments.json.write_text(
            json.dumps({"machine": head, "dtype": arguments.dtype, "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
