"""Score a model, or predictions from files, and the baselines.

Summaries are written to OUT/predictions/ as they come, so that an interrupted evaluation resumes there;
scores go to OUT/scores.json, OUT/table.md and OUT/examples.jsonl.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from precis.data.batches.token_arrays import pair_name
from precis.data.pairs.pair import Pair
from precis.data.tasks.label_schema import answers_of
from precis.data.tasks.tasks import Part
from precis.data.tasks.tasks import task as task_named
from precis.data.text.prompts import prompts_digest
from precis.evaluation.bert_score import BertScore
from precis.evaluation.meteor import MeteorTool
from precis.evaluation.predictions import OtherPairsError, PredictionWriter, is_predictions, read_predictions
from precis.evaluation.score_report import Report
from precis.evaluation.scoring import score
from precis.extract.extractor_opening import open_extractor, passage_choice
from precis.generation.classifier import Classifier
from precis.generation.model_location import (
    IN_A_RUN,
    ModelLocation,
    locate,
    names_apart,
    runs_with_seeds,
    slug,
)
from precis.generation.model_metadata import Mode
from precis.generation.model_names import check_adapter
from precis.generation.summarizer import Summarizer, Summary
from precis.generation.summary import Long
from precis.generation.writers.writer import Writer
from precis.generation.writers.writer_opening import open_writer
from precis.messages import Notify, silent
from precis.phases.data.run_pairs import count_trained_on, named_pairs, percent
from precis.phases.folder_check import SETTINGS_FILE
from precis.phases.measure.evaluation_inputs import (
    EvaluationOptions,
    Preset,
    Progress,
    given_systems,
    joined,
    read_test_pairs,
)
from precis.phases.measure.support_models import load_bert_score, load_judges, told_cut
from precis.phases.measure.task_metrics import Scores, scores_for
from precis.phases.output_folders import writing_to
from precis.recipes.prophetnet_recipes import prophetnet_decoding
from precis.storage.model_files import SEEDS_FILE
from precis_text.bounded_io import read_json
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from precis_text.row import pluralize
from precis_text.support.write_or_quote import rules_digest

_WRITTEN = {"scores.json", "examples.jsonl", "table.md", "predictions"}


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """One way to decode with the model: None keeps the value of `base`, or the model's own setting."""

    base: GenerationSettings | None = None
    beams: int | None = None
    length_penalty: float | None = None
    no_repeat_ngram: int | None = None

    def applied_to(self, settings: GenerationSettings) -> GenerationSettings:
        """Return the settings with the requested changes."""
        changes = {name: value for name, value in vars(self).items() if name != "base" and value is not None}
        return replace(self.base or settings, **changes)


def _was_evaluated(folder: Path) -> bool:
    """Return whether the folder holds scores, or only predictions: a copy, without a lock."""
    if (folder / "scores.json").is_file() and (folder / "examples.jsonl").is_file():
        foreign = {path.name for path in folder.iterdir()} - _WRITTEN
        return not foreign and {"systems", "signatures"} <= read_json(folder / "scores.json").keys()
    inside = [path for path in (folder / "predictions").glob("*") if path.suffix != ".lock"]  # left by a kill
    return {path.name for path in folder.iterdir()} == {"predictions"} and all(map(is_predictions, inside))


def evaluate(
    models: str | Path | Sequence[str | Path] = (),
    data: str | Path | None = None,
    *,
    out: str | Path,
    **options: Unpack[EvaluationOptions],
) -> Report:
    """Score models, or files of predictions, as `precis evaluate` does; a repeated call resumes an interrupted one.

    The table has a 95% bootstrap interval for each score. Every row is compared with the first on the same examples.

    Args:
        models: run folders, Hugging Face folders or hub names. The runs of `train_seeds` are one row, which pools
            them.
        data: a file of pairs, a folder with a test file, or `hub:owner/name`; with `task`, the folder of its files.
        out: the folder for predictions, scores and tables.
        options: see `EvaluationOptions`.

    Raises:
        UserError: there is nothing to score, options exclude each other, the pairs cannot be read, or a model or a
            file of predictions does not fit them.

    Examples:
        >>> report = evaluate("runs/news", "pairs", out="scores", beams=[1])
        >>> report.systems[0].name, Path("scores/table.md").is_file()
        ('news greedy', True)
    """
    given_models = [str(models)] if isinstance(models, str | Path) else [str(model) for model in models]
    predictions = [Path(file) for file in options.get("predictions") or ()]
    adapter = options.get("adapter")
    _check_together(given_models, adapter, predictions)
    rows = _rows(given_models, adapter)
    named = {name: model for runs in rows.values() for name, model in runs.items()}
    names_apart([*named.values()])  # refuses a run that is also in a folder of runs
    folder, notify = Path(out), options.get("notify", silent)
    decodings = _decodings(options)
    wanted, others = named_pairs(data, options)
    part = wanted.part(options.get("split"))
    pairs = read_test_pairs(part, limit=options.get("limit"), skip_bad=wanted.skip_bad, notify=notify)
    similarity = _bert_score(options, notify)
    scores = _scores(wanted.task, pairs, options, similarity)
    checker = options.get("checker")
    judges = load_judges(options.get("likelihood"), None if checker is None else Path(checker), notify=notify)
    if options.get("faithful") or judges:
        scores = replace(scores, faithful=judges)
    given = given_systems(predictions, pairs)
    written: dict[str, list[str]] = {}
    if named:
        taken = ("adapter", "mode", "long", "instruction", "batch_size", "notify", "progress")
        asked = {name: value for name, value in others.items() if name in taken}
        _tell_trained_on([*named.values()], pairs, notify)
        try:
            written = evaluate_models(
                [*named.values()], pairs, names=[*named], out=folder, decodings=decodings, task=wanted.task,
                **asked,
            )  # fmt: skip
        except OtherPairsError as error:
            raise _other_pairs(folder, part, error) from None
    pools = _pools(rows, [*written])
    report = make_report(joined(written, given), pairs, scores, out=folder, pools=pools, source=str(part))
    told_cut([*judges, *([similarity] if similarity else [])], notify)
    return report


def _tell_trained_on(models: Sequence[str], pairs: Sequence[Pair], notify: Notify) -> None:
    """Warn of documents that are also in the training pairs which a run records."""
    for model in models:
        place = Path(model)
        run = place.parent if place.name in IN_A_RUN else place
        try:
            settings = json.loads((run / SETTINGS_FILE).read_bytes())
        except (OSError, ValueError):
            continue
        if count := count_trained_on(settings, pairs):
            notify(
                f"warning: {count:,} of {pluralize(len(pairs), 'document')} were in the training pairs of {model}, so "
                "its scores reward memorizing"
            )


def evaluate_models(
    models: Sequence[str | ModelLocation],
    pairs: Sequence[Pair],
    *,
    out: Path,
    names: Sequence[str] | None = None,
    adapter: str | None = None,
    mode: Mode | None = None,
    decodings: Sequence[Decoding] = (Decoding(),),
    batch_size: int = 16,
    long: Long | None = None,
    task: str | None = None,
    instruction: str | None = None,
    notify: Notify = silent,
    progress: Progress = lambda *_: None,
) -> dict[str, list[str]]:
    """Summarize all pairs with each model and each way of decoding: system name -> texts.

    Args:
        names: what the models are called; if None, see `names_apart`.
        adapter: an adapter to attach to the model.
        mode: whether the models write or choose sentences; if None, each model's default.
        instruction: text put before every document. If None, a model that was grounded with instructions gets the
            task's, and any other the one from its training.

    Raises:
        UserError: a model is missing or named twice (checked before writing), a document gives no tokens, or `out`
            contains files that precis did not write, predictions of another model, or a running evaluation.
    """
    located = [locate(model, adapter) for model in models]
    names = names or names_apart([model.source for model in located])
    asked_else = (adapter, mode, long, instruction) != (None,) * 4
    for model in located:
        if model.is_classifier:
            _check_labelling(model, task, decodings, asked_else=asked_else)
    systems: dict[str, list[str]] = {}
    with writing_to(out, doing="evaluating into", is_ours=_was_evaluated):
        for model, name in zip(located, names, strict=True):
            if model.is_classifier:
                label = partial(Classifier.from_pretrained(model).stream, batch_size=batch_size)
                ways: Iterable[_Way] = [_Way(f"{name} head", {"answer": "head"}, label)]
            elif model.use.mode_for(mode) == "extract":
                ways = _ways_to_choose(model, name, decodings)
            else:
                before = model.use.instruction_for(task) if instruction is None else instruction
                if before:
                    notify(f"instruction before every document: {before}")
                summarizer = _opened(model)
                ways_of = _ways_to_decode(name, decodings, summarizer.settings)
                asked = {"instruction": before, "long": long}
                ways = _ways_to_write(summarizer, ways_of, batch_size=batch_size, asked=asked)
            for way in ways:
                file = out / "predictions" / f"{slug(way.system)}.jsonl"
                made_by = {**way.made_by, **model.fingerprint}
                with PredictionWriter(file, pairs, made_by=made_by) as writer:
                    if writer.done:
                        done = f"{writer.done:,} of {len(pairs):,} summaries are in {file} already"
                        notify(f"{way.system}: {done}")
                    for _ in _written(writer, pairs, way.summarize):
                        progress(way.system, writer.done, len(pairs))
                systems[way.system] = [prediction.prediction for prediction in read_predictions(file, pairs)]
                _tell_cut(way.system, file, notify)
    return systems


@dataclass(frozen=True)
class _Way:
    """A row of the table: its name, the settings that its predictions depend on, and the function that makes them."""

    system: str
    made_by: dict[str, Any]
    summarize: Callable[[list[str]], Iterator[Summary]]


def _opened(model: ModelLocation) -> Summarizer | Writer:
    if model.is_writer:
        return open_writer(model, choose=passage_choice())
    return Summarizer.from_pretrained(model)


def _ways_to_write(
    summarizer: Summarizer | Writer,
    ways: Mapping[str, GenerationSettings],
    *,
    batch_size: int,
    asked: dict[str, Any],
) -> Iterator[_Way]:
    """Yield a table row for each way of decoding."""
    for system, settings in ways.items():
        summarize = partial(
            summarizer.stream, settings=settings, batch_size=batch_size, short="write", skip_empty=True,
            **asked,
        )  # fmt: skip
        made_by = {"max_source": summarizer.max_source, **asked, "settings": settings.to_dict()}
        if isinstance(summarizer, Writer):
            made_by |= {"prompts": prompts_digest(), "rules": rules_digest(), "check": summarizer.check}
        yield _Way(system, made_by, summarize)


def _ways_to_choose(model: ModelLocation, name: str, decodings: Sequence[Decoding]) -> Iterator[_Way]:
    """Yield the row of a model that chooses sentences; raise `UserError` if an adapter or a decoding is named."""
    if model.adapter is not None or any(decoding != Decoding() for decoding in decodings):
        raise UserError(
            f"{model.source}: chooses sentences and does not decode; omit --adapter, --beams, --length-penalty, "
            "--no-repeat-ngram and --decoding, or use --mode abstract"
        )
    extractor = open_extractor(model)
    summarize = partial(extractor.stream, short="write", skip_empty=True)
    yield _Way(f"{name} extract", {"mode": "extract"}, summarize)


def _check_labelling(
    model: ModelLocation, task: str | None, decodings: Sequence[Decoding], *, asked_else: bool
) -> None:
    """Raise `UserError` for options that a classifier does not support, or for a task with other labels."""
    if asked_else or any(decoding != Decoding() for decoding in decodings):
        raise UserError(
            f"{model.source}: is a classifier and does not decode; omit --adapter, --mode, --instruction, --long, "
            "--beams, --length-penalty, --no-repeat-ngram and --decoding"
        )
    labels = answers_of(task).labels
    if own := model.use.task:
        answers = answers_of(own).labels
        if answers != labels:
            said, wanted = (", ".join(each) or "a number" for each in (answers, labels))
            raise UserError(
                f"{model.source}: answers with {said}, but {task} needs {wanted}; name the model's own "
                f"task: --task {own}"
            )


def _written(
    writer: PredictionWriter, pairs: Sequence[Pair], summarize: Callable[[list[str]], Iterator[Summary]]
) -> Iterator[None]:
    """Write the remaining summaries, one by one."""
    for summary in summarize([pair.document for pair in pairs[writer.done :]]):
        if not summary.document_tokens:
            name = pair_name(writer.done, pairs[writer.done])
            raise UserError(f"{name}: the document gives no tokens that the model knows; remove the pair")
        writer.append(summary.text, document_tokens=summary.document_tokens, tokens_read=summary.tokens_read)
        yield


def _ways_to_decode(
    name: str, decodings: Sequence[Decoding], own: GenerationSettings
) -> dict[str, GenerationSettings]:
    """Return system name -> settings, all checked before decoding starts."""
    ways: dict[str, GenerationSettings] = {}
    for decoding in decodings:
        settings = decoding.applied_to(own)
        system = f"{name} {'greedy' if settings.beams == 1 else f'beam {settings.beams}'}"
        if system in ways:
            raise UserError(f"{system!r} is given twice; name each way of decoding once")
        ways[system] = settings
    return ways


def _tell_cut(system: str, file: Path, notify: Notify) -> None:
    predictions = read_predictions(file)
    cut = sum(prediction.tokens_read < prediction.document_tokens for prediction in predictions)
    if cut:
        share = percent(cut, len(predictions))
        notify(f"{system}: {pluralize(cut, 'document')} truncated ({share}; --long truncate)")


def make_report(
    systems: dict[str, list[str]],
    pairs: Sequence[Pair],
    scores: Scores,
    *,
    out: Path,
    pools: Mapping[str, Sequence[str]] | None = None,
    source: str = "",
) -> Report:
    """Score the systems and the baselines, and write the files; see `score`."""
    with writing_to(out, doing="evaluating into", is_ours=_was_evaluated):
        report = replace(score(systems, pairs, **vars(scores), pools=pools or {}), source=source)
        report.write(out)
    return report


def _other_pairs(folder: Path, part: Part, error: OtherPairsError) -> UserError:
    """Return the error of a folder with an evaluation on other pairs, with the names of both."""
    scores = folder / "scores.json"
    before = read_json(scores).get("pairs") if scores.is_file() else None
    return UserError(
        f"{folder}: holds an evaluation on {before or 'other pairs'}, and {part} was given now; choose another --out "
        f"({error})"
    )


def _rows(models: Sequence[str], adapter: str | None) -> dict[str, dict[str, str]]:
    """Return the models of each row by name: one, or the runs of a folder with several seeds.

    Raises:
        UserError: a model is named twice, or a run is missing or not finished.
    """
    rows = {}
    for name, model in zip(names_apart(models if adapter is None else [adapter]), models, strict=True):
        pooled = runs_with_seeds(model) if adapter is None and (Path(model) / SEEDS_FILE).is_file() else ()
        rows[name] = {f"{name}/{run.name}": str(run) for run in pooled} or {name: model}
    return rows


def _pools(rows: Mapping[str, Mapping[str, str]], systems: Sequence[str]) -> dict[str, list[str]]:
    """Return the systems that each row with several runs pools, by the name of the row."""
    owners = {run: row for row, runs in rows.items() for run in runs}
    pools: dict[str, list[str]] = {}
    for system in systems:
        run = max((name for name in owners if system.startswith(f"{name} ")), key=len)
        if run != owners[run]:
            pools.setdefault(f"{owners[run]}{system.removeprefix(run)}", []).append(system)
    return pools


def _check_together(models: list[str], adapter: str | None, predictions: list[Path]) -> None:
    if not models and not predictions:
        raise UserError("give something to score: --model M, or --predictions FILE, or both")
    check_adapter(adapter, models)


def _decodings(options: EvaluationOptions) -> list[Decoding]:
    """Return one way of decoding per beam width; without widths one, with the model's own."""
    preset = options.get("decoding")
    base = None if preset is None else _preset(preset, options.get("task"))
    widths: Sequence[int | None] = options.get("beams") or (None,)
    return [
        Decoding(
            base=base, beams=width, length_penalty=options.get("length_penalty"),
            no_repeat_ngram=options.get("no_repeat_ngram"),
        )
        for width in widths
    ]  # fmt: skip


def _preset(decoding: Preset, task_name: str | None) -> GenerationSettings:
    if decoding == "prophetnet":
        return prophetnet_decoding(task_name)
    if task_name is None:
        raise UserError("--decoding task: name the task with --task (see: precis data list)")
    return task_named(task_name).generation


def _bert_score(options: EvaluationOptions, notify: Notify) -> BertScore | None:
    """Load the encoder of `bertscore`; raise `UserError` if it cannot be loaded, or a layer is named without it."""
    folder, layer = options.get("bertscore"), options.get("bertscore_layer")
    if folder is None and layer is not None:
        raise UserError(f"--bertscore-layer {layer}: name the folder of an encoder with --bertscore")
    return None if folder is None else load_bert_score(Path(folder), layer=layer, notify=notify)


def _scores(
    task: str | None, pairs: Sequence[Pair], options: EvaluationOptions, bertscore: BertScore | None
) -> Scores:
    jar = options.get("meteor_jar")
    return scores_for(
        task, pairs, tokenizer=options.get("rouge_tokenizer"), stemmer=options.get("stemmer"),
        with_bleu=options.get("bleu", False), meteor=None if jar is None else MeteorTool(jar=Path(jar)),
        with_meteor=options.get("meteor", False), bertscore=bertscore, baselines=options.get("baselines"),
    )  # fmt: skip
