"""Runs of every phase that are made to diverge: none may call a diverged model the best, or export it.

    python -m faults.not_finite [--quick] [--seed 0]

Each phase (finetune, few-shot, ground, tune, pretrain, search) is run at toy size with every kind of fault. The seed
draws the steps of a fault: exploding rates, a loss or a gradient that is NaN for a while or for good, a weight that
becomes NaN or infinite. A run may fail, with nothing exported, or export a model whose weights and score are finite.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from transformers.utils import logging as transformers_logging

from faults.report import Tally, header, verdict
from precis.data.packs.pack_writer import pack
from precis.data.synthetic.corpus import make_pairs
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.search.grid_search import FineTunedModel, search
from precis.phases.search.search_space import resolve_space
from precis.phases.train.finetuning import TOKENIZER_FOLDER, finetune
from precis.phases.train.grounding import ground
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.prefix_tuning import tune
from precis.phases.train.pretraining import PRETRAINING_FOLDER, pretrain, resolve_pretraining
from precis.phases.train.training_session import MODEL_FOLDER
from precis.recipes.adapter_recipes import TunePlan, resolve_tuning
from precis.recipes.overrides import with_changes
from precis.recipes.planning import few_shot, resolve_grounding, resolve_run
from precis.storage.model_files import ADAPTER_FOLDER
from precis.training.callbacks import StartInfo, StepInfo, TrainResult, ValidationInfo
from precis.training.updates import Totals, Updater
from precis.tuning import Prefix
from precis_text.errors import DivergedError, RunError

_SHAPE = {
    "model.hidden_size": 32,
    "model.num_attention_heads": 2,
    "model.intermediate_size": 48,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.vocab_size": 400,
}
_PAIRS = {"max_source": 48, "max_target": 8, "generated_rows": 2, "batch_size": 4}
_EXPORTS = (MODEL_FOLDER, ADAPTER_FOLDER, PRETRAINING_FOLDER)
_PHASES = ("finetune", "few-shot", "ground", "tune", "pretrain", "search")
_FAULTS = ("rate 1e9", "rate 1e3", "loss", "gradient", "weight", "skips", "late")


@dataclass
class Witness:
    """A callback that keeps what was called the best."""

    improved: list[ValidationInfo] = field(default_factory=list)

    def on_start(self, info: StartInfo) -> None:
        """Do nothing."""

    def on_step(self, info: StepInfo) -> None:
        """Do nothing."""

    def on_validation(self, info: ValidationInfo) -> None:
        """Keep it."""
        if info.improved:
            self.improved.append(info)

    def on_end(self, result: TrainResult | None) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Fault:
    """A fault and the steps at which it happens (`at`, counted from 0)."""

    kind: str
    steps: int
    at: frozenset[int]

    @classmethod
    def drawn(cls, kind: str, rng: np.random.Generator) -> Fault:
        """Draw a run's length and the steps of the fault."""
        steps = int(rng.integers(6, 16))
        first = int(rng.integers(0, steps))
        last = (
            first + int(rng.integers(1, 5)) if kind in ("loss", "gradient") and rng.random() < 0.5 else steps
        )
        places = {"skips": range(steps), "late": range(steps - 1, steps)}.get(kind, range(first, last))
        return cls(kind, steps, frozenset(places))

    @property
    def rate(self) -> dict[str, Any]:
        """The learning rate, where that is the fault."""
        return {"train.learning_rate": float(self.kind.split()[1])} if self.kind.startswith("rate") else {}

    @contextmanager
    def injected(self, rng: np.random.Generator) -> Iterator[None]:
        """Patch the trainer so that the fault happens."""
        divide, step = Updater._divide_and_clip, Updater._step_if_finite
        value = math.nan if rng.random() < 0.5 else math.inf
        now = [0]

        def bad_totals(updater: Updater, *arguments: Any, **options: Any) -> Totals:
            totals = divide(updater, *arguments, **options)
            if now[0] not in self.at:
                return totals
            if self.kind == "loss":
                return replace(totals, loss=value)
            return replace(totals, gradient_norm=value) if self.kind in ("gradient", "skips") else totals

        def bad_step(updater: Updater, number: int, totals: Totals) -> None:
            step(updater, number, totals)
            if self.kind in ("weight", "late") and number in self.at:
                with torch.no_grad():
                    hurt = updater._trainable[int(rng.integers(len(updater._trainable)))].view(-1)
                    hurt[int(rng.integers(len(hurt)))] = value

        update = Updater.update

        def counted(updater: Updater, batches: Any, number: int, **options: Any) -> Totals:
            now[0] = number
            return update(updater, batches, number, **options)

        Updater._divide_and_clip, Updater._step_if_finite = bad_totals, bad_step  # type: ignore[assignment, method-assign]
        Updater.update = counted  # type: ignore[assignment, method-assign]
        try:
            yield
        finally:
            Updater._divide_and_clip, Updater._step_if_finite = divide, step  # type: ignore[method-assign]
            Updater.update = update  # type: ignore[method-assign]


def stock(folder: Path, *, seed: int) -> None:
    """Write pairs, a model and a pack, all of a toy's size."""
    (folder / "pairs").mkdir(parents=True)
    for split, count, drawn in (("train", 16, seed), ("dev", 4, seed + 1)):
        rows = [
            {"document": pair.document[:160], "summary": pair.summary[:40]}
            for pair in make_pairs(count, seed=drawn)
        ]
        (folder / "pairs" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = resolve_run("zcodepp-micro", changes={**_SHAPE, **_PAIRS, **_train(2)})
    finetune(
        run,
        PairRequest(
            sources=NamedPairs(data=str(folder / "pairs")).sources(), out=folder / "base", callbacks=[]
        ),
    )
    texts = [pair.document for pair in make_pairs(40, seed=seed + 2)]
    pack(texts, folder / "base" / TOKENIZER_FOLDER, folder / "pack", dev_share=0.2)


def _train(steps: int) -> dict[str, Any]:
    return {
        "train.steps": steps,
        "train.warmup_steps": 1,
        "train.validate_every": 2,
        "train.precision": "fp32",
    }


def phase(name: str, place: Path, fault: Fault, witness: Witness) -> Callable[[Path], Any]:
    """Return a phase as a function of its run folder."""
    model, sources = str(place / "base"), NamedPairs(data=str(place / "pairs")).sources()
    changes = {**_PAIRS, **_train(fault.steps), **fault.rate}
    run = resolve_run("zcodepp-micro", changes=changes)
    watch: dict[str, Any] = {"callbacks": [witness]}
    match name:
        case "finetune":
            return lambda out: finetune(run, PairRequest(sources=sources, out=out, start=model, **watch))
        case "few-shot":
            few = with_changes(few_shot(run, 8), {**_train(fault.steps), **fault.rate})
            return lambda out: finetune(
                few, PairRequest(sources=sources, out=out, start=model, examples=8, **watch)
            )
        case "ground":
            grounded = resolve_grounding("zcodepp-micro", start=model, changes=changes)
            tasks = [str(place / "pairs")]
            return lambda out: ground(grounded, tasks=tasks, start=model, out=out, **watch)
        case "tune":
            plan = TunePlan(method="prefix", prefix=Prefix(length=2), target_length=8)
            tuned = resolve_tuning(None, changes=changes)
            return lambda out: tune(plan, tuned, PairRequest(start=model, sources=sources, out=out, **watch))
        case "pretrain":
            blocks = {"batch_size": 4, "block_length": 64, "validation_blocks": 4}
            small = {**_SHAPE, **blocks, "objective.generator_layers": 1, **_train(fault.steps), **fault.rate}
            first = resolve_pretraining("zcodepp-micro", changes=small)
            return lambda out: pretrain(first, corpora={str(place / "pack"): 1.0}, out=out, **watch)
        case _:
            ranges = ["warmup_steps=none", "batch_size=none", "epochs=none", "learning_rate=none"]
            alone = [*ranges, "beams=1", "length_penalty=none", "no_repeat_ngram=none"]
            space = resolve_space(run, ranges=alone)
            return lambda out: search(
                FineTunedModel(run=run),
                PairRequest(sources=sources, out=out, start=model),
                space=space,
                callbacks=lambda: [witness],
            )


def tried(name: str, fault: Fault, place: Path, out: Path, rng: np.random.Generator) -> tuple[str, str]:
    """Run a phase with a fault; return how it ended and what is wrong with that, "" if nothing."""
    witness = Witness()
    run = phase(name, place, fault, witness)
    try:
        with fault.injected(rng):
            run(out)
        ended = "exported"
    except (DivergedError, RunError) as error:
        ended = f"failed ({str(error)[:60]}...)"
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    for info in witness.improved:
        if info.best_value is None or not all(map(math.isfinite, (info.metrics["loss"], info.best_value))):
            return ended, f"best at step {info.step} with {dict(info.metrics)}"
    folders = [out / folder for folder in _EXPORTS if (out / folder).exists()]
    if ended != "exported":
        return ended, f"{folders[0].name} was exported all the same" if folders else ""
    files = [file for folder in folders for file in folder.glob("*.safetensors")]
    if not files:
        return ended, "nothing was exported, and no error said so"
    for file in files:
        for weight, tensor in load_file(file).items():
            if not torch.isfinite(tensor).all():
                return ended, f"{file.name}: {weight} is not finite"
    return ended, ""


def main() -> int:
    """Try every phase with every fault; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one phase with every fault")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("precis").setLevel(logging.ERROR)
    transformers_logging.disable_progress_bar()
    header("trainings that diverge, in every phase", seed=options.seed)
    rng, tally = np.random.default_rng(options.seed), Tally()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        stock(place, seed=options.seed)
        for name in _PHASES[:1] if options.quick else _PHASES:
            for kind in _FAULTS:
                fault = Fault.drawn(kind, rng)
                ended, wrong = tried(name, fault, place, place / f"{name}-{kind}", rng)
                at = "" if fault.rate else f" at {min(fault.at)} to {max(fault.at)}"
                print(f"{name}, {kind}{at} of {fault.steps} steps: {ended}", flush=True)
                tally.hold(not wrong, f"{name}, {kind}: {wrong}")
    return verdict("diverged trainings with a model that is not finite as the best or exported", tally)


if __name__ == "__main__":
    sys.exit(main())
