"""Time that drafting saves: the fast loop's greedy search, one token a step, against drafts by the model's own streams.

    python -m benchmarks.speculative --train 3000 --documents 1000 --out runs/speculative
    python -m benchmarks.speculative --task e2e --data DIR --train 600 --batch-tokens 2048 --out runs/speculative-e2e

Trains a ProphetNet for each n (--ngrams), or a Z-Code++ with as many streams ahead, unless --out has their run folders.
The pairs are the project's synthetic ones or a task's. Then both methods write every test document, one at a time and
in turn. Any token that differs is counted. Prints a table and writes it as JSON, a row at a time. Pairs in --out that
were made with other settings are refused.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.compare.machine import describe
from precis.cli.framework.library_logging import quieten_transformers
from precis.data.tasks.tasks import Part
from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.packed_linear import AsGiven
from precis.generation.generation_settings import generation_config
from precis.generation.model_loader import load_model
from precis.phases.data.pair_checks import write_synthetic
from precis.phases.data.run_pairs import NamedPairs, PairSources
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.recipes.planning import resolve_run
from precis.storage.atomic import write_file
from precis_text.decoding_settings import GenerationSettings


@dataclass
class Tally:
    """Counts over all documents; seconds are one value a document."""

    plain: list[float] = field(default_factory=list)
    drafted: list[float] = field(default_factory=list)
    differing: int = 0
    passes: int = 0
    written: int = 0
    kept: int = 0
    guessed: int = 0


def main() -> None:
    options = _options()
    quieten_transformers()
    torch.set_num_threads(options.threads)
    out: Path = options.out
    sources = _sources(options)
    record: dict[str, Any] = {
        "machine": describe(),
        "threads": options.threads,
        "pairs": str(sources.train) if options.task else options.pairs,
        "training_steps": options.train,
        "rows": [],
    }
    for system in options.systems:
        for ngram in options.ngrams:
            model = _trained(system, ngram, sources, out / f"{system}-{ngram}", options)
            row = {
                "system": system,
                "n": ngram,
                **_measure(model, replace(sources.train, split="test"), options),
            }
            record["rows"].append(row)
            print(_line(row), flush=True)
            write_file(out / "speculative.json", json.dumps(record, indent=2) + "\n")


def _sources(options: argparse.Namespace) -> PairSources:
    if options.task:
        return NamedPairs(task=options.task, data=options.data, skip_bad=True).sources()
    pairs = _pairs(options.out, {"train": options.pairs, "dev": 100, "test": options.documents}, seed=1)
    return NamedPairs(data=str(pairs)).sources()


def _pairs(out: Path, counts: dict[str, int], *, seed: int) -> Path:
    """Return the folder of synthetic pairs; write them first if they are not there.

    The settings are recorded in `pairs.json` at the end. Pairs without that file are incomplete, and are written
    again.
    """
    folder, beside = out / "pairs", out / "pairs.json"
    wanted = {**counts, "seed": seed}
    if beside.exists():
        found = json.loads(beside.read_text())
        if found != wanted:
            raise SystemExit(f"{folder}: made with {found}, not {wanted}; name another folder with --out")
        return folder
    write_synthetic(folder, counts, seed=seed)
    write_file(beside, json.dumps(wanted) + "\n")
    return folder


def _trained(
    system: str, ngram: int, sources: PairSources, folder: Path, options: argparse.Namespace
) -> Path:
    """Train a model that predicts `ngram` tokens at a place, the next one included; return its run folder."""
    name = f"{system}-{options.size}"
    streams = {"model.ngram": ngram} if system == "prophetnet" else {"model.future_tokens": ngram - 1}
    changes = {
        **streams,
        "model.attenuation": 1.0 if ngram < 3 else 0.5,  # the paper's, section 3.6
        "train.steps": options.train,
        "train.epochs": None,
        "train.validate_every": options.train,
        "train.seed": options.seed,
        "batch_tokens": options.batch_tokens,
        "generated_rows": 20,
    }
    run = resolve_run(name, task_name=options.task, changes=changes)
    done = finetune(run, PairRequest(sources=sources, out=folder, notify=print))
    assert done.model is not None
    return folder


def _measure(folder: Path, test: Part, options: argparse.Namespace) -> dict[str, Any]:
    loaded = load_model(folder)
    settings = GenerationSettings(max_tokens=options.tokens)
    config = generation_config(settings, loaded.model, loaded.tokenizer)
    tally, one, several = Tally(), FastDecoder(loaded.model, AsGiven()), FastDecoder(loaded.model, AsGiven())
    for number, pair in enumerate(test.read(skip_bad=True)):
        if number == options.documents:
            break
        ids = loaded.tokenizer(pair.document, return_tensors="pt", truncation=True, max_length=500)[
            "input_ids"
        ]
        plain, fast = None, None
        for way in (0, 1) if number % 2 else (1, 0):  # who goes first takes turns
            began = time.perf_counter()
            if way:
                fast = several.draft(ids, config)
            else:
                inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
                plain = one(inputs, config)[0]
            (tally.drafted if way else tally.plain).append(time.perf_counter() - began)
        assert plain is not None
        assert fast is not None
        tally.differing += sum(a != b for a, b in zip(fast.tokens, plain, strict=False))
        tally.differing += abs(len(fast.tokens) - len(plain))
        tally.passes += fast.passes
        tally.written += fast.written
        tally.kept += fast.kept
        tally.guessed += fast.drafted
    return _summary(tally, options.seed)


def _summary(tally: Tally, seed: int) -> dict[str, Any]:
    plain, drafted = np.array(tally.plain), np.array(tally.drafted)
    rng = np.random.default_rng(seed)
    draws = rng.integers(len(plain), size=(1000, len(plain)))
    ratios = plain[draws].sum(1) / drafted[draws].sum(1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return {
        "documents": len(plain),
        "differing_tokens": tally.differing,
        "acceptance": tally.kept / max(1, tally.guessed),
        "tokens_a_pass": tally.written / tally.passes,
        "speed_up": float(plain.sum() / drafted.sum()),
        "interval": [float(low), float(high)],
        "plain_ms": 1000 * median(plain),
        "drafted_ms": 1000 * median(drafted),
    }


def _line(row: dict[str, Any]) -> str:
    low, high = row["interval"]
    return (
        f"| {row['system']} | {row['n']} | {row['documents']:,} | {row['differing_tokens']} | "
        f"{row['acceptance']:.2f} | {row['tokens_a_pass']:.2f} | {row['speed_up']:.2f} [{low:.2f}, {high:.2f}] | "
        f"{row['plain_ms']:.0f} -> {row['drafted_ms']:.0f} |"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("runs/speculative"))
    parser.add_argument("--systems", nargs="+", default=["prophetnet"], choices=["prophetnet", "zcodepp"])
    parser.add_argument("--ngrams", nargs="+", type=int, default=[2, 3, 4])
    parser.add_argument("--size", default="micro", choices=["micro", "mini"])
    parser.add_argument("--pairs", type=int, default=8000, help="synthetic training pairs")
    parser.add_argument("--train", type=int, default=3000, help="training steps of each model")
    parser.add_argument("--task", help="train and write on this task in place of synthetic pairs")
    parser.add_argument("--data", help="where the task's files are")
    parser.add_argument("--batch-tokens", type=int, default=3000)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
