"""`precis compare`: several models on your own documents."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.commands.summarize_command import AllowRemote, Free, Recursive, Sentences, WholeTables, Words
from precis.cli.framework.command_class import describe_command, examples
from precis.cli.framework.console import ProgressLine, show
from precis.cli.framework.options import DocumentColumn, SkipBad, SummaryColumn, Threads, begin
from precis.phases.output_folders import folder_to_be

Files = Annotated[list[str], typer.Argument(metavar="DOCS", help=(
    "Files, folders, or files with one document per row, as precis summarize reads them."
))]  # fmt: skip
Models = Annotated[list[str], typer.Option("--model", help=(
    "default (included), writer (optional), a run folder, a Hugging Face folder, a .gguf file, a hub name, or an "
    "endpoint: http://HOST:PORT/v1#MODEL. Repeatable: each one is compared with the first."
))]  # fmt: skip
Out = Annotated[Path, typer.Option("--out", help="Folder for summaries and reports.", callback=folder_to_be)]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Number of documents, from the start. Default: all.")
]


@describe_command(
    "compare",
    rich_help_panel="Use a model",
    epilog=examples(
        "precis compare letters --model default --model writer --words 60 --out compared",
        "precis compare notes.jsonl --model runs/first --model http://127.0.0.1:11434/v1#qwen3:4b --out compared",
        "To resume an interrupted comparison, repeat the command.",
    ),
)
def compare(
    files: Files,
    model: Models,
    out: Out,
    words: Words = None,
    sentences: Sentences = None,
    limit: Limit = None,
    free: Free = False,
    allow_remote: AllowRemote = False,
    recursive: Recursive = False,
    whole_tables: WholeTables = False,
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    skip_bad: SkipBad = False,
    threads: Threads = None,
) -> None:
    """Compare models on your own documents: speed, memory, lengths, unsupported words, and agreement.

    Each model runs in its own process and summarizes one document at a time. Rows with a summary column are also
    scored with ROUGE. OUT/report.html shows the figures, and each document next to its summaries; it needs no network.
    """
    from precis.generation.model_names import refuse_missing
    from precis.phases.use.input_documents import Reading, read_documents
    from precis_text.cores import default_threads
    from precis_text.length import make_length

    length = make_length(words=words, sentences=sentences)
    for name in model:
        refuse_missing(name)
    reading = Reading(
        column=document_column, recursive=recursive, skip_bad=skip_bad, whole_tables=whole_tables
    )
    read_documents(files, reading)  # refuses a missing file
    begin(threads)
    from precis.phases.measure.model_comparison import ComparisonOptions
    from precis.phases.measure.model_comparison import compare as compare_all

    used = default_threads() if threads is None else threads
    options = ComparisonOptions(
        length=length, free=free, allow_remote=allow_remote, reading=reading, summary_column=summary_column,
        limit=limit, threads=used, set_up=partial(begin, used),
    )  # fmt: skip
    with ProgressLine() as progress:
        found = compare_all(model, files, options, out=out, notify=progress.note, progress=progress)
    for table in found.tables():
        show(table)
    print(f"written: {out}/report.html, {out}/table.md, {out}/comparison.json")
    print(f"next:    precis judge new --predictions {out} --out STUDY   (people compare the summaries blind)")
