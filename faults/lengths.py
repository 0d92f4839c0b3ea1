"""Are caps kept? 200 documents, caps of 1 to 400 words, a trained model and untrained ones.

    python -m faults.lengths [--quick] [--documents 200] [--seed 0]

A small Z-Code++ is trained in a minute on the synthetic corpus. The others are an untrained one, with weights large
enough to write at random, and a random BART. Each document gets a cap drawn from 1 to 400 words, one of 1 to 8
sentences and one of 1 to 200 tokens. A summary must be within its cap and no longer than its document. How much of a
cap is used is printed too.
"""

import argparse
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import BartConfig, BartForConditionalGeneration

from faults.report import Tally, header, verdict
from precis.cli import main as main_of_precis
from precis.cli.framework.library_logging import quieten_transformers
from precis.data.synthetic.corpus import make_pairs
from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.generation.summarizer import Summarizer, Summary
from precis.models import ZCodePPConfig, ZCodePPForConditionalGeneration
from precis.phases.data.pair_checks import write_synthetic
from precis_text.sentences import split_sentences
from precis_text.words import length_in_words

_CAPS = {"words": 400, "sentences": 8, "tokens": 200}


def trained(folder: Path) -> Summarizer:
    """Train the demo's model for 150 steps."""
    write_synthetic(folder / "pairs", {"train": 800, "dev": 8}, seed=0)
    words = f"finetune --data {folder / 'pairs'} --recipe zcodepp-demo --out {folder / 'run'} --steps 150"
    assert main_of_precis([*words.split(), "--set", "train.warmup_steps=30"]) == 0
    return Summarizer.from_pretrained(folder / "run")


def untrained(folder: Path) -> Iterator[tuple[str, Summarizer]]:
    """Yield models that write at random, with the trained one's tokenizer."""
    tokenizer = load_tokenizer(folder / "run" / "model")
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 32, "encoder_layers": 1, "decoder_layers": 1}
    ours = ZCodePPConfig(**sizes, num_attention_heads=2, intermediate_size=64, initializer_range=0.4)
    yield "untrained zcodepp", Summarizer(ZCodePPForConditionalGeneration(ours).eval(), tokenizer)
    shape = {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 1024, "init_std": 0.4}
    bart = BartConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=tokenizer.eos_token_id,
        **shape,
    )
    yield "untrained bart", Summarizer(BartForConditionalGeneration(bart).eval(), tokenizer)


def _size(summary: Summary, unit: str) -> int:
    if unit == "words":
        return length_in_words(summary.text)
    if unit == "sentences":
        return len(split_sentences(summary.text))
    return summary.summary_tokens


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="20 documents")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    quieten_transformers()
    header("Are caps on length kept?", seed=arguments.seed)
    documents = [
        pair.document
        for pair in make_pairs(20 if arguments.quick else arguments.documents, seed=arguments.seed + 100)
    ]
    rng, tally = random.Random(arguments.seed), Tally()
    with tempfile.TemporaryDirectory() as temporary:
        models = [("trained zcodepp", trained(Path(temporary))), *untrained(Path(temporary))]
    for name, summarizer in models:
        for unit, most in _CAPS.items():
            used, kept = [], 0
            for document in documents:
                cap = rng.randint(1, most)
                asked: dict[str, Any] = {unit: cap}
                summary = summarizer.summarize([document], **asked)[0]
                size, words = _size(summary, unit), length_in_words(summary.text)
                what = f"{name}, {unit}={cap}: {size} {unit}, {words} words"
                tally.hold(size <= cap and words <= length_in_words(document), what)
                kept += summary.kept
                if not summary.kept:
                    used.append(size / cap)
            share = f"{sum(used) / len(used):.2f} of the cap used on average" if used else "none written"
            print(f"{name}, {unit}: {len(used)} written, {kept} given back, {share}", flush=True)
    return verdict("summaries within their cap and their document", tally)


if __name__ == "__main__":
    raise SystemExit(main())
