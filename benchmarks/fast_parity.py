"""Does the fast loop write what `generate` writes? Counted on documents, with a random or a trained model.

    python -m benchmarks.fast_parity [--documents 500] [--model FOLDER] [--out FILE]

Greedy and beam search run singly and in padded batches of 8; the figure is the share of documents with identical tokens
in fp32. The figure of bf16 and int8 is the share of places with the same best next token as in fp32. Each place is read
after fp32's tokens (teacher forcing), so that one difference is counted once. A random model's best token leads by
little: the agreement of a trained one is higher.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedTokenizerBase

from precis.data.synthetic.corpus import make_pairs
from precis.data.text.unigram_tokenizer import train_tokenizer
from precis.generation.fast.fast_decoder import FastDecoder, why_not
from precis.generation.fast.packed_decoder import Steps
from precis.generation.fast.packed_linear import AsGiven, BFloat16, Int8, Weights, has_int8
from precis.generation.fast.packed_zcodepp import PackedZCodePP
from precis.generation.generation_settings import generation_config
from precis.generation.model_loader import load_model
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis_text.decoding_settings import GenerationSettings

SEARCHES = {
    "greedy": GenerationSettings(max_tokens=32),
    "greedy, trigrams": GenerationSettings(max_tokens=32, no_repeat_ngram=3, min_tokens=8),
    "beam 4": GenerationSettings(max_tokens=32, beams=4),
    "beam 5, trigrams, penalty 2, to the end": GenerationSettings(
        max_tokens=32, beams=5, no_repeat_ngram=3, length_penalty=2.0, early_stopping=False
    ),
}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--documents", type=int, default=500)
    options.add_argument(
        "--model", help="a Z-Code++ run folder; default: a random model of 128 wide, 2+2 layers"
    )
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    model, tokenizer = _random() if given.model is None else _trained(given.model)
    texts = [pair.document for pair in make_pairs(given.documents, seed=11)]
    results: dict[str, Any] = {"documents": len(texts), "model": given.model or "random"}
    for name, settings in SEARCHES.items():
        for batch in (8, 1):
            same = sum(_identical(model, tokenizer, settings, part) for part in _parts(texts, batch))
            results[f"fp32, {name}, batch {batch}"] = same / len(texts)
            print(f"fp32, {name}, batch {batch}: {same} of {len(texts)} documents identical", flush=True)
    formats: dict[str, BFloat16 | Int8] = {"bf16": BFloat16(), **({"int8": Int8()} if has_int8() else {})}
    for name, weights in formats.items():
        results[name] = _agreement(model, tokenizer, weights, texts[:64])
        print(f"{name}: {results[name]:.1%} of next tokens as in fp32", flush=True)
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(results, indent=1) + "\n")


def _identical(
    model: ZCodePPForConditionalGeneration,
    tokenizer: PreTrainedTokenizerBase,
    settings: GenerationSettings,
    texts: list[str],
) -> int:
    inputs, config = _inputs(tokenizer, texts), generation_config(settings, model, tokenizer)
    assert why_not(model, config) is None
    ours = FastDecoder(model, AsGiven())(inputs, config)
    theirs = model.generate(**inputs, generation_config=config).tolist()
    # `generate` pads a row after its end; the padding is not part of the summary
    return sum(
        row[: len(mine)] == mine and _ended(mine, row, config) for mine, row in zip(ours, theirs, strict=True)
    )


def _ended(mine: list[int], row: list[int], config: GenerationConfig) -> bool:
    return len(mine) == len(row) or mine[-1] == config.eos_token_id


@torch.inference_mode()
def _agreement(
    model: ZCodePPForConditionalGeneration,
    tokenizer: PreTrainedTokenizerBase,
    weights: Weights,
    texts: list[str],
) -> float:
    """Measure the share of next tokens that stay the best with these weights (the encoder in fp32)."""
    same = places = 0
    settings = GenerationSettings(max_tokens=32)
    for part in _parts(texts, 8):
        inputs, config = _inputs(tokenizer, part), generation_config(settings, model, tokenizer)
        rows = FastDecoder(model, AsGiven())(inputs, config)
        source = model.get_encoder()(**inputs).last_hidden_state
        best = [
            _best_next(model, w, source, inputs["attention_mask"].bool(), rows) for w in (AsGiven(), weights)
        ]
        real = torch.tensor([[t < len(row) - 1 for t in range(best[0].shape[1])] for row in rows])
        same += int(((best[0] == best[1]) & real).sum())
        places += int(real.sum())
    return same / places


def _best_next(
    model: ZCodePPForConditionalGeneration,
    weights: Weights,
    source: Tensor,
    valid: Tensor,
    rows: list[list[int]],
) -> Tensor:
    """Return the best token after each token of the rows, (b t)."""
    longest = max(len(row) for row in rows) - 1
    padded = torch.tensor([row + [0] * (longest + 1 - len(row)) for row in rows])
    packed = PackedZCodePP(model, rows=len(rows), weights=weights)
    steps = Steps(packed, source, valid, beams=1, steps=longest)
    return torch.cat([steps(padded[:, t : t + 1], None).argmax(-1) for t in range(longest)], dim=1)


def _inputs(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> dict[str, Tensor]:
    encoded = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    return {name: encoded[name] for name in ("input_ids", "attention_mask")}


def _parts(texts: list[str], size: int) -> list[list[str]]:
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def _random() -> tuple[ZCodePPForConditionalGeneration, PreTrainedTokenizerBase]:
    texts = [text for pair in make_pairs(200, seed=5) for text in (pair.document, pair.summary)]
    tokenizer = train_tokenizer(texts, vocab_size=2000)
    torch.manual_seed(0)
    config = ZCodePPConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_attention_heads=4,
        intermediate_size=256,
        encoder_layers=2,
        decoder_layers=2,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.bos_token_id,
    )
    return ZCodePPForConditionalGeneration(config).eval(), tokenizer


def _trained(folder: str) -> tuple[ZCodePPForConditionalGeneration, PreTrainedTokenizerBase]:
    loaded = load_model(folder, device="cpu")
    assert isinstance(loaded.model, ZCodePPForConditionalGeneration), f"{folder}: no Z-Code++ model"
    return loaded.model, loaded.tokenizer


if __name__ == "__main__":
    main()
