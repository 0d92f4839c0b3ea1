"""The fast loop against `generate`, transformers' BART and T5, and CTranslate2, all of one size
with random weights.

512 wide, 8 heads, 6 decoder layers, feed-forward 2048, vocabulary 32,000; 256 source tokens, exactly 64 new ones, no
trigram twice. Two kinds of cells, for each batch size and number of beams:

- "whole": 6 encoder layers, the time from ids to ids. The encoders differ: disentangled attention in ours, plain
  attention in BART, T5's buckets in T5.
- "decoder": 1 encoder layer, so that the time is that of the decoders. T5's decoder has the same layers as ours
  (pre-RMSNorm, ReLU, no biases, buckets), matrix for matrix; BART's has matrices of the same shapes, biases and
  LayerNorms. CTranslate2 lacks Z-Code++, so it runs these decoders and skips the whole models.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GenerationConfig,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from benchmarks.compare.comparisons import Bench, Comparison
from benchmarks.compare.contenders import BenchSettings, Cell, Contender
from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.packed_linear import AsGiven, BFloat16, Int8, Weights, has_onednn
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis_text.config import nearest
from precis_text.errors import UserError

Kind = Literal["zcodepp", "bart", "t5"]
Rows = list[list[int]]

_HEADS, _WIDTH, _INNER, _LAYERS, _VOCABULARY = 8, 512, 2048, 6, 32_000
_SOURCE, _TOKENS, _NGRAM = 256, 64, 3
_PADDING, _START, _END = 0, 1, 2
_WEIGHTS: dict[str, Weights] = {"fp32": AsGiven(), "bf16": BFloat16(), "int8": Int8()}
_HERE = "benchmarks.compare.decode"

_PARTS = {"decoder": 1, "whole": _LAYERS}  # encoder layers
_PEERS = (("transformers BART", "bart"), ("transformers T5", "t5"))
_OURS_BY_GENERATE = ("precis generate", "zcodepp")
_FEW_LAYERS = "T5's cache in transformers is as long as its encoder has layers"
_OTHER_ENCODER = "its encoder differs: only decoders are compared"


def bench(*, quick: bool = False) -> Bench:
    """Return the benchmark; `quick` skips batches of 8, whole models, T5 in CTranslate2 and our `generate`."""
    sizes = [(1, 1), (1, 5)] if quick else [(1, 1), (1, 5), (8, 1), (8, 5)]
    converted = ["BART"] if quick else ["T5", "BART"]
    peers = _PEERS if quick else (_OURS_BY_GENERATE, *_PEERS)
    cells = [(part, batch, beams) for part in (["decoder"] if quick else _PARTS) for batch, beams in sizes]
    return Bench(
        name="decode",
        contenders=[
            *_ours(),
            *_by_transformers(peers, [_name(*cell) for cell in cells if cell[0] == "decoder"]),
            *_by_ctranslate2(converted, [_name(*cell) for cell in cells if cell[0] == "whole"]),
        ],
        cells=[
            Cell(
                name=_name(part, batch, beams),
                arguments={"batch": batch, "beams": beams, "encoder_layers": _PARTS[part]},
            )
            for part, batch, beams in cells
        ],
        comparisons=[comparison for cell in cells for comparison in _comparisons(*cell, peers, converted)],
        settings=BenchSettings(rounds=2 if quick else 7, memory=not quick),
    )


def _name(part: str, batch: int, beams: int) -> str:
    return f"{part}, batch {batch}, {'greedy' if beams == 1 else f'beam {beams}'}"


def _comparisons(
    part: str, batch: int, beams: int, peers: Sequence[tuple[str, str]], converted: Sequence[str]
) -> list[Comparison]:
    """Compare a cell's contenders with their goals.

    CTranslate2: equal speed, or a tenth slower for int8 and for many beams. `generate`: twice its speed for beams.
    bf16: a quarter faster than fp32.
    """
    cell, level = _name(part, batch, beams), 0.9 if (batch, beams) == (8, 5) else 1.0
    twice = 2.0 if beams > 1 else None
    against: list[tuple[str, str, float | None]] = [
        *((peer, "precis fp32", twice) for peer, kind in peers if part == "whole" or kind != "t5"),
        ("precis fp32", "precis bf16", 1.25),
    ]
    if part == "decoder":
        against += [
            (f"CTranslate2 {kind} {bits}", f"precis {bits}", goal)
            for kind in converted
            for bits, goal in (("fp32", level), ("int8", 0.9 if batch == 1 else None))
        ]
    return [Comparison(cell=cell, theirs=theirs, ours=ours, goal=goal) for theirs, ours, goal in against]


def _ours() -> list[Contender]:
    no_bf16 = None if has_onednn(torch.bfloat16) else "this CPU lacks bf16"
    return [
        Contender(
            name=f"precis {bits}",
            make=f"{_HERE}:fast",
            arguments={"bits": bits},
            missing=no_bf16 if bits == "bf16" else None,
        )
        for bits in _WEIGHTS
    ]


def _by_transformers(peers: Sequence[tuple[str, str]], decoder_cells: Sequence[str]) -> list[Contender]:
    return [
        Contender(
            name=name,
            make=f"{_HERE}:by_generate",
            arguments={"kind": kind},
            skip=dict.fromkeys(decoder_cells, _FEW_LAYERS) if kind == "t5" else {},
        )
        for name, kind in peers
    ]


def _by_ctranslate2(kinds: Sequence[str], whole_cells: Sequence[str]) -> list[Contender]:
    return [
        Contender(
            name=f"CTranslate2 {kind} {bits}",
            make=f"{_HERE}:ctranslate2",
            arguments={"kind": kind.lower(), "bits": bits},
            requires="ctranslate2",
            skip=dict.fromkeys(whole_cells, _OTHER_ENCODER),
            in_torch=False,
        )
        for kind in kinds
        for bits in ("fp32", "int8")
    ]


def fast(*, bits: str, batch: int, beams: int, encoder_layers: int) -> Callable[[], Rows]:
    """Prepare our fast loop as the `Summarizer` calls it, including the timed check of the packed weights.

    Raises:
        UserError: `bits` is not fp32, bf16 or int8.
    """
    if bits not in _WEIGHTS:
        raise UserError(f"unknown precision {bits!r}{nearest(bits, _WEIGHTS)}")
    loop = FastDecoder(model_of("zcodepp", encoder_layers), _WEIGHTS[bits])
    inputs, config = inputs_of(batch), exact_config(beams)

    def one_pass() -> Rows:
        loop.check()
        return loop(inputs, config)

    return one_pass


def by_generate(*, kind: Kind, batch: int, beams: int, encoder_layers: int) -> Callable[[], Rows]:
    """Prepare transformers' loop over our model or theirs."""
    model: Any = model_of(kind, encoder_layers)
    inputs, config = inputs_of(batch), exact_config(beams)
    return lambda: model.generate(**inputs, generation_config=config).tolist()


def ctranslate2(*, kind: Kind, bits: str, batch: int, beams: int, encoder_layers: int) -> Callable[[], Rows]:
    """Prepare CTranslate2 with the weights of transformers' model, and as many threads as torch has."""
    names, translator = _names(), _translator(kind, bits, encoder_layers)
    sources = [[names[token] for token in row] for row in inputs_of(batch)["input_ids"].tolist()]

    def one_pass() -> Rows:
        found = translator.translate_batch(
            sources,
            beam_size=beams,
            no_repeat_ngram_size=_NGRAM,
            min_decoding_length=_TOKENS,
            max_decoding_length=_TOKENS,
            max_batch_size=0,
        )
        return [[int(token[1:]) for token in result.hypotheses[0]] for result in found]

    return one_pass


@cache
def _translator(kind: Kind, bits: str, encoder_layers: int) -> Any:
    """Convert the model once a process, because the conversion takes longer than a cell."""
    from ctranslate2 import Translator

    with tempfile.TemporaryDirectory() as folder:
        _convert(model_of(kind, encoder_layers), _names(), folder)
        return Translator(
            folder,
            compute_type={"fp32": "float32", "int8": "int8"}[bits],
            inter_threads=1,
            intra_threads=torch.get_num_threads(),
        )


def _names() -> list[str]:
    return [f"t{index}" for index in range(_VOCABULARY)]


def _convert(model: PreTrainedModel, names: Sequence[str], folder: str) -> None:
    """Write a model in CTranslate2's format, by its own loaders, without a tokenizer."""
    from ctranslate2.converters import transformers as converters

    model.requires_grad_(False)
    t5 = isinstance(model, T5ForConditionalGeneration)
    if not t5:
        model.config.normalize_before = False  # the loader of 4.8 reads it; transformers 5 has it no more
    loader = converters.T5Loader() if t5 else converters.BartLoader()
    spec = loader.get_model_spec(model)
    loader.set_vocabulary(spec, list(names))
    spec.config.decoder_start_token = names[_START]
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = names[_START], names[_END], names[3]
    spec.validate()
    spec.optimize(quantization=None)
    spec.save(folder)


def inputs_of(batch: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(10, _VOCABULARY, (batch, _SOURCE), generator=draw)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def exact_config(
    beams: int, *, tokens: int = _TOKENS, start: int = _START, end: int = _END
) -> GenerationConfig:
    """Return the configuration: exactly `tokens` new tokens, no trigram twice."""
    config = GenerationConfig(
        max_new_tokens=tokens,
        min_new_tokens=tokens,
        num_beams=beams,
        no_repeat_ngram_size=_NGRAM,
        do_sample=False,
        pad_token_id=_PADDING,
        decoder_start_token_id=start,
        eos_token_id=end,
    )
    if beams > 1:
        config.update(early_stopping=True, length_penalty=1.0)
    return config


def model_of(kind: Kind, encoder_layers: int) -> PreTrainedModel:
    """Build a model of this benchmark's size, in evaluation mode and fp32, with the same weights at every call."""
    torch.manual_seed(0)
    ids = {
        "pad_token_id": _PADDING,
        "bos_token_id": _START,
        "decoder_start_token_id": _START,
        "eos_token_id": _END,
        "vocab_size": _VOCABULARY,
    }
    if kind == "zcodepp":
        ours = ZCodePPConfig(
            **ids,
            hidden_size=_WIDTH,
            num_attention_heads=_HEADS,
            intermediate_size=_INNER,
            encoder_layers=encoder_layers,
            decoder_layers=_LAYERS,
        )
        return ZCodePPForConditionalGeneration(ours).eval()
    if kind == "bart":
        bart = BartConfig(
            **ids,
            d_model=_WIDTH,
            encoder_attention_heads=_HEADS,
            decoder_attention_heads=_HEADS,
            encoder_ffn_dim=_INNER,
            decoder_ffn_dim=_INNER,
            encoder_layers=encoder_layers,
            decoder_layers=_LAYERS,
            forced_eos_token_id=None,
        )
        return BartForConditionalGeneration(bart).eval()
    t5 = T5Config(
        **ids,
        d_model=_WIDTH,
        d_kv=_WIDTH // _HEADS,
        d_ff=_INNER,
        num_heads=_HEADS,
        num_layers=encoder_layers,
        num_decoder_layers=_LAYERS,
    )
    return T5ForConditionalGeneration(t5).eval()
