"""Discourse-aware prefixes at a small scale: layers (Tables 3, 10, Figure 3), blocking (Tables 2, 5, 9), sparse
attention (Table 4), low resources (Figures 4, 8).

    text -> packed -> pre-trained -> grounded on invented and real pairs: the base
    base -> scored untuned
         -> the rates of fine-tuning and of prefixes, SoftSA's temperature, chosen on E2E's dev pairs
         -> E2E, every system with every seed; SAMSum, DART and WebNLG, every system   (Tables 2, 5, 9)
         -> SAMSum: TruncSA, the hierarchical sparse methods, sparse fine-tuning       (Table 4)
         -> a prefix in only the top layers, in only the low ones, in a single layer   (Tables 3, 10, Figure 3)
         -> E2E and SAMSum with 5, 10, 25, 50 and 100% of a pool of training pairs     (Figures 4, 8)
         -> the cost of a step of each system, after everything else

The base, unless it is given, has read neither E2E nor SAMSum. All systems train for the same number of steps, in
batches of the same size, from the same base. They train without the instruction that the base was grounded with:
blocks would cut it like text. With few pairs all train for as many steps as with many, and the best checkpoint counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from precis.data.tasks.tasks import task
from precis.evaluation.rouge import Rouge
from precis.evaluation.sacrebleu_scores import bleu
from precis.evaluation.significance import Bootstrap
from precis.generation.model_loader import load_model
from precis.recipes.planning import resolve_run
from precis.training.callbacks import read_metrics
from precis.training.training_settings import Lowest
from precis.tuning import NoPrefix, Tuning, method
from precis_experiments.experiment import (
    ROUGE_TYPES,
    Experiment,
    Runner,
    drop_model,
    rounded,
    training_of,
    write_texts,
)
from precis_experiments.prefix_tables import (
    LOW_SYSTEMS,
    ON_LAYERS,
    SPARSE,
    SYSTEMS,
    UNTUNED,
    cell,
    claims,
    draw_all,
    rate_step,
    tables,
    temperature_step,
)
from precis_experiments.resumable_steps import Result, Step
from precis_experiments.scales import DIALOGUES, FACTS, FINE_TUNING, PREFIX_SCALES, WHOLE, PrefixScale
from precis_experiments.study_plan import Reads
from precis_experiments.tuning_cost import StepAsked, step_cost
from precis_experiments.zcodepp_steps import phase1, phase1_run, phase2


def _steps(scale: PrefixScale, runner: Runner) -> Iterator[Step]:
    """Yield the base, the rates, every seed of all systems, so that each table fills from the left; then the cost."""
    if not scale.start:
        yield runner.pack(scale.base.corpora, scale.base.vocab_size)
        yield phase1(runner, "phase1", phase1_run(scale.base, scale.base.phase1_steps))
        yield phase2(scale.base, runner, "base")
    base = () if scale.start else ("base",)
    trials = Trials(scale, runner)
    rates = []
    for family, tried in _families(scale).items():
        for rate in tried:
            work = partial(trials.choose, family, rate=rate)
            step = Step(rate_step(family, rate), work, drop_model, needs=base, updates=scale.rate_steps)
            rates.append(step)
    yield from rates
    for temperature in scale.temperatures:
        work = partial(trials.choose, "softsa", temperature=temperature)
        name, needs = temperature_step(temperature), tuple(step.name for step in rates)
        yield Step(name, work, drop_model, needs=needs, updates=scale.rate_steps)
    for task_name in (FACTS, DIALOGUES):
        yield Step(cell(task_name, UNTUNED, 0), partial(trials.untuned, task_name), needs=base)
    chosen = tuple(map(temperature_step, scale.temperatures))
    trainings = []
    for system, task_name, seed, pairs in _grid(scale, runner):
        work = partial(trials.system, system, task_name, seed=seed, pairs=pairs)
        name, updates = cell(task_name, system, seed, pairs), scale.steps_on(task_name, pairs)
        trainings.append(Step(name, work, drop_model, needs=chosen, updates=updates))
    yield from trainings
    everything = tuple(step.name for step in trainings)  # so that nothing else runs during the measurement
    yield Step("cost", trials.costs, needs=everything)


def _reads(scale: PrefixScale) -> Reads:
    needed = (FACTS, DIALOGUES)
    base = scale.base
    return Reads(
        texts=() if scale.start else base.corpora,
        grounding=() if scale.start else base.grounding_tasks,
        tasks=(*needed, *scale.other_facts),
        needed=needed,
    )


def _grid(scale: PrefixScale, runner: Runner) -> Iterator[tuple[str, str, int, int | None]]:
    """Yield system, task, seed and number of pairs of every training run."""
    sets = [(FACTS, scale.facts_seeds), (DIALOGUES, scale.dialogues_seeds)]
    others = ((name, scale.facts_seeds) for name in runner.tasks(scale.other_facts))
    for task_name, seeds in [*sets, *others]:
        yield from ((system, task_name, seed, None) for seed in seeds for system in SYSTEMS)
    for task_name, seeds in sets if scale.other_facts else ():
        yield from ((system, task_name, seed, None) for seed in seeds for system in ON_LAYERS)
    further = ((scale.sparse_tasks, (*SPARSE, *WHOLE)), (scale.single_layer_tasks, scale.single_layers))
    for tasks, systems in further:
        for task_name in tasks:
            seeds = scale.seeds_on(task_name)
            yield from ((system, task_name, seed, None) for seed in seeds for system in systems)
    for seed in scale.sampling_seeds:
        for task_name in scale.low_tasks:
            counts = scale.low_pairs(task_name)
            yield from ((system, task_name, seed, pairs) for pairs in counts for system in LOW_SYSTEMS)


def _families(scale: PrefixScale) -> dict[str, tuple[float, ...]]:
    """Return the tried rates by system; every other method uses the rate of the plain prefix."""
    return {FINE_TUNING: scale.fine_tuning_rates, "prefix": scale.prefix_rates}


@dataclass(frozen=True)
class Trials:
    """Training runs of systems on tasks, from one base."""

    scale: PrefixScale
    runner: Runner

    @property
    def base(self) -> Path:
        """The base: the given model, or the one that the study pre-trains."""
        return Path(self.scale.start) if self.scale.start else self.runner.model_of("base")

    def choose(
        self, system: str, place: Path, *, rate: float | None = None, temperature: float | None = None
    ) -> Result:
        """Train briefly on E2E with a candidate rate or temperature; record the best validation loss per token."""
        steps = self.scale.rate_steps
        changes = {
            "generated_rows": 0,
            "train.select": Lowest(metric="loss"),
            "train.validate_every": max(1, steps // 4),
        }
        found = self._train(
            place,
            system,
            FACTS,
            rate=self.rate(system) if rate is None else rate,
            steps=steps,
            temperature=1.0 if temperature is None else temperature,
            changes=changes,
        )
        return found if temperature is None else {**found, "temperature": temperature}

    def untuned(self, task_name: str, place: Path) -> Result:
        """Score the untuned base with the task's instruction."""
        place.mkdir(parents=True, exist_ok=True)
        return {"pairs": None, **self._scores(self.base, task_name, keep=place)}

    def system(
        self, system: str, task_name: str, place: Path, *, seed: int, pairs: int | None = None
    ) -> Result:
        """Train a system and score its test texts."""
        found = self._train(
            place,
            system,
            task_name,
            rate=self.rate(system),
            steps=self.scale.steps_on(task_name, pairs),
            seed=seed,
            pairs=pairs,
            temperature=self.temperature(),
            changes={"generated_rows": self.scale.dev_rows},
        )
        return {**found, **self._scores(place / "run", task_name, keep=place)}

    def costs(self, _place: Path) -> Result:
        """Measure a step of each system on E2E's lengths, one system after another; take medians over the rounds."""
        base, threads = str(self.base), torch.get_num_threads()
        asked = {
            system: StepAsked(base=base, tuning=self._tuning(system), source_tokens=64, target_tokens=48)
            for system in SYSTEMS
        }
        rounds: dict[str, list[dict[str, float]]] = {system: [] for system in SYSTEMS}
        for _ in range(self.scale.cost_rounds):
            for system, step in asked.items():
                rounds[system].append(step_cost(step, threads=threads))
        medians = {
            system: {key: statistics.median(one[key] for one in found) for key in found[0]}
            for system, found in rounds.items()
        }
        return {"threads": threads, "rounds": rounds, "systems": medians}

    def _tuning(self, system: str) -> Tuning | None:
        plan = self.scale.plan(system, FACTS, temperature=self.temperature())
        return None if plan is None else method(plan.method, plan.prefix, plan.attention)

    def rate(self, system: str) -> float:
        """Return the rate with the lowest validation loss in the system's family."""
        family = FINE_TUNING if system.startswith(FINE_TUNING) else "prefix"
        return self._best([rate_step(family, rate) for rate in _families(self.scale)[family]], "rate")

    def temperature(self) -> float:
        """Return SoftSA's temperature with the lowest validation loss."""
        return self._best([temperature_step(one) for one in self.scale.temperatures], "temperature")

    def _best(self, steps: list[str], name: str) -> float:
        tried = [found for step in steps if (found := self.runner.study.result(step)) is not None]
        return float(min(tried, key=lambda found: found["best"])[name])

    def _train(
        self,
        place: Path,
        system: str,
        task_name: str,
        *,
        rate: float,
        steps: int,
        changes: Mapping[str, Any],
        seed: int = 0,
        pairs: int | None = None,
        temperature: float = 1.0,
    ) -> Result:
        scale = self.scale
        plan = scale.plan(system, task_name, temperature=temperature)
        loop = training_of(steps=steps, rate=rate, tokens=scale.batch_tokens, seed=seed)
        decay = {} if plan is None or isinstance(plan.prefix, NoPrefix) else {"train.weight_decay": 0.0}
        result = self.runner.train(
            resolve_run(scale.base.recipe, task_name=task_name, changes={**loop, **changes, **decay}),
            task_name,
            place,
            dev_rows=scale.dev_rows,
            start=self.base,
            plan=plan,
            instruction="",
            examples=pairs,
            sampling_seed=None if pairs is None else seed,
        )
        return {
            "rate": rate,
            "steps": result.step,
            "pairs": pairs,
            "passes": _passes(place / "run"),
            "loss": result.metrics["loss"],
            "best": result.best_metric,
            "training_seconds": result.seconds,
        }

    def _scores(self, model: Path, task_name: str, *, keep: Path) -> Result:
        """Return the scores of a model's test texts, and keep the texts in the folder `keep`."""
        pairs = self.runner.spaced_test_pairs(task_name, self.scale.test_rows)
        settings = replace(task(task_name).generation, beams=self.scale.beams)
        texts = write_texts(
            load_model(model), task_name, pairs, settings=settings, keep=keep / "texts.jsonl", batch_size=32
        )
        references = [pair.all_references for pair in pairs]
        corpus = bleu(texts, references)
        resampled = Bootstrap().resampled(corpus.resampled, len(texts))
        return {
            "bleu": corpus.score,
            "bleu_resampled": [round(float(score), 3) for score in resampled],
            "examples": rounded(Rouge(types=ROUGE_TYPES).score(texts, references)),
        }


def _passes(run: Path) -> float:
    """Return the number of passes over the training pairs."""
    records = [record for record in read_metrics(run / "metrics.jsonl") if "epoch" in record]
    return float(records[-1]["epoch"])


discourse_prefix = Experiment(
    name="discourse-prefix",
    scales=PREFIX_SCALES,
    steps=_steps,
    reads=_reads,
    update_seconds=0.25,
    table=tables,
    claims=claims,
    draw=draw_all,
)
