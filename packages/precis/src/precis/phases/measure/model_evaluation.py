"""Evaluate models, and files of predictions, on pairs: read, summarize, score with intervals, compare, write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from precis.data.pairs.pair import Pair
from precis.data.tasks.tasks import task as task_named
from precis.evaluation.meteor import MeteorTool
from precis.evaluation.rouge import TokenizerName
from precis.evaluation.score_report import Report
from precis.generation.input_plan import Long
from precis.generation.model_metadata import Mode
from precis.messages import Notify, silent
from precis.phases.data.run_pairs import named_pairs
from precis.phases.measure.model_scores import (
    Decoding,
    Progress,
    evaluate_models,
    given_systems,
    joined,
    make_report,
    read_test_pairs,
)
from precis.phases.measure.support_models import load_judges, told_cut
from precis.phases.measure.task_metrics import Scores, scores_for
from precis.recipes.prophetnet_recipes import prophetnet_decoding
from precis.recipes.run_options import refuse_unknown
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError

Preset = Literal["task", "prophetnet"]


class EvaluationOptions(TypedDict, total=False):
    """The options of `precis evaluate` besides its models, its data and its folder, as keyword arguments.

    Attributes:
        task: a task of the table. It sets the columns and, for a grounded model, the instruction.
        split: split to score on; if None, test, if there are splits.
        document_column, summary_column, units_column: columns to read instead of the source's own.
        skip_bad: skip and count rows that cannot be used.
        limit: number of pairs to score, from the start; if None, all.
        predictions: files to score too: precis's .jsonl, or text with one summary per line.
        adapter: an adapter to attach to the only model.
        mode: whether the models write or choose sentences; if None, each model's default.
        beams: beam widths; one row of the table per width. If empty, the model's own.
        length_penalty, no_repeat_ngram: replace the model's own; see `GenerationSettings`.
        decoding: settings that replace the model's own: those of `task`, or of the ProphetNet paper.
        long: how to read long documents; see `Summarizer.stream`.
        instruction: text before each document; if None, the task's for a grounded model, else the one of its training.
        batch_size: documents at a time.
        baselines: whether to add baselines; if None, as suits the task.
        bleu, meteor: add BLEU (sacrebleu) or METEOR (nltk).
        meteor_jar: add METEOR, computed by this meteor-1.5.jar. Needs Java.
        rouge_tokenizer, stemmer: how ROUGE counts words; if None, by the language.
        faithful: mark names, numbers and negations of each summary that its document seems to lack.
        likelihood: an encoder-decoder that scores each summary's likelihood (BARTScore).
        checker: the folder of a classifier that scores how well the document supports each sentence.
        notify: receives progress messages.
        progress: called with the system, the summaries that are done, and their total.
    """

    task: str | None
    split: str | None
    document_column: str | None
    summary_column: str | None
    units_column: str | None
    skip_bad: bool
    limit: int | None
    predictions: Sequence[str | Path]
    adapter: str | None
    mode: Mode | None
    beams: Sequence[int]
    length_penalty: float | None
    no_repeat_ngram: int | None
    decoding: Preset | None
    long: Long | None
    instruction: str | None
    batch_size: int
    baselines: bool | None
    bleu: bool
    meteor: bool
    meteor_jar: str | Path | None
    rouge_tokenizer: TokenizerName | None
    stemmer: bool | None
    faithful: bool
    likelihood: str | None
    checker: str | Path | None
    notify: Notify
    progress: Progress


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
        models: run folders, Hugging Face folders or hub names.
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
    refuse_unknown(options, EvaluationOptions, of="evaluate")
    named = [str(models)] if isinstance(models, str | Path) else [str(model) for model in models]
    predictions = [Path(file) for file in options.get("predictions") or ()]
    _check_together(named, options.get("adapter"), predictions)
    folder, notify = Path(out), options.get("notify", silent)
    decodings = _decodings(options)
    wanted, others = named_pairs(data, options)
    part = wanted.part(options.get("split"))
    pairs = read_test_pairs(part, limit=options.get("limit"), skip_bad=wanted.skip_bad, notify=notify)
    scores = _scores(wanted.task, pairs, options)
    checker = options.get("checker")
    judges = load_judges(options.get("likelihood"), None if checker is None else Path(checker), notify=notify)
    if options.get("faithful") or judges:
        scores = replace(scores, faithful=judges)
    given = given_systems(predictions, pairs)
    written: dict[str, list[str]] = {}
    if named:
        names = ("adapter", "mode", "long", "instruction", "batch_size", "notify", "progress")
        asked = {name: value for name, value in others.items() if name in names}
        written = evaluate_models(named, pairs, out=folder, decodings=decodings, task=wanted.task, **asked)
    report = make_report(joined(written, given), pairs, scores, out=folder)
    told_cut(judges, notify)
    return report


def _check_together(models: list[str], adapter: str | None, predictions: list[Path]) -> None:
    if not models and not predictions:
        raise UserError("give something to score: --model M, or --predictions FILE, or both")
    if adapter is not None and not models:
        raise UserError(f"--adapter {adapter} needs its base model; add --model")
    if adapter is not None and len(models) > 1:
        raise UserError(
            f"--adapter {adapter} needs exactly one --model, but {len(models)} are given; name the adapter's run "
            "folder as a separate --model, which includes its base"
        )


def _decodings(options: EvaluationOptions) -> list[Decoding]:
    """Return one way of decoding per beam width; without widths one, with the model's own."""
    preset = options.get("decoding")
    base = None if preset is None else _preset(preset, options.get("task"))
    widths: Sequence[int | None] = options.get("beams") or (None,)
    return [
        Decoding(
            base=base,
            beams=width,
            length_penalty=options.get("length_penalty"),
            no_repeat_ngram=options.get("no_repeat_ngram"),
        )
        for width in widths
    ]


def _preset(decoding: Preset, task_name: str | None) -> GenerationSettings:
    if decoding == "prophetnet":
        return prophetnet_decoding(task_name)
    if task_name is None:
        raise UserError("--decoding task: name the task with --task (see: precis data list)")
    return task_named(task_name).generation


def _scores(task: str | None, pairs: Sequence[Pair], options: EvaluationOptions) -> Scores:
    jar = options.get("meteor_jar")
    return scores_for(
        task,
        pairs,
        tokenizer=options.get("rouge_tokenizer"),
        stemmer=options.get("stemmer"),
        with_bleu=options.get("bleu", False),
        meteor=None if jar is None else MeteorTool(jar=Path(jar)),
        with_meteor=options.get("meteor", False),
        baselines=options.get("baselines"),
    )
