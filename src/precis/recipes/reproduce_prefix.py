"""Discourse-aware prefixes at a small scale: blocking and sparsity (Tables 2, 4, 5, 9), low resources (Figures 4, 8).

    text -> packed -> pre-trained -> grounded on invented and real pairs: the base
    base -> the rate of fine-tuning and that of prefixes, chosen on E2E's dev pairs
         -> E2E, every system with every seed; SAMSum, every system                       (Tables 2, 4, 5, 9)
         -> E2E with 5, 10, 25 and 50% of the training pairs                              (Figures 4, 8)
         -> what a step of each system costs

Neither E2E nor SAMSum is read before. All systems train for as many steps, in batches of the same size, from the same
base; with a share of the pairs for that share of the steps, as the paper keeps its epochs, but not for less than a
least number.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from precis.config import Settings
from precis.data.tasks import task
from precis.evaluation.metrics import Rouge, bleu
from precis.evaluation.significance import bootstrap_corpus
from precis.generation.loading import load_model
from precis.generation.summarizer import Summarizer
from precis.recipes.evaluate import read_test_pairs
from precis.recipes.finetune import finetune, resolve_run
from precis.recipes.prefix_tables import FINE_TUNING, LOW_SYSTEMS, SYSTEMS, cell, rate_step, tables
from precis.recipes.reproduction import (
    ROUGE_TYPES,
    SCALES,
    Bench,
    Scale,
    drop_checkpoints,
    drop_model,
    phase1_run,
    some_dev_rows,
    work_and_show,
)
from precis.recipes.runs import native_precision
from precis.recipes.sources import find_part, find_sources
from precis.recipes.study import Interrupted, Result, Step, Study, Tell
from precis.recipes.tune import tune
from precis.recipes.tuning_cost import StepAsked, step_cost
from precis.recipes.tuning_runs import TunePlan
from precis.recipes.tuning_tasks import LOW_RESOURCE, examples_in_share, settings_for
from precis.training.settings import Lowest
from precis.tuning import MethodSettings, Prefix, Tuning, method

Work = Callable[[Path], Result]

NAME = "discourse-prefix"
FACTS, DIALOGUES = "e2e", "samsum"


@dataclass(frozen=True, kw_only=True)
class PrefixScale(Settings):
    """How large the comparisons are.

    Attributes:
        base: how the base is pre-trained; its settings of fine-tuning are not read.
        facts_steps, dialogues_steps: optimizer steps on all pairs of E2E and of SAMSum.
        facts_seeds, dialogues_seeds: of training.
        shares, sampling_seeds, least_steps: of the low-resource curves; a draw's seed is its training's seed too.
        fine_tuning_rates, prefix_rates: learning rates that are tried, for `rate_steps` each.
        settings: of the methods.
        beams: of the search for test texts; 1 is greedy.
        cost_rounds: processes a system in which a step is measured, in turn.
    """

    name: str
    base: Scale
    facts_steps: int
    dialogues_steps: int
    facts_seeds: tuple[int, ...] = (0, 1, 2)
    dialogues_seeds: tuple[int, ...] = (0,)
    shares: tuple[float, ...] = LOW_RESOURCE
    sampling_seeds: tuple[int, ...] = (0, 1)
    least_steps: int = 300
    fine_tuning_rates: tuple[float, ...] = (3e-4, 1e-3)
    prefix_rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2)
    rate_steps: int = 400
    settings: MethodSettings = field(
        default_factory=lambda: MethodSettings(encoder_segments=2, decoder_segments=2)
    )
    batch_tokens: int = 4096
    dev_rows: int = 64
    test_rows: int = 1000
    beams: int = 1
    cost_rounds: int = 3

    def plan(self, system: str, task_name: str) -> TunePlan | None:
        """What a system attaches for a task; None: nothing, the model is fine-tuned."""
        if system == FINE_TUNING:
            return None
        prefix = Prefix(length=settings_for(task_name).prefix_length)
        return TunePlan(method=system, prefix=prefix, settings=self.settings)

    def steps_on(self, task_name: str, share: float = 1.0) -> int:
        """Optimizer steps on a share of a task's pairs."""
        whole = self.facts_steps if task_name == FACTS else self.dialogues_steps
        return whole if share == 1.0 else max(min(self.least_steps, whole), round(share * whole))


PREFIX_SCALES: Mapping[str, PrefixScale] = {
    scale.name: scale
    for scale in (
        PrefixScale(
            name="smoke",
            base=SCALES["smoke"],
            facts_steps=2,
            dialogues_steps=2,
            facts_seeds=(0,),
            shares=(0.05,),
            sampling_seeds=(0,),
            least_steps=1,
            fine_tuning_rates=(1e-3,),
            prefix_rates=(1e-3, 1e-2),
            rate_steps=1,
            dev_rows=4,
            test_rows=4,
            cost_rounds=1,
        ),
        PrefixScale(
            name="micro",
            base=SCALES["micro"],
            facts_steps=400,
            dialogues_steps=300,
            least_steps=150,
            rate_steps=150,
            batch_tokens=2048,
            test_rows=500,
        ),
        PrefixScale(
            name="mini",
            base=SCALES["mini"],
            facts_steps=8000,
            dialogues_steps=8000,
            dialogues_seeds=(0, 1, 2),
            sampling_seeds=(0, 1, 2),
            fine_tuning_rates=(1e-4, 3e-4, 1e-3),
            rate_steps=1500,
            batch_tokens=12_288,
            dev_rows=200,
            beams=5,
        ),
    )
}


def discourse_prefix(scale: PrefixScale, *, data: Path, out: Path, tell: Tell) -> str:
    """Do what is left of the experiment in `out`; its tables.

    Raises:
        UserError: the data are not there, or `out` holds something else.
        Interrupted: it was asked to stop; the same call goes on.
    """
    study = Study(out, scale, name=NAME, data=data)
    steps = list(_steps(study, scale, data, tell))
    return work_and_show(study, steps, lambda results: tables(scale, results), tell)


def _steps(study: Study, scale: PrefixScale, data: Path, tell: Tell) -> Iterator[Step]:
    """The base, the rates, what it costs; then every seed of all systems, so that each table fills from the left."""
    yield from _base_steps(study, Bench(scale.base, data, tell))
    base = study.place("base") / "run"
    trials = _Trials(scale, data, tell, base=base, study=study)
    for family, rates in _families(scale).items():
        for rate in rates:
            yield Step(rate_step(family, rate), trials.trial(family, rate), drop_model, needs=("base",))
    chosen = tuple(rate_step(family, rate) for family, rates in _families(scale).items() for rate in rates)
    for task_name, seeds in ((FACTS, scale.facts_seeds), (DIALOGUES, scale.dialogues_seeds)):
        for seed in seeds:
            for system in SYSTEMS:
                work = trials.system(system, task_name, seed=seed)
                yield Step(cell(task_name, system, seed), work, drop_model, needs=chosen)
    for seed in scale.sampling_seeds:
        for share in scale.shares:
            for system in LOW_SYSTEMS:
                work = trials.system(system, FACTS, seed=seed, share=share)
                yield Step(cell(FACTS, system, seed, share), work, drop_model, needs=chosen)
    yield Step("cost", lambda _: trials.costs(), needs=("base",))


def _base_steps(study: Study, bench: Bench) -> Iterator[Step]:
    scale = bench.scale
    pack, first = study.place("pack") / "pack", study.place("phase1") / "run"
    run = phase1_run(scale, steps=scale.phase1_steps)
    yield Step("pack", bench.pack)
    yield Step("phase1", lambda place: bench.phase1(place, run, pack=pack), drop_checkpoints, needs=("pack",))
    yield Step("base", lambda place: bench.phase2(place, start=first), drop_checkpoints, needs=("phase1",))


def _families(scale: PrefixScale) -> dict[str, tuple[float, ...]]:
    """The systems whose rates are tried; every other method learns at the rate of the plain prefix."""
    return {FINE_TUNING: scale.fine_tuning_rates, "prefix": scale.prefix_rates}


@dataclass(frozen=True)
class _Trials:
    """Trainings of systems on tasks, from one base."""

    scale: PrefixScale
    data: Path
    tell: Tell
    base: Path
    study: Study

    def trial(self, family: str, rate: float) -> Work:
        """A short training on E2E; its best validation loss a token."""

        def work(place: Path) -> Result:
            steps = self.scale.rate_steps
            changes: dict[str, Any] = {"generated_rows": 0, "train.select": Lowest(metric="loss")}
            changes["train.validate_every"] = max(1, steps // 4)
            return self._train(place, family, FACTS, rate=rate, steps=steps, **changes)

        return work

    def system(self, system: str, task_name: str, *, seed: int, share: float = 1.0) -> Work:
        """A training and the scores of its test texts."""

        def work(place: Path) -> Result:
            found = self._train(
                place,
                system,
                task_name,
                rate=self._rate(system),
                steps=self.scale.steps_on(task_name, share),
                seed=seed,
                share=share,
                generated_rows=self.scale.dev_rows,
            )
            return {**found, **self._scores(place / "run", task_name)}

        return work

    def costs(self) -> Result:
        """A step of each system on E2E's lengths, the systems in turn; medians over the rounds."""
        lengths = {"source_tokens": 64, "target_tokens": 48}
        asked = {
            system: StepAsked(base=str(self.base), tuning=self._tuning(system), **lengths)
            for system in SYSTEMS
        }
        rounds: dict[str, list[dict[str, float]]] = {system: [] for system in SYSTEMS}
        for _ in range(self.scale.cost_rounds):
            for system, step in asked.items():
                rounds[system].append(step_cost(step, threads=torch.get_num_threads()))
        return {
            "threads": torch.get_num_threads(),
            "systems": {
                system: {key: statistics.median(one[key] for one in found) for key in found[0]}
                for system, found in rounds.items()
            },
        }

    def _tuning(self, system: str) -> Tuning | None:
        plan = self.scale.plan(system, FACTS)
        return None if plan is None else method(plan.method, plan.prefix, plan.settings)

    def _rate(self, system: str) -> float:
        """The family's rate with the lowest validation loss."""
        family = FINE_TUNING if system == FINE_TUNING else "prefix"
        tried = [self.study.result(rate_step(family, rate)) for rate in _families(self.scale)[family]]
        return float(
            min((found for found in tried if found is not None), key=lambda found: found["best"])["rate"]
        )

    def _train(
        self,
        place: Path,
        system: str,
        task_name: str,
        *,
        rate: float,
        steps: int,
        seed: int = 0,
        share: float = 1.0,
        **more: Any,
    ) -> Result:
        sources = find_sources(
            task_name=task_name,
            data=str(self.data),
            dev=str(some_dev_rows(self.data, task_name, self.scale.dev_rows, place)),
            skip_bad=True,
        )
        options: dict[str, Any] = {
            "sources": sources,
            "out": place / "run",
            "examples": None if share == 1.0 else examples_in_share(sources, share, seed=seed),
            "sampling_seed": None if share == 1.0 else seed,
            "tell": self.tell,
        }
        changes = {
            "train.steps": steps,
            "train.epochs": None,
            "train.warmup_steps": max(1, min(300, steps // 10)),
            "train.learning_rate": rate,
            "train.precision": native_precision(),
            "train.seed": seed,
            "batch_tokens": self.scale.batch_tokens,
            **more,
        }
        plan = self.scale.plan(system, task_name)
        if plan is None:
            run = resolve_run(self.scale.base.recipe, task_name=task_name, changes=changes)
            result = finetune(run, start=str(self.base), **options).result
        else:
            changes["train.weight_decay"] = 0.0
            run = resolve_run(self.scale.base.recipe, task_name=task_name, changes=changes)
            result = tune(plan, run, base=str(self.base), **options).result
        if result.interrupted:
            raise Interrupted
        return {
            "rate": rate,
            "steps": result.step,
            "pairs": options["examples"],
            "loss": result.metrics["loss"],
            "best": result.best_metric,
            "training_seconds": result.seconds,
        }

    def _scores(self, model: Path, task_name: str) -> Result:
        pairs = read_test_pairs(
            find_part(task_name=task_name, data=str(self.data)),
            limit=self.scale.test_rows,
            skip_bad=True,
            tell=self.tell,
        )
        loaded, known = load_model(model), task(task_name)
        summarizer = Summarizer(
            loaded.model,
            loaded.tokenizer,
            settings=replace(known.generation, beams=self.scale.beams),
            max_source=known.max_source,
            instruction=loaded.use.instruction_for(task_name),
        )
        written = summarizer.summarize([pair.document for pair in pairs], batch_size=32, long="truncate")
        texts, references = [s.text for s in written], [pair.all_references for pair in pairs]
        scores = Rouge(types=ROUGE_TYPES).score(texts, references)
        corpus = bleu(texts, references)
        return {
            "bleu": corpus.score,
            "bleu_interval": str(bootstrap_corpus(corpus.resampled, len(texts))),
            "examples": {name: [round(float(v), 3) for v in values] for name, values in scores.items()},
        }
