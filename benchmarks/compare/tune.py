"""A training step of a prefix on BART against fine-tuning the same BART, and PEFT's prefix.

BART of transformers, 512 wide, 8 heads, 6 + 6 layers, feed-forward 2048, vocabulary 32,000, random weights, dropout
0.1, fp32. A pass is a step: loss, backward pass, AdamW. Prefixes have the paper's lengths (Table 7): 10 columns for
short documents (SAMSum, E2E), 100 for longer ones (XSum). PEFT's reaches the decoder's self-attention only. No gradient
then passes through its encoder: it learns less, in less time. Another contender is our prefix at that site only.

Memory is that of the whole process at its peak: weights, gradients, moments, activations, and the libraries in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn, optim
from transformers import BartConfig, BartForConditionalGeneration

from benchmarks.compare.comparisons import Bench, Comparison, Figure
from benchmarks.compare.contenders import BenchSettings, Cell, Contender
from precis.tuning import Prefix, attach, method
from precis.tuning.prefix import ALL_SITES

_WIDTH, _HEADS, _INNER, _LAYERS, _VOCABULARY = 512, 8, 2048, 6, 32_000
_TARGET = 64
_HERE = "benchmarks.compare.tune"
_WHOLE, _PEFT = "fine-tuning", "PEFT PrefixTuning"
_PLAIN, _SPARSE, _AS_PEFT = "precis prefix", "precis hierblock+softsa", "precis prefix, decoder's own site"
_FASTER, _SMALLER = 1 / 0.7, 1 / 0.85
"""Goals as ratios: at most 0.7 of the time and 0.85 of the memory of fine-tuning."""

Step = Callable[[], None]


def bench(*, quick: bool = False) -> Bench:
    """Return the benchmark; `quick` has few and short documents only.

    The goals come from 8 documents of 256 tokens.
    """
    sizes = ((4, 128, 10),) if quick else ((8, 128, 10), (8, 256, 100))
    cells = [
        Cell(
            name=f"{rows} x ({source} + {_TARGET}) tokens, {columns} columns",
            arguments={"rows": rows, "source_tokens": source, "columns": columns},
        )
        for rows, source, columns in sizes
    ]
    return Bench(
        name="tune",
        contenders=[
            Contender(name=_WHOLE, make=f"{_HERE}:fine_tuning"),
            Contender(name=_PLAIN, make=f"{_HERE}:prefix", arguments={"name": "prefix"}),
            Contender(name=_SPARSE, make=f"{_HERE}:prefix", arguments={"name": "hierblock+softsa"}),
            Contender(
                name=_AS_PEFT, make=f"{_HERE}:prefix", arguments={"name": "prefix", "sites": ["decoder"]}
            ),
            Contender(name=_PEFT, make=f"{_HERE}:peft_prefix", requires="peft"),
        ],
        cells=cells,
        comparisons=[comparison for cell in cells for comparison in _comparisons(cell.name)],
        settings=BenchSettings(rounds=3 if quick else 7, seconds=1.0, memory=not quick),
    )


def _comparisons(cell: str) -> list[Comparison]:
    against: list[tuple[str, str, Figure, float | None]] = [
        (_WHOLE, _PLAIN, Figure.time, _FASTER),
        (_WHOLE, _PLAIN, Figure.peak, _SMALLER),
        *(
            (theirs, ours, figure, None)
            for theirs, ours in ((_WHOLE, _SPARSE), (_PEFT, _AS_PEFT), (_PEFT, _PLAIN))
            for figure in (Figure.time, Figure.peak)
        ),
    ]
    return [
        Comparison(cell=cell, theirs=theirs, ours=ours, figure=figure, goal=goal)
        for theirs, ours, figure, goal in against
    ]


def fine_tuning(*, rows: int, source_tokens: int, columns: int) -> Step:
    """Prepare a step that trains all parameters, without columns."""
    del columns
    return _step(_bart(), rows, source_tokens)


def prefix(
    *, name: str, rows: int, source_tokens: int, columns: int, sites: Sequence[str] = ALL_SITES
) -> Step:
    """Prepare a step of our prefix in every layer, at all three sites or some."""
    model = _bart()
    attach(model, method(name, Prefix(length=columns, sites=tuple(sites))))
    return _step(model, rows, source_tokens)


def peft_prefix(*, rows: int, source_tokens: int, columns: int) -> Step:
    """Prepare a step of PEFT's own PrefixTuning, without its network."""
    from peft import PrefixTuningConfig, get_peft_model

    config = PrefixTuningConfig(task_type="SEQ_2_SEQ_LM", num_virtual_tokens=columns)
    return _step(get_peft_model(_bart(), config), rows, source_tokens)


def _step(model: nn.Module, rows: int, source_tokens: int) -> Step:
    model.train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = optim.AdamW(trained, lr=1e-4, fused=True)
    batch = _batch(rows, source_tokens)

    def step() -> None:
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def _batch(rows: int, source_tokens: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(10, _VOCABULARY, (rows, source_tokens), generator=draw)
    labels = torch.randint(10, _VOCABULARY, (rows, _TARGET), generator=draw)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def _bart() -> Any:
    torch.manual_seed(0)
    return BartForConditionalGeneration(
        BartConfig(
            vocab_size=_VOCABULARY,
            d_model=_WIDTH,
            encoder_attention_heads=_HEADS,
            decoder_attention_heads=_HEADS,
            encoder_ffn_dim=_INNER,
            decoder_ffn_dim=_INNER,
            encoder_layers=_LAYERS,
            decoder_layers=_LAYERS,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=2,
        )
    )
