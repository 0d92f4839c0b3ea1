"""Learning curves: train on growing parts of the same pairs, several times each, and score all models on test pairs.

    OUT/pairs/         dev.jsonl, test.jsonl, and SEED-N.jsonl: the parts, where each contains the smaller ones
    OUT/runs/N-SEED/   a run folder for each part, as from `precis finetune --data OUT/pairs/SEED-N.jsonl`
    OUT/scores/        as from `precis evaluate`, with the model that comes with precis, which chooses sentences
    OUT/curve.png      the scores over the number of pairs; curve.md, curve.json: the same in numbers

A repeated call trains what is missing. It keeps the parts, so further sizes and seeds fit the earlier ones.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

from precis.data.pairs.pair import Pair
from precis.evaluation.baselines import Lead
from precis.evaluation.probe_plots import Curve, Point, draw_curves
from precis.evaluation.score_report import title_of
from precis.evaluation.significance import OVER_RUNS, Interval, PairedTest
from precis.generation.model_location import has_default_model
from precis.generation.model_metadata import DEFAULT
from precis.messages import Notify, silent
from precis.phases.data.run_pairs import NamedPairs, hold_out, named_pairs, splits_of
from precis.phases.measure.evaluation_inputs import Progress
from precis.phases.measure.model_scores import evaluate_models, make_report
from precis.phases.measure.task_metrics import scores_for
from precis.phases.output_folders import claim_folder, writing_to
from precis.phases.plans.finetuning_plan import FineTuningOptions, NamedFineTuningOptions, plan_finetuning
from precis.phases.train.starting_point import extractor_command
from precis.phases.train.training_session import MODEL_FOLDER
from precis.storage.atomic import to_json, write_file
from precis.storage.settings_change import refuse_change
from precis.table import Table
from precis_text.bounded_io import read_json
from precis_text.errors import UserError
from precis_text.row import pluralize

SETTINGS = "curve-settings.json"
_METRICS = ("rouge1", "rouge2", "rougeL")
_DECIDES = "rougeL"
_DECIDED = 0.05  # p-value
_TEST_SHARE = 5  # a fifth of the documents is held out if the pairs lack a test split
_OF_A_CURVE = ("--curve", "--seeds", "--document-column", "--summary-column", "--skip-bad")
_FREE = ("out", "restart", "command", "notify", "seed", "callbacks")  # do not make other models


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The scores after one number of pairs.

    Attributes:
        pairs: that number.
        seeds: the seeds of its runs; each also draws the pairs.
        scores: ROUGE with intervals over runs and test pairs.
        over_choice: the test of ROUGE-L minus that of chosen sentences on the same test pairs.
    """

    pairs: int
    seeds: tuple[int, ...]
    scores: Mapping[str, Interval]
    over_choice: PairedTest

    @property
    def is_better(self) -> bool | None:
        """True if the models are above chosen sentences; None if the runs do not decide."""
        return None if self.over_choice.p_value >= _DECIDED else self.over_choice.difference.mean > 0


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """Scores over the number of training pairs.

    Attributes:
        points: from few pairs to many; empty if a signal interrupted a run.
        levels: the scores of systems that the pairs do not change, by name; the first one is the choice of sentences.
        choose: the command that trains a model to choose on these pairs.
    """

    folder: Path
    points: Sequence[CurvePoint]
    levels: Mapping[str, Mapping[str, Interval]]
    choose: str

    def table(self) -> Table:
        """Return the scores, each with its interval."""
        rows = [
            [
                f"{point.pairs:,}",
                f"{len(point.seeds)}",
                *map(_cell, point.scores.values()),
                _cell(point.over_choice.difference),
            ]
            for point in self.points
        ]
        levels = [[name, "", *map(_cell, scores.values()), ""] for name, scores in self.levels.items()]
        titles = [title_of(metric) for metric in _METRICS]
        chooser = next(iter(self.levels))
        return Table(
            header=["pairs", "runs", *titles, f"{title_of(_DECIDES)} over {chooser}"],
            rows=[*rows, *levels],
            unbroken=titles,
            lines_above=[len(rows)],
            caption="intervals: 95%, over runs and test pairs; two runs give their range",
        )

    @property
    def advice(self) -> str:
        """A line that says whether to write or to choose, with the figures that decide."""
        last, chosen = self.points[-1], next(iter(self.levels.values()))[_DECIDES]
        metric, from_here = title_of(_DECIDES), self._better_from
        if from_here is not None:
            first = next(point for point in self.points if point.pairs == from_here)
            return (
                f"advice: write from {from_here:,} pairs on: models reach {metric} {first.scores[_DECIDES]} there, "
                f"chosen sentences {chosen}"
            )
        if last.is_better is False:
            return (
                f"advice: choose, do not write: after {last.pairs:,} pairs models reach {metric} "
                f"{last.scores[_DECIDES]}, chosen sentences {chosen}; to choose: {self.choose}"
            )
        return (
            f"advice: {last.pairs:,} pairs do not decide: {metric} over that of chosen sentences is "
            f"{last.over_choice.difference}; give more test pairs, more --seeds, or a larger --curve"
        )

    @property
    def _better_from(self) -> int | None:
        """The number of pairs from which on every point is above the choice of sentences."""
        found = None
        for point in reversed(self.points):
            if not point.is_better:
                break
            found = point.pairs
        return found

    def write(self) -> None:
        """Write curve.md, curve.json and curve.png."""
        scores = [_numbers({**p.scores, "over_choice": p.over_choice.difference}) for p in self.points]
        record = {
            "points": [
                {"pairs": p.pairs, "seeds": p.seeds} | own for p, own in zip(self.points, scores, strict=True)
            ],
            "levels": {name: _numbers(scores) for name, scores in self.levels.items()},
            "advice": self.advice,
        }
        write_file(self.folder / "curve.json", to_json(record))
        write_file(self.folder / "curve.md", f"{self.table().markdown()}\n\n{self.advice}\n")
        panels = [self._lines(metric) for metric in _METRICS]
        bars = "bars: 95% intervals over runs and test pairs"
        draw_curves(panels, self.folder / "curve.png", xlabel="training pairs", logarithmic=True, bars=bars)

    def _lines(self, metric: str) -> list[Curve]:
        points = [
            Point(p.pairs, i.mean, i.low, i.high, len(p.seeds))
            for p in self.points
            for i in (p.scores[metric],)
        ]
        levels = [
            Curve(name, metric, (Point(None, scores[metric].mean, None, None, 1),))
            for name, scores in self.levels.items()
        ]
        return [Curve("fine-tuned", metric, tuple(points)), *levels]


def learning_curve(
    data: str | Path | None = None,
    *,
    sizes: Sequence[int],
    seeds: int = 3,
    progress: Progress = lambda *_: None,
    **named: Unpack[NamedFineTuningOptions],
) -> LearningCurve:
    """Train on each number of pairs with each seed, score all models, and write table and plot; or resume that.

    Args:
        data: all pairs, as for `finetune`; without a test split, a fifth of the documents is held out for the test.
        sizes: the numbers of training pairs.
        seeds: runs for each of them. A seed draws the pairs and seeds the run; the first one is `seed`, or 0.
        progress: called while the models are scored.
        named: the options of `finetune`.

    Raises:
        UserError: options exclude each other, there are fewer pairs than a size, or `out` holds another curve.
        RunError: training failed.

    Examples:
        >>> brief = {"recipe": "zcodepp-micro", "steps": 1, "settings": ["model.hidden_size=16"]}
        >>> curve = learning_curve("pairs", sizes=[2], seeds=1, out="runs/curve", **brief)
        >>> [point.pairs for point in curve.points]
        [2]
    """
    pairs, others = named_pairs(data, named)
    options = cast(FineTuningOptions, others)
    _check(sizes, seeds, pairs, options)
    notify = options.get("notify", silent)
    claim_folder(options["out"])
    split = _Split.of(pairs, seed=options.get("seed") or 0, notify=notify)
    split.check(sizes)
    with writing_to(options["out"], doing="training in") as folder:
        if options.get("restart"):
            for name in ("pairs", "runs", "scores"):
                shutil.rmtree(folder / name, ignore_errors=True)
            (folder / SETTINGS).unlink(missing_ok=True)
        _keep_settings(folder, split, options)
        parts = _write_parts(folder / "pairs", split, sizes, seeds, first=options.get("seed") or 0)
        for number, part in enumerate(parts, start=1):
            place = folder / "runs" / f"{part.size}-{part.seed}"
            about = f"{part.size:,} pairs, seed {part.seed}"
            notify(f"run {number} of {len(parts)}: {about} (in {place})")
            if not _train(place, part, folder, options, notify=notify if number == 1 else silent):
                return LearningCurve(folder=folder, points=(), levels={}, choose="")
        return _scored(
            folder, split.test, parts, choose=extractor_command(pairs.sources()), progress=progress
        )


@dataclass(frozen=True)
class _Part:
    size: int
    seed: int
    file: Path


@dataclass(frozen=True)
class _Split:
    """The pairs of a curve: to train on, to validate on, and to score on."""

    train: Sequence[Pair]
    dev: Sequence[Pair]
    test: Sequence[Pair]

    @classmethod
    def of(cls, pairs: NamedPairs, *, seed: int, notify: Notify) -> _Split:
        sources = pairs.sources()
        train = [*sources.train.read(skip_bad=sources.skip_bad)]
        if "test" in (splits_of(sources.train.source) or ()):
            test = [*pairs.part("test").read(skip_bad=sources.skip_bad)]
        else:
            train, test = hold_out(train, seed=seed, one_in=_TEST_SHARE)
            notify(
                f"no test split: {pluralize(len(test), 'pair')} of the training pairs are held out for testing"
            )
        if sources.dev is not None:
            return cls(train, [*sources.dev.read(skip_bad=sources.skip_bad)], test)
        train, dev = hold_out(train, seed=seed)
        notify(f"no dev set: {pluralize(len(dev), 'pair')} of the training pairs are held out for validation")
        return cls(train, dev, test)

    def check(self, sizes: Sequence[int]) -> None:
        if max(sizes) > len(self.train):
            raise UserError(
                f"--curve {max(sizes)}: {len(self.train):,} pairs are left to train on; use up to that number"
            )


def _check(sizes: Sequence[int], seeds: int, pairs: NamedPairs, options: FineTuningOptions) -> None:
    """Refuse what a curve does not support, before anything is read."""
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise UserError("--curve: give different numbers of pairs, such as --curve 30,100,300")
    if seeds < 1:
        raise UserError(f"--seeds {seeds}: use 1 or more")
    if pairs.task is not None:
        raise UserError(f"--curve reads plain pairs; replace --task {pairs.task} with --data")
    if options.get("answer") == "head":
        raise UserError("--curve is for models that write; omit --curve or --answer head")
    for name in ("examples", "sampling_seed"):
        if options.get(name) is not None:
            raise UserError(f"--{name.replace('_', '-')} and --curve both draw the pairs; give one of them")


def _keep_settings(folder: Path, split: _Split, options: FineTuningOptions) -> None:
    """Record what all models of a curve share, or refuse to mix it with other settings."""
    shared = {name: value for name, value in options.items() if name not in _FREE and value}
    digests = {name: hashlib.sha256(_rows(rows)).hexdigest()[:16] for name, rows in vars(split).items()}
    now = json.loads(json.dumps({**shared, **digests}, default=str))
    file = folder / SETTINGS
    if file.exists():
        refuse_change(folder, read_json(file), now, remedy="add --restart, or use another --out")
    write_file(file, to_json(now))


def _write_parts(place: Path, split: _Split, sizes: Sequence[int], seeds: int, *, first: int) -> list[_Part]:
    """Write the parts: the first pairs in the order of each seed."""
    place.mkdir(exist_ok=True)
    parts = []
    for name, rows in (("dev", split.dev), ("test", split.test)):
        write_file(place / f"{name}.jsonl", _rows(rows))
    for size in sorted(sizes):
        for seed in range(first, first + seeds):
            order = np.random.default_rng(seed).permutation(len(split.train))
            file = place / f"{seed}-{size}.jsonl"
            write_file(file, _rows(split.train[int(row)] for row in order[:size]))
            parts.append(_Part(size, seed, file))
    return parts


def _rows(pairs: Iterable[Pair]) -> bytes:
    """Return pairs as JSON lines that `Columns()` reads as the same pairs."""
    lines = []
    for pair in pairs:
        row: dict[str, Any] = {"document": pair.document, "summary": pair.summary}
        row |= {"summaries": pair.references} if pair.references else {}
        lines.append(json.dumps({**row, **({"id": pair.id} if pair.id else {})}, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def _train(place: Path, part: _Part, folder: Path, options: FineTuningOptions, *, notify: Notify) -> bool:
    """Train on one part unless that is done; return False if a signal interrupted the run."""
    if (place / MODEL_FOLDER).is_dir():
        return True
    named = NamedPairs(data=str(part.file), dev=str(folder / "pairs" / "dev.jsonl"))
    own = {"--data": named.data, "--dev": named.dev, "--seed": part.seed, "--out": place}
    words = [
        word for word in options.get("command", ()) if word.partition("=")[0] not in {*_OF_A_CURVE, *own}
    ]
    command = [*words, *(f"{option}={value}" for option, value in own.items())]
    asked: FineTuningOptions = {
        **options, "out": place, "seed": part.seed, "command": command, "notify": notify,
    }  # fmt: skip
    if plan_finetuning(named, **asked).run().model is None:
        return False
    shutil.rmtree(place / "checkpoints", ignore_errors=True)
    return True


def _scored(
    folder: Path, test: Sequence[Pair], parts: Sequence[_Part], *, choose: str, progress: Progress
) -> LearningCurve:
    """Score every model, the choice of sentences and LEAD-k on the test pairs, and write the curve."""
    models = [str(folder / "runs" / f"{part.size}-{part.seed}") for part in parts]
    chooser = [DEFAULT] if has_default_model() else []
    scores = scores_for(None, test)
    baselines = tuple(each for each in scores.baselines if isinstance(each, Lead))[-1:]
    systems = evaluate_models([*models, *chooser], test, out=folder / "scores", progress=progress)
    report = make_report(systems, test, replace(scores, baselines=baselines), out=folder / "scores")
    of_part = dict(zip(parts, report.systems, strict=False))
    names = [system.name for system in report.systems[len(parts) :]]
    against = report.system(names[0]).examples[_DECIDES]
    points = []
    for size in sorted({part.size for part in parts}):
        runs = [found.examples for part, found in of_part.items() if part.size == size]
        points.append(
            CurvePoint(
                pairs=size,
                seeds=tuple(part.seed for part in parts if part.size == size),
                scores={m: OVER_RUNS.runs_interval(np.stack([run[m] for run in runs])) for m in _METRICS},
                over_choice=OVER_RUNS.runs_paired(np.stack([run[_DECIDES] - against for run in runs])),
            )
        )
    levels = {name: {m: report.system(name).metrics[m] for m in _METRICS} for name in names}
    curve = LearningCurve(folder=folder, points=points, levels=levels, choose=choose)
    curve.write()
    return curve


def _cell(interval: Interval) -> str:
    return f"{interval.mean:.1f}\n({interval.low:.1f} to {interval.high:.1f})"


def _numbers(scores: Mapping[str, Interval]) -> dict[str, dict[str, float]]:
    return {name: vars(interval) for name, interval in scores.items()}
