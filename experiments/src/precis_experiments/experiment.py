"""The parts of every study: a grid of steps, the work of the steps, and Markdown tables of their results.

An `Experiment` is the data of a study: name, scales, steps and table. A `Runner` does the work of a step: it packs
text, pre-trains, trains on pairs, and finds test pairs. Tables show ROUGE with intervals, and the gain of one row over
another.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from precis.data.pairs.pair import Pair
from precis.data.tasks.tasks import Part, folder_of, task
from precis.evaluation.significance import OVER_RUNS, Interval
from precis.generation.model_loader import LoadedModel
from precis.generation.summarizer import Summarizer
from precis.messages import Notify, silent
from precis.phases.data.corpus_packing import make_pack
from precis.phases.data.run_pairs import NamedPairs, PairSources, splits_of
from precis.phases.measure.evaluation_inputs import read_test_pairs
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.prefix_tuning import tune
from precis.phases.train.pretraining import pretrain
from precis.phases.train.validation_scores import evenly_spaced
from precis.recipes.adapter_recipes import TunePlan
from precis.recipes.overrides import with_changes
from precis.recipes.planning import Answer
from precis.recipes.pretraining_runs import PreTrainRun, pretraining_run
from precis.recipes.run_plan import RunPlan, native_precision
from precis.storage.atomic import write_file
from precis.training.callbacks import TrainResult, read_metrics
from precis_experiments.claim_verdicts import NOTE, Claim, verdict_rows
from precis_experiments.latex_tables import latex
from precis_experiments.resumable_steps import (
    Interrupted,
    Result,
    Step,
    Study,
    chosen_steps,
    in_a_study,
    missing_steps,
)
from precis_experiments.study_plan import Reads, StudyPlan
from precis_text.config import Settings
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import RunError, UserError

TABLE_FILE, LATEX_FILE = "table.md", "table.tex"
ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
#: Further test sets for a model trained on a task.
FURTHER_TESTS: Mapping[str, tuple[str, ...]] = {"mnli": ("mnli-mm",)}

S = TypeVar("S", bound=Settings)
Results = Mapping[str, Result]
Key = TypeVar("Key")  # a seed, or a draw of examples
Runs = Mapping[Key, Result]


@final
@dataclass(frozen=True)
class Runner:
    """The work of a study's steps.

    Attributes:
        study: the folder with one folder per step.
        data: the folder with the data sets.
        tell: receives progress messages.
        dev_as_test: whether a set without test rows is scored on its dev rows; others leave it out.
    """

    study: Study
    data: Path
    notify: Notify
    dev_as_test: bool = False

    def model_of(self, step: str) -> Path:
        """Return the run folder of a step."""
        return self.study.place(step) / "run"

    @property
    def packed(self) -> Path:
        """The packed text."""
        return self.study.place("pack") / "pack"

    @property
    def tokenizer(self) -> Path:
        """The tokenizer trained on the packed text."""
        return self.packed / "tokenizer"

    def tasks(self, names: Sequence[str]) -> list[str]:
        """Return the tasks that have a folder with test rows in the data; report the others."""
        there = [name for name in names if folder_of(task(name), self.data) is not None]
        found = [name for name in there if self._has_test_rows(name)]
        for missing, what in (
            ([name for name in names if name not in there], ""),
            ([name for name in there if name not in found], "test rows of "),
        ):
            if missing:
                self.notify(f"{self.data} lacks {what}{', '.join(missing)}: continuing without it")
        return found

    def test_sets(self, task_name: str) -> list[str]:
        """Return the task and its further test sets that the data contain; report the others."""
        further = FURTHER_TESTS.get(task_name, ())
        found = [name for name in further if self._has_test_rows(name)]
        if missing := [name for name in further if name not in found]:
            self.notify(f"{self.data} lacks test rows of {', '.join(missing)}: skipped")
        return [task_name, *found]

    def _has_test_rows(self, task_name: str) -> bool:
        try:
            part = self._test_part(task_name)
            return next(part.read(skip_bad=True, limit=1), None) is not None
        except UserError:
            return False

    def _test_part(self, task_name: str) -> Part:
        """Return the test rows, or the dev rows if the data set lacks test rows and the study allows them."""
        part = NamedPairs(task=task_name, data=str(self.data)).part()
        splits = splits_of(part.source) if self.dev_as_test else None
        return replace(part, split="dev") if splits and "test" not in splits and "dev" in splits else part

    def pack(self, corpora: Sequence[str], vocab_size: int) -> Step:
        """Pack the corpora that are in the data folder, with a tokenizer trained on them.

        The step raises `UserError` if all of them are missing.
        """

        def work(place: Path) -> Result:
            found = [self.data / name for name in corpora if (self.data / name).is_dir()]
            missing = [name for name in corpora if not (self.data / name).is_dir()]
            if missing:
                self.notify(
                    f"{self.data} lacks {', '.join(missing)}: continuing without, as the result records"
                )
            if not found:
                raise UserError(f"{self.data} contains none of the corpora {', '.join(corpora)}; add one")
            workers = os.cpu_count() or 1
            made = make_pack(
                found,
                place / "pack",
                vocab_size=vocab_size,
                workers=workers,
                restart=True,
                notify=self.notify,
            )
            return {
                "corpora": [folder.name for folder in found],
                "tokens": made.counts.tokens,
                "documents": made.counts.documents,
                "tokens_per_second": made.tokens_per_second,
            }

        return Step("pack", work)

    def pretraining(
        self, name: str, run: PreTrainRun, measure: Callable[[Path], Result] = lambda _: {}
    ) -> Step:
        """Pre-train on the packed text; the result has the last validation and the output of `measure`."""

        def work(place: Path) -> Result:
            done = pretrain(run, corpora={str(self.packed): 1.0}, out=place / "run", notify=self.notify)
            if done.model is None:
                raise Interrupted
            records = read_metrics(place / "run" / "metrics.jsonl")
            last = [record for record in records if record["kind"] == "validation"][-1]
            return {"tokens": done.result.tokens, "validation": last, **measure(place / "run")}

        return Step(name, work, drop_checkpoints, needs=("pack",), updates=run.train.steps or 0)

    def train(
        self,
        run: RunPlan,
        task_name: str,
        place: Path,
        *,
        dev_rows: int,
        start: Path | str | None = None,
        plan: TunePlan | None = None,
        tokenizer: str | None = None,
        instruction: str | None = None,
        examples: int | None = None,
        sampling_seed: int | None = None,
        answer: Answer = "text",
    ) -> TrainResult:
        """Fine-tune on a task's pairs in PLACE/run, or train what `plan` attaches to `start`.

        Args:
            dev_rows: number of dev pairs for validation, if the data have a dev split.
            tokenizer, instruction, examples, sampling_seed, answer: see
                `precis.phases.train.pair_training.PairRequest`.

        Raises:
            Interrupted: training received a signal to stop.
        """
        request = PairRequest(
            out=place / "run",
            sources=self.sources(task_name, dev_rows, place),
            start=None if start is None else str(start),
            tokenizer=tokenizer,
            instruction=instruction,
            examples=examples,
            sampling_seed=sampling_seed,
            answer=answer,
            notify=self.notify,
        )
        result = (finetune(run, request) if plan is None else tune(plan, run, request)).result
        if result.interrupted:
            raise Interrupted
        return result

    def sources(self, task_name: str, dev_rows: int, place: Path) -> PairSources:
        """Return a task's training pairs and some of its dev pairs.

        Frequent validation on all dev pairs would take longer than training. A set that is scored on its public dev
        rows has none left for validation; a part of its training pairs is held out instead.
        """
        whole = NamedPairs(task=task_name, data=str(self.data), skip_bad=True).sources()
        if whole.dev is None:
            return whole
        if self._test_part(task_name).split == "dev":
            return replace(whole, dev=None)
        chosen = evenly_spaced(list(whole.dev.read(skip_bad=True)), dev_rows)
        _write_rows(place / "dev.jsonl", chosen, summary=[pair.summary for pair in chosen])
        return replace(whole, dev=NamedPairs(data=str(place / "dev.jsonl")).sources().train)

    def first_test_pairs(self, task_name: str, count: int) -> list[Pair]:
        """Return the first `count` test pairs of a task."""
        part = self._test_part(task_name)
        return read_test_pairs(part, limit=count, skip_bad=True, notify=self.notify)

    def spaced_test_pairs(self, task_name: str, count: int) -> list[Pair]:
        """Return at most `count` test pairs of a task, evenly spaced: the first rows are not typical."""
        part = self._test_part(task_name)
        pairs = read_test_pairs(part, skip_bad=True, notify=self.notify)
        if len(pairs) <= count:
            return pairs
        self.notify(f"using {count:,} of these, evenly spaced")
        return evenly_spaced(pairs, count)


def write_texts(
    loaded: LoadedModel,
    task_name: str,
    pairs: Sequence[Pair],
    *,
    settings: GenerationSettings,
    keep: Path | None = None,
    max_source: int | None = None,
    batch_size: int = 8,
) -> list[str]:
    """Generate a model's texts for the documents of `pairs`, under the task's limits.

    Args:
        keep: a file for documents, texts and references, for reading; if None, none is written.
        max_source: most tokens of a document; if None, the task's.
        batch_size: documents at a time.
    """
    summarizer = Summarizer(
        loaded.model,
        loaded.tokenizer,
        settings=settings,
        max_source=max_source or task(task_name).max_source,
        instruction=loaded.use.instruction_for(task_name),
    )
    documents = [pair.document for pair in pairs]
    written = summarizer.summarize(documents, long="truncate", short="write", batch_size=batch_size)
    texts = [summary.text for summary in written]
    if keep is not None:
        _write_rows(keep, pairs, prediction=texts)
    return texts


def _write_rows(path: Path, pairs: Sequence[Pair], **column: Sequence[str]) -> None:
    """Write documents and references as JSON lines, with one additional column."""
    ((name, values),) = column.items()
    references = "summaries" if name == "summary" else "references"
    rows = [
        {"document": pair.document, name: value, references: pair.all_references}
        for pair, value in zip(pairs, values, strict=True)
    ]
    write_file(path, "".join(json.dumps(row) + "\n" for row in rows))


def rounded(scores: Mapping[str, NDArray[np.float64]]) -> dict[str, list[float]]:
    """Return the scores of each example with three decimals, for a result."""
    return {name: [round(float(value), 3) for value in values] for name, values in scores.items()}


def pretraining_of(recipe: str, steps: int, changes: Mapping[str, Any]) -> PreTrainRun:
    """Return a recipe's pre-training run with `steps` steps, at most a tenth of them for warmup."""
    run = pretraining_run(recipe)
    warmup = max(1, min(run.train.warmup_steps, steps // 10))
    loop = {"train.steps": steps, "train.epochs": None, "train.warmup_steps": warmup}
    return with_changes(run, {**changes, **loop})


def training_of(*, steps: int, rate: float, tokens: int, seed: int) -> dict[str, Any]:
    """Return changes to a recipe: `steps` steps of `tokens` tokens, in the hardware's native precision."""
    return {
        "train.steps": steps,
        "train.epochs": None,
        "train.warmup_steps": max(1, min(300, steps // 10)),
        "train.learning_rate": rate,
        "train.precision": native_precision(),
        "train.seed": seed,
        "batch_tokens": tokens,
    }


def best_metric_of(result: TrainResult, place: Path) -> float:
    """Return the best validation of a training in `place`; raise `RunError` if there was none."""
    if result.best_metric is None:
        raise RunError(f"{place}: the run ended without a validation")
    return result.best_metric


def drop_checkpoints(place: Path) -> None:
    """Remove the checkpoints of a finished step, which never resumes; they would fill the disk."""
    shutil.rmtree(place / "run" / "checkpoints", ignore_errors=True)


def drop_model(place: Path) -> None:
    """Remove checkpoints and weights of a model that has been scored, and the weights that its run started from."""
    drop_checkpoints(place)
    shutil.rmtree(place / "start", ignore_errors=True)
    shutil.rmtree(place / "run" / "model", ignore_errors=True)


@final
@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[S]):
    """A study as data.

    Attributes:
        name: its name in the study's folder.
        scales: its sizes, by name.
        steps: its steps in order, from a scale and the runner that does their work.
        table: Markdown of the results so far.
        claims: the paper's claims that the study is about, each with our difference so far.
        draw: draws plots of the results in the study's folder.
        reads: the data sets that it reads.
        update_seconds: see `StudyPlan`; from the studies in docs/experiments.
    """

    name: str
    scales: Mapping[str, S]
    steps: Callable[[S, Runner], Iterable[Step]]
    table: Callable[[S, Results], str]
    claims: Callable[[S, Results], Sequence[Claim]] = lambda *_: ()
    draw: Callable[[S, Results, Path], None] = lambda *_: None
    reads: Callable[[S], Reads] = lambda _: Reads()
    update_seconds: float = 1.0

    def plan(self, scale: S, *, data: Path, out: Path, notify: Notify, only: Sequence[str] = ()) -> StudyPlan:
        """Return what a call with these arguments would do; it writes nothing.

        Raises:
            UserError: see `__call__`.
        """
        study = Study(out, scale, name=self.name, data=data, only_look=True)
        steps = chosen_steps(self.steps(scale, Runner(study, data, notify)), only)
        return StudyPlan(
            name=self.name,
            scale=getattr(scale, "name", ""),
            out=out,
            steps=steps,
            results=study.results(steps),
            reads=self.reads(scale),
            update_seconds=self.update_seconds,
        )

    def __call__(self, scale: S, *, data: Path, out: Path, notify: Notify, only: Sequence[str] = ()) -> str:
        """Do the remaining steps in `out`; return the table, written to OUT/table.md and .tex after each step.

        Args:
            only: see `chosen_steps`. The table has all results of the folder.

        Raises:
            UserError: the data are missing, or `out` contains something else.
            Interrupted: it received a signal to stop; the same call resumes.
        """
        plan = self.plan(scale, data=data, out=out, notify=silent, only=only)
        if len(plan.results) < len(plan.steps) and (missing := plan.reads.missing(data)):
            raise UserError(
                f"{data} lacks {', '.join(missing)}, which {self.name} needs at --scale {plan.scale}; add the data as "
                "docs/guide/reproduce.md says"
            )
        study = Study(out, scale, name=self.name, data=data)
        text = ""

        def show(_: Results) -> None:
            nonlocal text
            results = study.results(steps)
            self.draw(scale, results, study.folder)
            text = missing_steps(steps, results) + self.table(scale, results) + self.verdicts(scale, results)
            write_file(study.folder / TABLE_FILE, text)
            write_file(study.folder / LATEX_FILE, latex(text))

        steps = list(self.steps(scale, Runner(study, data, lambda text: notify(in_a_study(text)))))
        study.work(chosen_steps(steps, only), notify, show=show)
        return text

    def verdicts(self, scale: S, results: Results) -> str:
        """Return a table of the paper's claims: theirs, ours, scale, verdict; "" without claims."""
        rows = verdict_rows(self.claims(scale, results), getattr(scale, "name", ""))
        if not rows:
            return ""
        return "\n".join(["", *markdown("claim | the paper | here | scale | verdict", rows), NOTE])


def in_a_name(start: str) -> str:
    """Return a starting point as a part of a step's name; another model may be a path."""
    return re.sub(r"[^\w.+-]+", "-", start)


def markdown(header: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table and an empty one; `header` has the titles between bars: "system | ROUGE-1"."""
    rule = "|---" * (header.count("|") + 1) + "|"
    return [f"| {header} |", rule, *(f"| {' | '.join(row)} |" for row in rows), ""]


def runs_of(results: Mapping[str, Result], names: Mapping[Key, str]) -> dict[Key, Result]:
    """Return the available results by seed; `names` gives the step of each seed."""
    return {key: results[name] for key, name in names.items() if name in results}


def scores_of(runs: Runs[Key]) -> dict[str, NDArray[np.float64]]:
    """Return the scores on the test set (runs, examples) by ROUGE type."""
    return {name: np.array([run["examples"][name] for run in runs.values()]) for name in ROUGE_TYPES}


def rouge_cells(runs: Runs[Key], types: Sequence[str] = ROUGE_TYPES) -> list[str]:
    """Return the interval of each ROUGE type over runs and examples."""
    scores = scores_of(runs)
    return [str(OVER_RUNS.runs_interval(scores[name])) for name in types]


def each_run(runs: Runs[Key]) -> str:
    """Return the mean ROUGE-L of every run."""
    return ", ".join(f"{mean:.1f}" for mean in scores_of(runs)["rougeL"].mean(axis=1))


def gain(runs: Runs[Key], others: Runs[Key]) -> str:
    """Return the interval of the gain in ROUGE-L from `others` to `runs`, paired by seed and example.

    The cell is empty without common seeds.
    """
    found, _ = gain_interval(runs, others)
    return "" if found is None else str(found)


def gain_interval(runs: Runs[Key], others: Runs[Key], measure: str = "rougeL") -> tuple[Interval | None, int]:
    """Return the interval of the gain in a ROUGE type, and the number of common runs; None without any."""
    common = [key for key in runs if key in others]
    if not common:
        return None, 0
    here, there = (scores_of({key: side[key] for key in common})[measure] for side in (runs, others))
    return OVER_RUNS.runs_interval(here - there), len(common)
