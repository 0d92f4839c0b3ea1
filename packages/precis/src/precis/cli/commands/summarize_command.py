"""`precis summarize`: documents in, summaries out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precis.cli.framework.command_class import describe_command, examples
from precis.cli.framework.console import ProgressLine, Screen, note, refuse_terminal
from precis.cli.framework.options import (
    Adapter,
    DocumentColumn,
    ModeName,
    ModeOption,
    SkipBad,
    Threads,
    UnitsColumn,
    begin,
    model_to_use,
)
from precis.cli.framework.panels import OptionGroup
from precis_text.bounded_io import MIB, stat_or_none
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import RunError

if TYPE_CHECKING:
    from precis.cli.framework.console import ProgressLine
    from precis.messages import OnProgress
    from precis.phases.use.summaries_file import SummariesFile
    from precis.phases.use.summary_job import SummaryJob
    from precis_text.length import Length


class LongDocuments(StrEnum):
    """`precis.generation.input_plan.Long` as a choice on the command line."""

    fie = "fie"
    chunk = "chunk"
    truncate = "truncate"
    passages = "passages"


class ShortDocuments(StrEnum):
    """`precis_text.length.Short` as a choice on the command line."""

    keep = "keep"
    write = "write"


class FormName(StrEnum):
    """`precis_text.forms.form.FormType` as a choice on the command line."""

    paragraph = "paragraph"
    tldr = "tldr"
    key_points = "key-points"
    headline = "headline"
    teaser = "teaser"
    outline = "outline"
    minutes = "minutes"


TypeOption = Annotated[FormName, typer.Option("--type", help=(
    "Form of the summary. paragraph: running text. tldr: one or two sentences. key-points: a list. headline: "
    "one line. teaser: the opening, without the conclusion. outline: one line for each heading or topic. "
    "minutes: topics, decisions, actions and open questions of a meeting or chat."
))]  # fmt: skip
About = Annotated[
    str | None,
    typer.Option("--about", help="A question or topic: summarize only what the document says about it."),
]


LongOption = Annotated[LongDocuments | None, typer.Option("--long", help=(
    "What to do with documents longer than the model's input. fie: read all of it with fusion-in-encoder "
    "(Z-Code++ only). chunk: summarize chunks, then their summaries. truncate: read only the start. "
    "passages: read the best passages (causal language models and endpoints; their default). Default of "
    "other models: fie if the model supports it (up to 32,768 tokens), else chunk."
))]  # fmt: skip


Files = Annotated[list[str] | None, typer.Argument(help=(
    "Texts, PDFs, office files, web pages, e-mails and other documents (docs/guide/documents.md), folders of these, "
    "or .jsonl, .csv, .tsv, .parquet files with one document per row. If omitted or -: standard input."
))]  # fmt: skip
ModelToUse = Annotated[str | None, typer.Option("--model", help=(
    "A run folder, a Hugging Face folder of an encoder-decoder or a causal language model, a .gguf file, "
    "hub:owner/name (hub: may be omitted unless a folder has that name), or the address of an "
    "OpenAI-compatible endpoint: http://HOST:PORT/v1#MODEL. If omitted: default, the small model included "
    "with precis."
))]  # fmt: skip
Words = Annotated[
    int | None, typer.Option("--words", help="Maximum number of words, in whole sentences if one fits.")
]
Sentences = Annotated[int | None, typer.Option("--sentences", help="Maximum number of sentences.")]
Tokens = Annotated[int | None, typer.Option("--tokens", help="Maximum number of model tokens.")]
MinWords = Annotated[
    int | None,
    typer.Option("--min-words", help="Approximate minimum number of words; also blocks repetitions."),
]
Short = Annotated[ShortDocuments, typer.Option("--short", help=(
    "What to do with a document that is no longer than its summary would be. keep: return the document "
    "unchanged. write: return the model's output."
))]  # fmt: skip
Beams = Annotated[
    int | None, typer.Option("--beams", help="Beam width; 1 is fastest. Default: the model's own.")
]
Draft = Annotated[bool, typer.Option("--draft", help=(
    "Speculative decoding with the model's own predicting streams (ProphetNet, Z-Code++ with future_tokens): the "
    "same text as --beams 1 in fewer passes. Documents are read one at a time."
))]  # fmt: skip
MaxSource = Annotated[
    int | None,
    typer.Option("--max-source", help="Maximum input tokens of the model. Default: the model's own."),
]
Instruction = Annotated[
    str | None, typer.Option("--instruction", help="Text before each document. Default: the model's own.")
]
Language = Annotated[str | None, typer.Option("--language", help=(
    "Language of the summary, such as en or de. Default: the document's own."
))]  # fmt: skip
Free = Annotated[bool, typer.Option("--free/--strict", help=(
    "--free keeps sentences that the document does not support; --strict replaces them with quotations."
))]  # fmt: skip
AllowRemote = Annotated[
    bool, typer.Option("--allow-remote", help="Send documents to an endpoint on another machine, over https.")
]
Support = Annotated[bool, typer.Option("--support", help=(
    "Show the source sentences of each summary sentence, and mark names, numbers and negations that the "
    "document seems to lack. Marks are hints."
))]  # fmt: skip
JsonLines = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per document, with the number of tokens read.")
]
Out = Annotated[Path | None, typer.Option("--out", help=(
    "Write to this file: JSON lines if its name ends in .jsonl, else text. To resume an interrupted command, "
    "repeat it."
))]  # fmt: skip
KeepGoing = Annotated[bool, typer.Option("--keep-going", help=(
    "Continue if a document cannot be summarized; the exit code is then 1."
))]  # fmt: skip
Recursive = Annotated[bool, typer.Option("--recursive", "-r", help="Read subfolders too.")]
WholeTables = Annotated[bool, typer.Option("--whole-tables", help=(
    "Read each .csv and .tsv file as one document, not one per row. On by default if no column contains "
    "sentences, and with precis summarize --about."
))]  # fmt: skip
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, max=4096, help="Documents per batch.")]
Device = Annotated[
    str | None, typer.Option("--device", help="cpu, cuda or cuda:1. Default: the GPU if there is one.")
]


@dataclass(frozen=True, kw_only=True)
class MakingOptions(OptionGroup):
    """The options for the model and its summaries that `summarize` and `batch` share."""

    model: ModelToUse = None
    adapter: Adapter = None
    mode: ModeOption = None
    type: TypeOption = FormName.paragraph
    about: About = None
    words: Words = None
    sentences: Sentences = None
    tokens: Tokens = None
    min_words: MinWords = None
    short: Short = ShortDocuments.keep
    beams: Beams = None
    long: LongOption = None
    max_source: MaxSource = None
    instruction: Instruction = None
    language: Language = None
    free: Free = False
    allow_remote: AllowRemote = False

    def check(self, device: str | None, *, draft: bool = False) -> Length:
        """Check what needs no library, and return the requested length.

        Raises:
            UserError: a length, the beam width, the device or the name of the model is invalid, or the model included
                with precis cannot use an option.
        """
        from precis.generation.model_location import locate
        from precis.generation.model_names import (
            refuse_missing,
            refuse_unknown_device,
            refuse_writing_options,
        )
        from precis_text.length import make_length

        length = make_length(
            words=self.words,
            sentences=self.sentences,
            tokens=self.tokens,
            min_words=self.min_words,
            short=self.short.value,
        )
        GenerationSettings(beams=1 if self.beams is None else self.beams)
        refuse_unknown_device(device)
        if self.model is not None:
            refuse_missing(self.model)
            if Path(self.model).expanduser().is_dir():
                use = locate(self.model, self.adapter).use
                use.mode_for(None if self.mode is None else self.mode.value)
        elif self.adapter is None and self.mode is None:
            refuse_writing_options(self._writing(draft=draft))
        return length

    def _writing(self, *, draft: bool) -> dict[str, Any]:
        """Return the options of a model that writes, as `SummaryJob.writing`."""
        return {
            "draft": draft, "instruction": self.instruction,
            "long": None if self.long is None else self.long.value,
            "beams": 1 if draft and self.beams is None else self.beams, "max_source": self.max_source,
            "language": self.language, "free": self.free, "allow_remote": self.allow_remote,
        }  # fmt: skip

    def summary_job(self, device: str | None, *, draft: bool = False) -> SummaryJob:
        """Return the job, without loading anything; raise `UserError` for a wrong length, question or beam width."""
        length = self.check(device, draft=draft)
        from precis.phases.use.summary_job import SummaryJob
        from precis_text.forms.form_choice import make_form

        form = make_form(type=self.type.value, about=self.about)
        model = model_to_use(self.model, self.adapter)
        return SummaryJob(
            model=model, adapter=self.adapter, device=device,
            mode=None if self.mode is None else ModeName(self.mode).value, length=length, form=form,
            writing=self._writing(draft=draft),
        )  # fmt: skip


@describe_command(
    "summarize",
    rich_help_panel="Use a model",
    epilog=examples(
        "precis summarize report.txt",
        "precis summarize report.txt --words 60 --model runs/first",
        "precis summarize meeting.vtt --type minutes",
        'precis summarize report.pdf --about "Who pays for the boats?"',
        "cat mail.txt | precis summarize --model runs/first --sentences 1",
        'precis summarize report.txt --model google-t5/t5-small --instruction "summarize:"',
        "precis summarize notes.jsonl --model facebook/bart-large-cnn --words 60 --out out.jsonl --keep-going",
        "Summaries go to standard output, and the number of tokens read goes to standard error.",
    ),
)
def summarize(
    *,
    files: Files = None,
    asked: MakingOptions,
    draft: Draft = False,
    support: Support = False,
    json_lines: JsonLines = False,
    out: Out = None,
    keep_going: KeepGoing = False,
    recursive: Recursive = False,
    batch_size: BatchSize = 8,
    device: Device = None,
    document_column: DocumentColumn = None,
    units_column: UnitsColumn = None,
    skip_bad: SkipBad = False,
    whole_tables: WholeTables = False,
    threads: Threads = None,
) -> None:
    """Summarize documents.

    Nothing is truncated silently: each summary comes with the number of tokens read.
    """
    sources = files or ["-"]
    if "-" in sources:
        refuse_terminal("name files to summarize, or pipe a document in: precis summarize FILE --model M")
    from precis.phases.use.input_documents import Reading, holds_many, read_documents, with_first
    from precis.phases.use.summaries_file import refuse_existing

    how = Reading(
        column=document_column, units=units_column, recursive=recursive, skip_bad=skip_bad,
        keep_going=keep_going, whole_tables=whole_tables, about=asked.about is not None,
    )  # fmt: skip
    asked.check(device, draft=draft)
    if out is not None:
        refuse_existing(out, sources)
    with ProgressLine() as opening:
        if _is_large(sources[0]):
            opening(f"opening {sources[0]}", 0, 0)
        documents = with_first(read_documents(sources, how, notify=opening.note), keep_going=keep_going)
    from precis.generation.model_metadata import DEFAULT
    from precis.phases.use.language_check import warn_of_other_languages
    from precis.phases.use.summarization import with_support
    from precis.phases.use.summary_format import describe_result, renderer

    job = asked.summary_job(device, draft=draft).locate_model()
    if not job.is_ranked:
        begin(threads)  # after reading: importing the libraries takes seconds
    if job.options.model == DEFAULT:
        documents = warn_of_other_languages(documents, job.model.use.languages, note)
    alone = len(sources) == 1 and not holds_many(sources[0], how)
    as_rows = json_lines or (out is not None and out.suffix == ".jsonl")
    file = None
    if out is not None:
        render = renderer(json_lines=as_rows, alone=alone)
        file = job.summaries_file(out, render=render, keep_going=keep_going, support=support)
    loaded = job.load(keep_going=keep_going, batch_size=batch_size)
    if loaded.limit_is_assumed:
        limit = f"{loaded.max_source:,} tokens at once"
        note(
            f"this model does not declare an input limit; precis assumes {limit} (change it with --max-source)"
        )
    screen = Screen(alone=alone, json_lines=json_lines, max_source=loaded.max_source)
    with ProgressLine() as progress, file or screen as sink:
        if sink.done:
            note(f"{out}: already contains {sink.done:,} summaries")
        callbacks: dict[str, Any] = {"on_progress": _progress_callback(progress, screen, sink)}
        if sink is screen and screen.streams and job.mode == "abstract":
            callbacks["on_partial"] = partial(_show_partial, screen, progress)
        results = loaded.results(sink.left(documents), **callbacks)
        for result in with_support(results) if support else results:
            progress.pause()
            sink.append(result)
            if out is not None and not as_rows:  # rows state it themselves
                note(describe_result(result, max_source=loaded.max_source))
        sink.finish()
    if out is not None:
        made = sink.done - sink.failed
        note(f"{out}: {made:,} {'summary' if made == 1 else 'summaries'}")
    _refuse_failures(sink)


def _is_large(source: str) -> bool:
    """Return whether a file may take seconds to open."""
    found = None if source == "-" else stat_or_none(Path(source))
    return found is not None and found.st_size > MIB


def _progress_callback(progress: ProgressLine, screen: Screen, sink: SummariesFile | Screen) -> OnProgress:
    """Show the progress until the first output on the screen; before it, the summaries that a file already has."""

    def on_progress(done: int, known: int, written: int) -> None:
        if not screen.begun:
            doing = f"writing, {written} tokens" if written else "reading"
            progress(f"{sink.done:,} summaries done, {doing}" if sink.done else doing, done, known)

    return on_progress


def _show_partial(screen: Screen, progress: ProgressLine, _: int, beginning: str) -> None:
    progress.pause()
    screen.begin(beginning)


def _refuse_failures(sink: SummariesFile | Screen) -> None:
    """Raise, for exit code 1, if a document could not be summarized."""
    if sink.failed:
        which = "the only document" if sink.done == 1 else f"{sink.failed:,} of {sink.done:,} documents"
        raise RunError(f"{which} could not be summarized (first: {sink.first_failure})")
