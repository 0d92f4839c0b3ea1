"""Discourse-aware prefixes at a small scale: blocking and SoftSA (of Tables 2, 4, 5, 9), low resources (Figures 4, 8).

    text -> packed -> pre-trained -> grounded on invented and real pairs: the base
    base -> scored as it is
         -> the rates of fine-tuning and of prefixes, SoftSA's temperature, chosen on E2E's dev pairs
         -> E2E, every system with every seed; SAMSum, every system                    (of Tables 2, 4, 5, 9)
         -> E2E with 5, 10, 25, 50 and 100% of a pool of training pairs                   (Figures 4, 8)
         -> what a step of each system costs, when nothing else is left

Neither E2E nor SAMSum is read before. All systems train for as many steps, in batches of the same size, from the same
base, without an instruction, which the base was grounded with: blocks would cut it as if it were text. TruncSA, the
hierarchical sparse methods and sparse fine-tuning (the rest of Table 4) are for `precis tune` alone. On few pairs
all train for as many steps as on many, and the best checkpoint counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from precis.data.tasks.tasks import task
from precis.evaluation.bleu import bleu
from precis.evaluation.rouge import Rouge
from precis.evaluation.significance import resampled_corpus
from precis.generation.loading import load_model
from precis.generation.summarizer import Summarizer
from precis.phases.finetune import finetune
from precis.phases.sources import find_sources
from precis.phases.tune import tune
from precis.recipes.plans import resolve_run
from precis.recipes.runs import native_precision
from precis.studies.prefix_scales import DIALOGUES, FACTS, FINE_TUNING, PrefixScale
from precis.studies.prefix_tables import (
    LOW_SYSTEMS,
    SYSTEMS,
    UNTUNED,
    cell,
    draw_low_resource,
    rate_step,
    tables,
    temperature_step,
)
from precis.studies.reproduction import Experiment, phase1_run
from precis.studies.study import Interrupted, Result, Step, Study
from precis.studies.study_parts import (
    ROUGE_TYPES,
    drop_checkpoints,
    drop_model,
    keep_texts,
    some_dev_rows,
    some_test_pairs,
    work_and_show,
)
from precis.studies.tuning_cost import StepAsked, step_cost
from precis.telling import Tell
from precis.training.callbacks import read_metrics
from precis.training.settings import Lowest
from precis.tuning import Tuning, method

Work = Callable[[Path], Result]

NAME = "discourse-prefix"


def discourse_prefix(scale: PrefixScale, *, data: Path, out: Path, tell: Tell) -> str:
    """Do what is left of the experiment in `out`; its tables.

    Raises:
        UserError: the data are not there, or `out` holds something else.
        Interrupted: it was asked to stop; the same call goes on.
    """
    study = Study(out, scale, name=NAME, data=data)
    steps = list(_steps(study, scale, data, tell))

    def shown(results: Mapping[str, Result]) -> str:
        draw_low_resource(scale, results, study.folder / "low-resource.png")
        return tables(scale, results)

    return work_and_show(study, steps, shown, tell)


def _steps(study: Study, scale: PrefixScale, data: Path, tell: Tell) -> Iterator[Step]:
    """The base, the rates, what it costs; then every seed of all systems, so that each table fills from the left."""
    yield from _base_steps(study, Experiment(scale.base, data, tell))
    base = study.place("base") / "run"
    trials = _Trials(scale, data, tell, base=base, study=study)
    tried = [(family, rate) for family, rates in _families(scale).items() for rate in rates]
    for family, rate in tried:
        yield Step(rate_step(family, rate), trials.trial(family, rate), drop_model, needs=("base",))
    rates = tuple(rate_step(family, rate) for family, rate in tried)
    for temperature in scale.temperatures:
        work = trials.temperature_trial(temperature)
        yield Step(temperature_step(temperature), work, drop_model, needs=rates)
    for task_name in (FACTS, DIALOGUES):
        yield Step(cell(task_name, UNTUNED, 0), trials.untuned(task_name), needs=("base",))
    chosen = tuple(map(temperature_step, scale.temperatures))
    trainings = list(_trainings(scale, trials, needs=chosen))
    yield from trainings
    everything = tuple(step.name for step in trainings)  # so that nothing runs beside what is measured
    yield Step("cost", lambda _: trials.costs(), needs=everything)


def _trainings(scale: PrefixScale, trials: _Trials, *, needs: tuple[str, ...]) -> Iterator[Step]:
    for task_name, seeds in ((FACTS, scale.facts_seeds), (DIALOGUES, scale.dialogues_seeds)):
        for seed in seeds:
            for system in SYSTEMS:
                work = trials.system(system, task_name, seed=seed)
                yield Step(cell(task_name, system, seed), work, drop_model, needs=needs)
    for seed in scale.sampling_seeds:
        for pairs in scale.low_pairs:
            for system in LOW_SYSTEMS:
                work = trials.system(system, FACTS, seed=seed, pairs=pairs)
                yield Step(cell(FACTS, system, seed, pairs), work, drop_model, needs=needs)


def _base_steps(study: Study, experiment: Experiment) -> Iterator[Step]:
    scale = experiment.scale
    pack, first = study.place("pack") / "pack", study.place("phase1") / "run"
    run = phase1_run(scale, steps=scale.phase1_steps)
    yield Step("pack", experiment.pack)
    yield Step(
        "phase1", lambda place: experiment.phase1(place, run, pack=pack), drop_checkpoints, needs=("pack",)
    )
    yield Step(
        "base", lambda place: experiment.phase2(place, start=first), drop_checkpoints, needs=("phase1",)
    )


def _families(scale: PrefixScale) -> dict[str, tuple[float, ...]]:
    """The systems whose rates are tried; every other method learns at the rate of the plain prefix."""
    return {FINE_TUNING: scale.fine_tuning_rates, "prefix": scale.prefix_rates}


_BY_LOSS: Mapping[str, Any] = {"generated_rows": 0, "train.select": Lowest(metric="loss")}


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
            changes = {**_BY_LOSS, "train.validate_every": max(1, steps // 4)}
            return self._train(place, family, FACTS, rate=rate, steps=steps, **changes)

        return work

    def temperature_trial(self, temperature: float) -> Work:
        """The same for SoftSA, at the rate of prefixes."""

        def work(place: Path) -> Result:
            rate, steps = self._rate("softsa"), self.scale.rate_steps
            changes = {**_BY_LOSS, "train.validate_every": max(1, steps // 4)}
            found = self._train(
                place, "softsa", FACTS, rate=rate, steps=steps, temperature=temperature, **changes
            )
            return {**found, "temperature": temperature}

        return work

    def untuned(self, task_name: str) -> Work:
        """The scores of the base as it is, asked with the task's instruction."""

        def work(place: Path) -> Result:
            place.mkdir(parents=True, exist_ok=True)
            return {"pairs": None, **self._scores(self.base, task_name, keep=place)}

        return work

    def system(self, system: str, task_name: str, *, seed: int, pairs: int | None = None) -> Work:
        """A training and the scores of its test texts."""

        def work(place: Path) -> Result:
            found = self._train(
                place,
                system,
                task_name,
                rate=self._rate(system),
                steps=self.scale.steps_on(task_name, pairs),
                seed=seed,
                pairs=pairs,
                temperature=self._temperature(),
                generated_rows=self.scale.dev_rows,
            )
            return {**found, **self._scores(place / "run", task_name, keep=place)}

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
            "rounds": rounds,
            "systems": {
                system: {key: statistics.median(one[key] for one in found) for key in found[0]}
                for system, found in rounds.items()
            },
        }

    def _tuning(self, system: str) -> Tuning | None:
        plan = self.scale.plan(system, FACTS, temperature=self._temperature())
        return None if plan is None else method(plan.method, plan.prefix, plan.attention)

    def _rate(self, system: str) -> float:
        """The family's rate with the lowest validation loss."""
        family = FINE_TUNING if system == FINE_TUNING else "prefix"
        tried = [self.study.result(rate_step(family, rate)) for rate in _families(self.scale)[family]]
        return float(
            min((found for found in tried if found is not None), key=lambda found: found["best"])["rate"]
        )

    def _temperature(self) -> float:
        """SoftSA's with the lowest validation loss."""
        tried = [self.study.result(temperature_step(one)) for one in self.scale.temperatures]
        best = min((found for found in tried if found is not None), key=lambda found: found["best"])
        return float(best["temperature"])

    def _train(
        self,
        place: Path,
        system: str,
        task_name: str,
        *,
        rate: float,
        steps: int,
        seed: int = 0,
        pairs: int | None = None,
        temperature: float = 1.0,
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
            "instruction": "",
            "examples": pairs,
            "sampling_seed": None if pairs is None else seed,
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
        plan = self.scale.plan(system, task_name, temperature=temperature)
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
            "pairs": pairs,
            "passes": _passes(place / "run"),
            "loss": result.metrics["loss"],
            "best": result.best_metric,
            "training_seconds": result.seconds,
        }

    def _scores(self, model: Path, task_name: str, *, keep: Path) -> Result:
        """Of a model's test texts, which are kept in the folder `keep`."""
        pairs = some_test_pairs(self.data, task_name, self.scale.test_rows, self.tell)
        loaded, known = load_model(model), task(task_name)
        summarizer = Summarizer(
            loaded.model,
            loaded.tokenizer,
            settings=replace(known.generation, beams=self.scale.beams),
            max_source=known.max_source,
            instruction=loaded.use.instruction_for(task_name),
        )
        written = summarizer.summarize(
            [pair.document for pair in pairs], batch_size=32, long="truncate", short="write"
        )
        texts, references = [s.text for s in written], [pair.all_references for pair in pairs]
        keep_texts(keep / "texts.jsonl", pairs, texts)
        scores = Rouge(types=ROUGE_TYPES).score(texts, references)
        corpus = bleu(texts, references)
        return {
            "bleu": corpus.score,
            "bleu_resampled": [
                round(float(score), 3) for score in resampled_corpus(corpus.resampled, len(texts))
            ],
            "examples": {name: [round(float(v), 3) for v in values] for name, values in scores.items()},
        }


def _passes(run: Path) -> float:
    """Over the training pairs."""
    records = [record for record in read_metrics(run / "metrics.jsonl") if "epoch" in record]
    return float(records[-1]["epoch"])
