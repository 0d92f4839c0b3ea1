"""The same ProphetNet, random weights, decoded by the fast loop and by transformers.

512 wide, 8 heads, 6+6 layers, feed-forward 2048, vocabulary 30,522, n = 2; 256 source tokens, exactly 64 new ones, no
trigram twice. transformers' model is made first and its weights are read into ours, so that both write the same text
(`tests/parity/test_prophetnet.py`): transformers computes all streams at every step, the fast loop the first one.

The encoder runs on both sides. Its time bounds the ratio, even if the rest of ours took no time at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig
from transformers import ProphetNetConfig as TheirConfig
from transformers import ProphetNetForConditionalGeneration as TheirModel

from benchmarks.compare.comparisons import Bench, Comparison
from benchmarks.compare.contenders import BenchSettings, Cell, Contender
from benchmarks.compare.decode import exact_config
from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.packed_linear import AsGiven
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.prophetnet.prophetnet_weights import config_from_transformers, from_transformers

Rows = list[list[int]]

_WIDTH, _HEADS, _INNER, _LAYERS, _VOCABULARY = 512, 8, 2048, 6, 30_522
_SOURCE, _TOKENS = 256, 64
_END = 102
_GOAL, _FURTHER_GOAL = (
    2.0,
    2.5,
)  # transformers' seconds over ours: for the model itself, for the comparison of all peers
_HERE = "benchmarks.compare.prophetnet"
_PEER, _GENERATE = "transformers ProphetNet", "precis generate"
_NAMES = {"precis": "fast", _GENERATE: "by_generate", _PEER: "transformers"}
_ENCODER = Cell(name="encoder only, batch 8", arguments={"batch": 8, "beams": 1, "encoder_alone": True})


def bench(*, quick: bool = False) -> Bench:
    """Return the benchmark; `quick` leaves out the batches of 8."""
    sizes = [(1, 1), (1, 5)] if quick else [(1, 1), (1, 5), (8, 1), (8, 5)]
    cells = [
        Cell(name=_name(batch, beams), arguments={"batch": batch, "beams": beams}) for batch, beams in sizes
    ]
    bound = [] if quick else [_ENCODER]
    same = {cell.name: "its encoder is that of the fast loop" for cell in bound}
    return Bench(
        name="prophetnet",
        contenders=[
            Contender(name=name, make=f"{_HERE}:{make}", skip=same if name == _GENERATE else {})
            for name, make in _NAMES.items()
        ],
        cells=[*cells, *bound],
        comparisons=[
            *(comparison for cell in cells for comparison in _comparisons(cell.name)),
            *(Comparison(cell=cell.name, theirs=_PEER) for cell in bound),
        ],
        settings=BenchSettings(rounds=3 if quick else 7, memory=not quick),
    )


def _comparisons(cell: str) -> list[Comparison]:
    return [
        Comparison(cell=cell, theirs=_GENERATE),
        Comparison(cell=cell, theirs=_PEER, goal=_GOAL, further_goal=_FURTHER_GOAL),
    ]


def _name(batch: int, beams: int) -> str:
    return f"batch {batch}, {'greedy' if beams == 1 else f'beam {beams}'}"


def fast(*, batch: int, beams: int, encoder_alone: bool = False) -> Callable[[], Any]:
    """Prepare our fast loop as the `Summarizer` calls it, including the timed check of the packed weights."""
    if encoder_alone:
        return _encoder(_ours(), batch)
    loop = FastDecoder(_ours(), AsGiven())
    inputs, config = _inputs(batch), _config(beams)

    def one_pass() -> Rows:
        loop.check()
        return loop(inputs, config)

    return one_pass


def by_generate(*, batch: int, beams: int) -> Callable[[], Rows]:
    """Prepare our modules under transformers' loop."""
    model, inputs, config = _ours(), _inputs(batch), _config(beams)
    return lambda: model.generate(**inputs, generation_config=config).tolist()


def transformers(*, batch: int, beams: int, encoder_alone: bool = False) -> Callable[[], Any]:
    """Prepare transformers' modules under its own loop."""
    model: Any = _theirs()
    if encoder_alone:
        return _encoder(model, batch)
    inputs, config = _inputs(batch), _config(beams)
    return lambda: model.generate(**inputs, generation_config=config).tolist()


def _encoder(model: Any, batch: int) -> Callable[[], Tensor]:
    """Prepare the encoder pass that both sides run before the first token."""
    encoder, inputs = model.get_encoder(), _inputs(batch)

    def one_pass() -> Tensor:
        with torch.no_grad():
            states: Tensor = encoder(**inputs, return_dict=True).last_hidden_state
        return states

    return one_pass


def _theirs() -> TheirModel:
    torch.manual_seed(0)
    shape = TheirConfig(
        vocab_size=_VOCABULARY,
        hidden_size=_WIDTH,
        encoder_ffn_dim=_INNER,
        decoder_ffn_dim=_INNER,
        num_encoder_layers=_LAYERS,
        num_decoder_layers=_LAYERS,
        num_encoder_attention_heads=_HEADS,
        num_decoder_attention_heads=_HEADS,
        decoder_start_token_id=_END,
        eos_token_id=_END,
        init_std=0.05,  # texts that do not repeat one token
    )
    return TheirModel(shape).eval()


def _ours() -> ProphetNetForConditionalGeneration:
    theirs = _theirs()
    config = config_from_transformers(theirs.config.to_dict())
    weights = {name: tensor for name, tensor in theirs.state_dict().items() if name != "lm_head.weight"}
    model = ProphetNetForConditionalGeneration.from_pretrained(
        None, config=config, state_dict=from_transformers(weights)
    )
    assert isinstance(model, ProphetNetForConditionalGeneration)
    return model.eval()


def _inputs(batch: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(1000, _VOCABULARY, (batch, _SOURCE), generator=draw)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _config(beams: int) -> GenerationConfig:
    return exact_config(beams, tokens=_TOKENS, start=_END, end=_END)
