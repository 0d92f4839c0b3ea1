"""Compare models on your own documents: `precis compare`.

OUT/documents.jsonl      the documents as they were read, with their references
OUT/predictions/*.jsonl  the summaries of each model, written as they come; a repeated command resumes from them
OUT/comparison.json      the figures; OUT/table.md has the tables
OUT/report.html          the tables and all documents next to their summaries, in one file
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from precis.data.pairs.pair import BadRowError, Columns, Pair, pair_of
from precis.evaluation.comparison import ComparedSummary, Comparison
from precis.evaluation.offline_pages import comparison_page
from precis.evaluation.predictions import Prediction, PredictionWriter, read_predictions
from precis.generation.model_location import locate, names_apart, slug
from precis.messages import Notify, silent
from precis.phases.measure.evaluation_inputs import Progress
from precis.phases.measure.model_process import ModelTask, summarize_in_process
from precis.phases.output_folders import writing_to
from precis.phases.use.input_documents import Document, Reading, read_documents
from precis.phases.use.summary_job import SummaryJob
from precis.storage.atomic import write_file
from precis.version import __version__
from precis_text.errors import UserError
from precis_text.length import ANY_LENGTH, Length
from precis_text.row import Row

DOCUMENTS = "documents.jsonl"


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """The options of a comparison.

    Attributes:
        length: the requested length of all summaries.
        free, allow_remote: see `precis.generation.writers.writer_opening.open_writer`; for writers only.
        reading: how to read the documents.
        summary_column: the column with the reference; if None, "summary" if there is one.
        limit: the number of documents, from the start; if None, all.
        threads: the number of threads of each model.
        set_up: called in the process of each model before it starts; a function of a module.
    """

    length: Length = ANY_LENGTH
    free: bool = False
    allow_remote: bool = False
    reading: Reading = field(default_factory=Reading)
    summary_column: str | None = None
    limit: int | None = None
    threads: int = 1
    set_up: Callable[[], None]


def compare(
    models: Sequence[str],
    files: Sequence[str],
    options: ComparisonOptions,
    *,
    out: str | Path,
    notify: Notify = silent,
    progress: Progress = lambda *_: None,
) -> Comparison:
    """Summarize documents with each model in a process of its own, and compare the summaries.

    Args:
        models: `default`, `writer`, folders, hub names, or addresses of endpoints.
        files: see `precis.phases.use.input_documents.read_documents`.
        out: the folder for summaries and reports.

    Raises:
        UserError: the documents cannot be read, a model is missing, named twice or cannot summarize, or `out` contains
            files that precis did not write or summaries with other options.
        RunError: a model failed. Its summaries so far are kept.
    """
    names = names_apart(models)
    jobs = {name: _job(model, options) for name, model in zip(names, models, strict=True)}
    located = {name: job.locate_model() for name, job in jobs.items()}
    documents, pairs = _read(files, options, notify)
    with writing_to(out, doing="comparing into") as folder:
        _write_documents(folder / DOCUMENTS, pairs)
        tasks = [
            ModelTask(
                name=name,
                job=job,
                documents=documents,
                pairs=pairs,
                file=folder / "predictions" / f"{slug(name)}.jsonl",
                made_by={**located[name].made_by(), "threads": options.threads},
                set_up=options.set_up,
            )
            for name, job in jobs.items()
        ]
        left = [task for task in tasks if _done(task) < len(pairs)]  # all are checked before any runs
        for task in left:
            for done in summarize_in_process(task):
                progress(task.name, done, len(pairs))
        summaries = {task.name: [*map(_summary, read_predictions(task.file, pairs))] for task in tasks}
        found = Comparison(
            pairs=pairs, summaries=summaries, cap=options.length.cap, machine=[*_machine(options)]
        )
        _write(folder, found)
    return found


def _done(task: ModelTask) -> int:
    """Return the summaries of a task that are there; raise `UserError` if their options or documents differ."""
    with PredictionWriter(task.file, task.pairs, made_by=task.made_by) as writer:
        return writer.done


def _job(model: str, options: ComparisonOptions) -> SummaryJob:
    found = locate(model)
    if found.is_classifier:
        raise UserError(f"{model}: labels texts and does not summarize; leave it out")
    asked = {"free": options.free, "allow_remote": options.allow_remote} if found.is_writer else {}
    return SummaryJob(model=model, length=options.length, writing=asked)


def _read(
    files: Sequence[str], options: ComparisonOptions, notify: Notify
) -> tuple[list[Document], list[Pair]]:
    """Return the readable documents, and each with its reference and a name of its own."""
    reading = replace(options.reading, keep_going=True)
    found = [*islice(read_documents(files, reading, notify=notify), options.limit)]
    for document in found:
        if problem := document.problem or ("" if document.text.strip() else "the document is empty"):
            notify(f"left out: {document.name}: {problem}")
    documents = [each for each in found if not each.problem and each.text.strip()]
    if not documents:
        raise UserError(f"{', '.join(files)}: no document that can be read; name others")
    pairs, counts = [], dict[str, int]()
    for document in documents:
        name = document.id or document.name
        counts[name] = counts.get(name, 0) + 1
        unique = name if counts[name] == 1 else f"{name} ({counts[name]})"
        pairs.append(replace(_with_reference(document, options.summary_column), id=unique))
    if options.summary_column is not None and not any(pair.summary for pair in pairs):
        raise UserError(f"--summary-column {options.summary_column}: no document has a text there")
    return documents, pairs


def _with_reference(document: Document, column: str | None) -> Pair:
    """Return a document with the references of its row; raise `UserError` if one is not a text."""
    columns = Columns() if column is None else Columns(summary=column)
    values = {**document.row, columns.document: document.text}
    try:
        return pair_of(Row(document.name, values), columns, need_summary=False)
    except BadRowError as error:
        raise UserError(f"{document.name}: {error}") from None


def _summary(found: Prediction) -> ComparedSummary:
    details = found.details
    sentences = details.get("sentences", ())
    return ComparedSummary(
        text=found.prediction, seconds=details["seconds"], opening=details.get("opening"),
        memory=details.get("memory"), is_whole=found.tokens_read >= found.document_tokens,
        finished=details.get("finished", True), error=details.get("error", ""),
        reasons={each["text"]: each["reason"] for each in sentences if each.get("reason")},
        quoted=tuple(each["origin"] == "quoted" for each in sentences),
    )  # fmt: skip


def _machine(options: ComparisonOptions) -> Iterator[str]:
    """Yield lines about the machine, the versions and the options, for the reports."""
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU only"
    yield (
        f"{platform.system()} {platform.machine()}, {_processor()}, {device}; threads: {options.threads}; "
        f"precis {__version__}, torch {torch.__version__}"
    )
    asked = {name: value for name, value in options.length.options().items() if value is not None}
    kind = "unsupported sentences stay" if options.free else "quotations replace unsupported sentences"
    yield f"{', '.join(f'{name}: {value}' for name, value in asked.items())}; writers: {kind}"


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown processor")


def _write_documents(file: Path, pairs: Sequence[Pair]) -> None:
    rows = (
        {
            "id": pair.id,
            "document": pair.document,
            **({"summaries": [*pair.all_references]} if pair.summary else {}),
        }
        for pair in pairs
    )
    write_file(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _write(folder: Path, found: Comparison) -> None:
    """Write the reports; everything is computed first, so an error writes nothing."""
    texts = {
        "comparison.json": json.dumps(found.to_dict(), ensure_ascii=False, indent=2) + "\n",
        "table.md": "\n\n".join([*found.machine, *(table.markdown() for table in found.tables())]) + "\n",
        "report.html": comparison_page(found),
    }
    for name, text in texts.items():
        write_file(folder / name, text)
