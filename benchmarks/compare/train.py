"""A whole training step of the mini size, and what padding costs it.

Recipe `zcodepp-mini` (256 wide, 6 + 6 layers, vocabulary 8,000), random weights and tokens, no dropout, fp32. A pass is
a step: loss, backward pass, AdamW. transformers' side is the same model with its DeBERTa-v2 encoder in the place of
ours, decoder and token table shared with ours. "square products" does our step's floating-point operations, as torch's
`FlopCounterMode` counts them, in products of square matrices: its time over ours is our share of the machine's peak.
Tokens a second count documents and targets, without padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count
from transformers.modeling_outputs import BaseModelOutput

from benchmarks.compare.comparisons import Bench, Comparison, Figure
from benchmarks.compare.contenders import BenchSettings, Cell, Contender, blocks_kept
from benchmarks.compare.encoder import samsum_batch
from benchmarks.compare.kernel import OURS, both_ways, without_kernel
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.recipes.catalogue import recipe

_HERE = "benchmarks.compare.train"
_TARGET = 64
_SIDE = 1024
_PEER, _PADDED, _PEAK = "transformers' encoder", "precis, padded", "square products"
Step = Callable[[], object]


def bench(*, quick: bool = False) -> Bench:
    """Return the benchmark with the goals of docs/benchmarks/goals.md; `quick` has smaller batches and fewer peers."""
    rows, dialogues = (2, 8) if quick else (4, 16)
    full = _cell(f"{rows} x (512 + {_TARGET}) tokens", rows=rows, tokens=512)
    samsum = _cell(f"{dialogues} of SAMSum's lengths", rows=dialogues, tokens=None)
    peer = Contender(name=_PEER, make=f"{_HERE}:deberta")
    peers = [peer] if quick else [peer, blocks_kept(peer)]
    return Bench(
        name="train",
        contenders=[
            *both_ways(Contender(name="precis", make=f"{_HERE}:ours")),
            *peers,
            Contender(name=_PADDED, make=f"{_HERE}:padded", skip={full.name: "no padding"}),
            # operations are counted without the kernel, into which the counter cannot look
            without_kernel(Contender(name=_PEAK, make=f"{_HERE}:square_products")),
        ],
        cells=[full, samsum],
        comparisons=[
            Comparison(cell=samsum.name, theirs=_PADDED, goal=1.3),
            *(one for ours in OURS for one in _comparisons(full, samsum, ours)),
            *(
                Comparison(cell=cell.name, theirs=kept.name, ours=ours)
                for ours in OURS
                for kept in peers[1:]
                for cell in (full, samsum)
            ),
        ],
        settings=BenchSettings(rounds=3 if quick else 7, seconds=0.3 if quick else 1.0, memory=not quick),
    )


def _comparisons(full: Cell, samsum: Cell, ours: str) -> list[Comparison]:
    return [
        Comparison(cell=full.name, theirs=_PEER, ours=ours, goal=1.3),
        Comparison(cell=full.name, theirs=_PEER, ours=ours, figure=Figure.tensors),
        Comparison(cell=full.name, theirs=_PEAK, ours=ours),
        Comparison(cell=samsum.name, theirs=_PEER, ours=ours),
        Comparison(cell=samsum.name, theirs=_PEAK, ours=ours),
    ]


def _cell(name: str, *, rows: int, tokens: int | None) -> Cell:
    source = rows * tokens if tokens is not None else int(samsum_batch(rows)[1].sum())
    return Cell(name=name, arguments={"rows": rows, "tokens": tokens}, tokens=source + rows * _TARGET)


def ours(*, rows: int, tokens: int | None) -> Step:
    """Prepare a step of the model as it is, which skips the padding of documents.

    Args:
        rows: documents in the batch.
        tokens: their length; None: lengths of SAMSum's dialogues.
    """
    return _step(_model(), rows, tokens)


def padded(*, rows: int, tokens: int | None) -> Step:
    """Prepare the same step, computing the padding too."""
    from precis.nn import packing

    packing.WASTE = 2.0  # a share that no batch wastes
    return _step(_model(), rows, tokens)


def deberta(*, rows: int, tokens: int | None) -> Step:
    """Prepare a step with transformers' DeBERTa-v2 encoder under our decoder."""
    return _step(WithDeberta(_model()), rows, tokens)


def square_products(*, rows: int, tokens: int | None) -> Step:
    """Prepare square products with as many operations as a step of `ours` has."""
    counter = FlopCounterMode(display=False, custom_mapping=_fused_on_cpu())
    step = ours(rows=rows, tokens=tokens)
    with counter:
        step()
    count = round(counter.get_total_flops() / (2 * _SIDE**3))
    left, right = torch.randn(2, _SIDE, _SIDE)

    def products() -> None:
        for _ in range(max(1, count)):
            torch.mm(left, right)

    return products


def _fused_on_cpu() -> dict[Any, Callable[..., int]]:
    """Return FLOP counts for fused attention on the CPU, which torch's counter lacks."""

    def forward(queries: Any, keys: Any, values: Any, *_: Any, **__: Any) -> int:
        return int(sdpa_flop_count(queries, keys, values))

    def backward(gradient: Any, queries: Any, keys: Any, values: Any, *_: Any, **__: Any) -> int:
        return int(sdpa_backward_flop_count(gradient, queries, keys, values))

    operators: Any = torch.ops.aten
    return {
        operators._scaled_dot_product_flash_attention_for_cpu: forward,
        operators._scaled_dot_product_flash_attention_for_cpu_backward: backward,
    }


class WithDeberta(nn.Module):
    """Another encoder before our decoder, reading the same token table."""

    def __init__(self, model: ZCodePPForConditionalGeneration) -> None:
        from transformers import DebertaV2Model

        from benchmarks.compare.peers import Size, deberta_config

        super().__init__()
        config = model.config
        size = Size(width=config.hidden_size, layers=config.encoder_layers, heads=config.num_attention_heads)
        self.encoder: Any = DebertaV2Model(deberta_config(size))
        table = model.get_input_embeddings()
        self.encoder.set_input_embeddings(table)
        model.model.encoder.stack = nn.Identity()  # never called; the token table stays
        self.decoder = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor) -> Any:
        states = self.encoder(input_ids, attention_mask).last_hidden_state
        return self.decoder(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=attention_mask,
            labels=labels,
        )


def _model() -> ZCodePPForConditionalGeneration:
    torch.manual_seed(0)
    shape = replace(recipe("zcodepp-mini").shape, dropout=0.0, attention_dropout=0.0)
    return ZCodePPForConditionalGeneration(ZCodePPConfig(**shape.to_dict()))


def _step(model: nn.Module, rows: int, tokens: int | None) -> Step:
    model.train()
    optimizer = optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batch = _batch(rows, tokens)

    def step() -> float:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def _batch(rows: int, tokens: int | None) -> dict[str, Tensor | None]:
    draw = torch.Generator().manual_seed(1)
    vocabulary = recipe("zcodepp-mini").shape.vocab_size
    labels = torch.randint(4, vocabulary, (rows, _TARGET), generator=draw)
    if tokens is None:
        ids, mask = samsum_batch(rows)
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}
    ids = torch.randint(4, vocabulary, (rows, tokens), generator=draw)
    return {"input_ids": ids, "attention_mask": None, "labels": labels}
