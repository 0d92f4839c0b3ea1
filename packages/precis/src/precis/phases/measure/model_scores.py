"""Score a model, or predictions from files, and the baselines.

Summaries are written to OUT/predictions/ as they come, so that an interrupted evaluation resumes there;
scores go to OUT/scores.json, OUT/table.md and OUT/examples.jsonl.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from precis.data.batches.token_arrays import pair_name
from precis.data.pairs.pair import Pair
from precis.data.tasks.label_schema import answers_of
from precis.data.tasks.tasks import Part
from precis.evaluation.predictions import PredictionWriter, is_predictions, read_predictions
from precis.evaluation.score_report import Report
from precis.evaluation.scoring import evaluate as score
from precis.extract.extractor import Extractor
from precis.generation.adapters import ADAPTER_FOLDER
from precis.generation.classifier import Classifier
from precis.generation.input_plan import Long
from precis.generation.model_location import ModelLocation, default_model, locate
from precis.generation.model_metadata import DEFAULT, Mode
from precis.generation.summarizer import Summarizer, Summary
from precis.messages import Notify, silent
from precis.phases.data.run_pairs import PairReader, percent
from precis.phases.measure.task_metrics import Scores
from precis.phases.output_folders import writing_to
from precis_text.bounded_io import read_json, stat_or_none
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from precis_text.text_files import NotTextError, read_text

_WRITTEN = {"scores.json", "examples.jsonl", "table.md", "predictions"}
_IN_A_RUN = ("model", ADAPTER_FOLDER)  # a run folder contains one of them

Progress = Callable[[str, int, int], None]  # system, done, total


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


def read_test_pairs(
    part: Part, *, limit: int | None = None, skip_bad: bool = False, notify: Notify = silent
) -> list[Pair]:
    """Read the pairs to score on, or the first `limit` of them, and report which.

    Raises:
        UserError: they cannot be read.
    """
    if limit is not None and limit < 1:
        raise UserError(f"--limit {limit}: use 1 or more")
    reader = PairReader(part, skip_bad=skip_bad)
    pairs = list(islice(reader, limit))
    first = f"the first {len(pairs):,} pairs of {part}{reader.told_skipped()}"
    notify(reader.told() if limit is None else first)
    return pairs


def _was_evaluated(folder: Path) -> bool:
    """Return whether the folder holds scores, or only predictions: copied or from an earlier version, unlocked."""
    if (folder / "scores.json").is_file() and (folder / "examples.jsonl").is_file():
        foreign = {path.name for path in folder.iterdir()} - _WRITTEN
        return not foreign and {"systems", "signatures"} <= read_json(folder / "scores.json").keys()
    inside = list((folder / "predictions").glob("*"))
    return {path.name for path in folder.iterdir()} == {"predictions"} and all(map(is_predictions, inside))


def evaluate_models(
    models: Sequence[str | ModelLocation],
    pairs: Sequence[Pair],
    *,
    out: Path,
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
        adapter: an adapter to attach to the model.
        mode: whether the models write or choose sentences; if None, each model's default.
        instruction: text put before every document. If None, a model that was grounded with instructions gets the
            task's, and any other the one from its training.

    Raises:
        UserError: a model is missing or named twice (checked before writing), a document gives no tokens, or `out`
            contains files that precis did not write, predictions of another model, or a running evaluation.
    """
    located = [locate(model, adapter) for model in models]
    names = names_apart([model.source for model in located])
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
                summarizer = Summarizer.from_pretrained(model)
                ways_of = _ways_to_decode(name, decodings, summarizer.settings)
                asked = {"instruction": before, "long": long}
                ways = _ways_to_write(summarizer, ways_of, batch_size=batch_size, asked=asked)
            for way in ways:
                file = out / "predictions" / f"{_slug(way.system)}.jsonl"
                made_by = {**way.made_by, **model.fingerprint}
                with PredictionWriter(file, pairs, made_by=made_by) as writer:
                    if writer.done:
                        done = f"{writer.done:,} of {len(pairs):,} summaries are in {file} already"
                        notify(f"{way.system}: {done}")
                    for _ in _written(writer, pairs, way.summarize):
                        progress(way.system, writer.done, len(pairs))
                systems[way.system] = [prediction.prediction for prediction in read_predictions(file)]
                _tell_cut(way.system, file, notify)
    return systems


@dataclass(frozen=True)
class _Way:
    """A row of the table: its name, the settings that its predictions depend on, and the function that makes them."""

    system: str
    made_by: dict[str, Any]
    summarize: Callable[[list[str]], Iterator[Summary]]


def _ways_to_write(
    summarizer: Summarizer, ways: Mapping[str, GenerationSettings], *, batch_size: int, asked: dict[str, Any]
) -> Iterator[_Way]:
    """Yield a table row for each way of decoding."""
    for system, settings in ways.items():
        summarize = partial(
            summarizer.stream,
            settings=settings,
            batch_size=batch_size,
            short="write",
            skip_empty=True,
            **asked,
        )
        made_by = {"max_source": summarizer.max_source, **asked, "settings": settings.to_dict()}
        yield _Way(system, made_by, summarize)


def _ways_to_choose(model: ModelLocation, name: str, decodings: Sequence[Decoding]) -> Iterator[_Way]:
    """Yield the table row of a model that chooses sentences.

    Raises:
        UserError: an adapter or a way of decoding is named.
    """
    if model.adapter is not None or any(decoding != Decoding() for decoding in decodings):
        raise UserError(
            f"{model.source}: chooses sentences and does not decode; omit --adapter, --beams, --length-penalty, "
            "--no-repeat-ngram and --decoding, or use --mode abstract"
        )
    extractor = Extractor.from_pretrained(model)
    summarize = partial(extractor.stream, short="write", skip_empty=True)
    yield _Way(f"{name} extract", {"mode": "extract"}, summarize)


def _check_labelling(
    model: ModelLocation, task: str | None, decodings: Sequence[Decoding], *, asked_else: bool
) -> None:
    """Refuse options that a classifier does not support, and a task with other labels.

    Raises:
        UserError: there is one of the two.
    """
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
        notify(f"{system}: {cut:,} documents ({share}) were truncated (--long truncate)")


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
    """Return the model's rows, then the files' rows.

    Raises:
        UserError: a file has the name of one of the model's rows.
    """
    for name in written.keys() & given.keys():
        raise UserError(f"{name!r} names a row of the model and a file of predictions; rename the file")
    return {**written, **given}


def given_predictions(file: Path, pairs: Sequence[Pair]) -> list[str]:
    """Read predictions for `pairs` from a file: one that precis wrote, or plain text with one summary per line.

    A precis file records its documents, which are checked. Plain text is checked only for the number of lines.

    Raises:
        UserError: the file cannot be read, its number of rows differs from the number of pairs, or it was made for
            other pairs.
    """
    if stat_or_none(file) is None:
        raise UserError(f"{file}: no such file; give a file of predictions")
    if file.suffix == ".jsonl":
        return [prediction.prediction for prediction in read_predictions(file, pairs)]
    try:
        texts = read_text(file).removesuffix("\n").split("\n")
    except NotTextError as error:
        raise UserError(f"{file}: {error}") from None
    if len(texts) != len(pairs):
        raise UserError(f"{file}: has {len(texts)} predictions, but there are {len(pairs)} pairs to score on")
    return texts


def make_report(systems: dict[str, list[str]], pairs: Sequence[Pair], scores: Scores, *, out: Path) -> Report:
    """Score the systems and the baselines, and write the files."""
    with writing_to(out, doing="evaluating into", is_ours=_was_evaluated):
        report = score(
            systems,
            pairs,
            rouge=scores.rouge,
            with_rouge=scores.with_rouge,
            scorers=scores.scorers,
            baselines=scores.baselines,
            faithful=scores.faithful,
        )
        report.write(out)
    return report


def _steps(model: str | Path) -> tuple[str, ...]:
    """Return the parts of a model's path; a run folder stands for the model in it."""
    path = Path(model)
    if not path.name and path.is_dir():
        path = path.resolve()  # "." has no name
    inside = path.name in _IN_A_RUN and path.is_dir()
    return (path.parent if inside else path).parts or (str(model),)


def names_apart(models: Sequence[str | Path], *, option: str = "--model") -> list[str]:
    """Return names for models or adapters: the shortest ends of their paths that are unique.

    Raises:
        UserError: two paths are the same place.
    """
    seen: dict[Path, str | Path] = {}
    for model in models:
        place = _place(model)
        if place in seen:
            raise UserError(f"{option} {model} is given twice, also as {seen[place]}; name each once")
        seen[place] = model
    last = [_steps(model)[-1] for model in models]
    ways = [_steps(place) for place in seen]
    for names in [
        last,
        *(["/".join(way[-count:]) for way in ways] for count in range(2, max(map(len, ways)))),
    ]:
        if len(set(map(_slug, names))) == len(names):
            return names
    return list(map(str, models))


def _place(model: str | Path) -> Path:
    """Return the canonical path of a model."""
    if str(model) == DEFAULT:
        return default_model()
    path = Path(model).expanduser().resolve()
    inside = next((path / name for name in _IN_A_RUN if (path / name).is_dir()), path)
    return path if (path / "config.json").is_file() else inside


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-")
