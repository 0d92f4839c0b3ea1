"""The attention core by itself, at DeBERTa's settings (4 heads of 64 unless a cell says more).

Projections are left out on both sides: transformers' module gets identities in their place. Queries, keys and values
are then the input, and position keys are the table. Both compute the same function (tests/parity).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.compare.comparisons import Bench, Comparison, Figure, LongCells
from benchmarks.compare.contenders import BenchSettings, Cell, Contender, blocks_kept
from benchmarks.compare.kernel import OURS, both_ways
from benchmarks.compare.peers import Size, deberta_config

Core = Callable[[Tensor, Tensor], Tensor]
_TABLE_STD = 0.1


def ours(*, tokens: int, batch: int = 1, heads: int = 4, backward: bool = False) -> Callable[[], object]:
    """Prepare `attend` with disentangled scores."""
    from precis.nn.attention import attend, merge_heads, split_heads
    from precis.nn.disentangled.bias import DisentangledBias
    from precis.nn.relative_positions import LogBuckets, OffsetRows

    scale = (64 * 3) ** -0.5
    buckets = LogBuckets(256, 512)  # once for a model, as its peer's bucket indices are made outside

    def core(states: Tensor, table: Tensor) -> Tensor:
        split = split_heads(states, heads)
        rows = split_heads(table[None] * scale, heads)[0]
        bias = DisentangledBias(rows, rows, OffsetRows(buckets))
        return merge_heads(attend(split, split, split, bias=bias, scale=scale))

    return _passes(core, tokens, batch, heads, backward)


def deberta(*, tokens: int, batch: int = 1, heads: int = 4, backward: bool = False) -> Callable[[], object]:
    """Prepare transformers' DebertaV2 self-attention.

    Bucket indices are computed once here, as its encoder computes them once a pass.
    """
    from transformers.models.deberta_v2 import modeling_deberta_v2 as source

    module: Any = source.DisentangledSelfAttention(deberta_config(Size(width=64 * heads, heads=heads)))
    for name in ("query_proj", "key_proj", "value_proj"):
        setattr(module, name, torch.nn.Identity())
    everything = torch.ones(batch, 1, tokens, tokens, dtype=torch.bool)
    sample = torch.empty(batch, tokens, 1)
    relative = source.build_relative_position(sample, sample, bucket_size=256, max_position=512)

    def core(states: Tensor, table: Tensor) -> Tensor:
        mixed: Tensor = module(states, everything, relative_pos=relative, rel_embeddings=table)[0]
        return mixed

    return _passes(core, tokens, batch, heads, backward)


def without_positions(
    *, tokens: int, batch: int = 1, heads: int = 4, backward: bool = False
) -> Callable[[], object]:
    """Prepare torch's fused kernel without position scores, which is the lower bound."""
    from precis.nn.attention import merge_heads, split_heads

    def core(states: Tensor, _: Tensor) -> Tensor:
        split = split_heads(states, heads)
        return merge_heads(torch.nn.functional.scaled_dot_product_attention(split, split, split))

    return _passes(core, tokens, batch, heads, backward)


def _passes(core: Core, tokens: int, batch: int, heads: int, backward: bool) -> Callable[[], object]:
    generator = torch.Generator().manual_seed(0)  # the same inputs for all, whatever was built before
    states = torch.randn(batch, tokens, 64 * heads, generator=generator)
    table = torch.randn(512, 64 * heads, generator=generator) * _TABLE_STD

    def forward() -> object:
        with torch.no_grad():
            return core(states, table)

    def both() -> object:
        asked = [states.requires_grad_(), table.requires_grad_()]
        return torch.autograd.grad(core(states, table).sum(), asked, allow_unused=True)

    return both if backward else forward


# tokens -> (batch, wanted ratio of time with the kernel)
_FORWARD = {
    64: (8, None),
    128: (8, None),
    256: (4, None),
    512: (2, 4.0),
    1024: (1, 2.5),
    2048: (1, 8.0),
    4096: (1, 5.0),
    8192: (1, None),
    16_384: (1, None),
}
_BACKWARD = {512: (2, None), 1024: (1, None), 2048: (1, 2.0), 4096: (1, 2.0)}
# tokens -> wanted ratio of the tensors' peak
_SMALLER = {"forward": {4096: 14.0}, "forward+backward": {2048: 10.0, 4096: 10.0}}
_LONGEST_PEER = 4096
_FLOOR = "without positions"


def bench(*, quick: bool) -> Bench:
    """Return the benchmark with the goals of docs/benchmarks/goals.md; above 4096 tokens it compares only growth."""
    forward = {n: v for n, v in _FORWARD.items() if not quick or n <= 2048}
    backward = {n: v for n, v in _BACKWARD.items() if not quick or n <= 1024}
    cells = [
        Cell(name=f"forward {n}", arguments={"tokens": n, "batch": batch})
        for n, (batch, _) in forward.items()
    ] + [
        Cell(name=f"forward+backward {n}", arguments={"tokens": n, "batch": batch, "backward": True})
        for n, (batch, _) in backward.items()
    ]
    return Bench(
        name="attention",
        contenders=_contenders(cells),
        cells=cells,
        comparisons=_comparisons(forward, "forward") + _comparisons(backward, "forward+backward"),
        settings=BenchSettings(rounds=3, seconds=0.2, memory=False) if quick else BenchSettings(),
        long=None
        if quick
        else LongCells(
            fitted_from=4096, shorter="forward 8192", longer="forward 16384", ours=OURS, theirs=_FLOOR
        ),
    )


def _contenders(cells: list[Cell]) -> list[Contender]:
    long = {
        cell.name: "more than a minute a pass"
        for cell in cells
        if int(cell.arguments["tokens"]) > _LONGEST_PEER
    }
    peer = Contender(name="transformers", make="benchmarks.compare.attention:deberta", skip=long)
    return [
        *both_ways(Contender(name="precis", make="benchmarks.compare.attention:ours")),
        peer,
        blocks_kept(peer),
        Contender(name=_FLOOR, make="benchmarks.compare.attention:without_positions"),
    ]


def _comparisons(lengths: dict[int, Any], what: str) -> list[Comparison]:
    """Require our two variants to be nowhere slower than transformers, however memory is allocated."""
    found = []
    for tokens, (_, goal) in lengths.items():
        cell, smaller = f"{what} {tokens}", _SMALLER[what].get(tokens)
        for ours in OURS:
            found.append(Comparison(cell=cell, theirs=_FLOOR, ours=ours))
            if tokens > _LONGEST_PEER:
                continue
            found += [
                Comparison(
                    cell=cell,
                    theirs="transformers",
                    ours=ours,
                    goal=1.0,
                    further_goal=goal if ours == "precis" else None,
                ),
                Comparison(cell=cell, theirs="transformers, blocks kept", ours=ours, goal=1.0),
                Comparison(cell=cell, theirs="transformers", ours=ours, figure=Figure.tensors, goal=smaller),
                Comparison(cell=cell, theirs="transformers", ours=ours, figure=Figure.process),
            ]
    return found
