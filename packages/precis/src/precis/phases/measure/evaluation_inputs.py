"""The inputs of an evaluation: its options, the pairs to score on, and predictions from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, TypedDict

from precis.data.pairs.pair import Pair
from precis.data.tasks.tasks import Part
from precis.evaluation.predictions import is_predictions, read_predictions, read_texts
from precis.evaluation.rouge import TokenizerName
from precis.generation.model_metadata import Mode
from precis.generation.summary import Long
from precis.messages import Notify, silent
from precis.phases.data.run_pairs import PairReader
from precis.phases.output_folders import existing_file
from precis_text.errors import UserError
from precis_text.row import pluralize
from precis_text.text_files import NotTextError, read_text

Progress = Callable[[str, int, int], None]  # system, done, total
Preset = Literal["task", "prophetnet"]


class EvaluationOptions(TypedDict, total=False):
    """The options of `precis evaluate` besides its models, its data and its folder, as keyword arguments.

    Attributes:
        task: a task of the table. It sets the columns and, for a grounded model, the instruction.
        split: split to score on; if None, test, if there are splits.
        document_column, summary_column, units_column: columns to read instead of the source's own.
        skip_bad: skip and count rows that cannot be used.
        limit: number of pairs to score, from the start; if None, all.
        predictions: files to score too: precis's .jsonl, .jsonl rows with `id` and `summary`, or a summary per line.
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
        bertscore: the folder of an encoder; add BERTScore.
        bertscore_layer: the encoder's layer to compare; if None, the last.
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
    bertscore: str | Path | None
    bertscore_layer: int | None
    rouge_tokenizer: TokenizerName | None
    stemmer: bool | None
    faithful: bool
    likelihood: str | None
    checker: str | Path | None
    notify: Notify
    progress: Progress


def read_test_pairs(
    part: Part, *, limit: int | None = None, skip_bad: bool = False, notify: Notify = silent
) -> list[Pair]:
    """Read the pairs to score on, or the first `limit`, and report which; raise `UserError` if they cannot be read."""
    if limit is not None and limit < 1:
        raise UserError(f"--limit {limit}: use 1 or more")
    reader = PairReader(part, skip_bad=skip_bad)
    pairs = list(islice(reader, limit))
    first = (
        f"the first {'pair' if len(pairs) == 1 else f'{len(pairs):,} pairs'} of {part}{reader.told_skipped()}"
    )
    notify(reader.describe_rows() if limit is None else first)
    return pairs


def given_systems(files: Sequence[Path], pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Read predictions from several files, each a system named after its file without the ending.

    Raises:
        UserError: two files have the same name, or one is unusable.
    """
    systems: dict[str, list[str]] = {}
    for file in files:
        if file.stem in systems:
            raise UserError(f"{file}: two files of predictions are named {file.stem!r}; rename one")
        systems[file.stem] = given_predictions(file, pairs)
    return systems


def joined(written: dict[str, list[str]], given: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the models' rows, then the files'; raise `UserError` if a file has the name of a model's row."""
    for name in written.keys() & given.keys():
        raise UserError(f"{name!r} names a row of the model and a file of predictions; rename the file")
    return {**written, **given}


def given_predictions(file: Path, pairs: Sequence[Pair]) -> list[str]:
    """Read predictions for `pairs` from a file: precis's own, JSON rows with ids, or text with one summary per line.

    A precis file records its documents, which are checked; rows are matched by `id`. Text is checked only for the
    number of lines.

    Raises:
        UserError: the file cannot be read, its number of rows differs from the number of pairs, or it was made for
            other pairs.
    """
    existing_file(file, "give a file of predictions")
    if file.suffix == ".jsonl":
        if not is_predictions(file):
            return read_texts(file, pairs)
        return [prediction.prediction for prediction in read_predictions(file, pairs)]
    try:
        text = read_text(file)
    except NotTextError as error:
        raise UserError(f"{file}: {error}") from None
    texts = text.removesuffix("\n").split("\n") if text else []
    if len(texts) != len(pairs):
        found = f"{pluralize(len(texts), 'prediction')} for {pluralize(len(pairs), 'pair')}"
        raise UserError(f"{file}: has {found} to score on")
    return texts
