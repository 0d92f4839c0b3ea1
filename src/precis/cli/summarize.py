"""`precis summarize`: documents in, summaries out."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from precis.cli.options import Adapter, DocumentColumn, Model, SkipBad, Threads, UnitsColumn, use_threads


class LongDocuments(StrEnum):
    """`precis.generation.reading.Long` as a choice on the command line."""

    fie = "fie"
    chunk = "chunk"
    truncate = "truncate"


class ShortDocuments(StrEnum):
    """`precis.generation.length.Short` as a choice on the command line."""

    keep = "keep"
    write = "write"


LongOption = Annotated[
    LongDocuments | None,
    typer.Option(
        "--long",
        help=(
            "What to do with a document longer than the model reads at once. fie: read all of it by "
            "fusion-in-encoder (Z-Code++ only). chunk: summarize pieces, then their summaries. truncate: "
            "read the beginning only. Default: fie where the model can (up to 32,768 tokens), else chunk."
        ),
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "summarize",
        epilog=(
            "Examples:\n\n"
            "precis summarize report.txt --model runs/first\n\n"
            "cat mail.txt | precis summarize --model runs/first --sentences 1\n\n"
            'precis summarize report.txt --model google-t5/t5-small --instruction "summarize:"\n\n'
            "precis summarize notes.jsonl --model facebook/bart-large-cnn --words 60 --json > out.jsonl\n\n"
            "Summaries go to standard output; how much of each document was read goes to standard error."
        ),
    )(summarize)


def summarize(
    model: Model,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help=(
                "Text files, folders of .txt files, or .jsonl, .csv, .parquet files with a document in each "
                "row; - or nothing: the standard input."
            ),
            show_default=False,
        ),
    ] = None,
    adapter: Adapter = None,
    words: Annotated[
        int | None, typer.Option("--words", help="At most this many words, in whole sentences if one fits.")
    ] = None,
    sentences: Annotated[int | None, typer.Option("--sentences", help="At most this many sentences.")] = None,
    tokens: Annotated[
        int | None, typer.Option("--tokens", help="At most this many of the model's tokens.")
    ] = None,
    min_words: Annotated[
        int | None,
        typer.Option("--min-words", help="At least about this many words; repeats are then blocked."),
    ] = None,
    short: Annotated[
        ShortDocuments,
        typer.Option(
            "--short",
            help=(
                "What to do with a document no longer than its summary. keep: give it back as it is. write: give what "
                "the model writes."
            ),
        ),
    ] = ShortDocuments.keep,
    beams: Annotated[
        int | None,
        typer.Option("--beams", help="Width of the search; 1 is fastest. Default: the model's own."),
    ] = None,
    draft: Annotated[
        bool,
        typer.Option(
            "--draft",
            help=(
                "Let the model's own predicting streams draft (ProphetNet, or a Z-Code++ with future_tokens): the text "
                "of a search with one beam, document by document, in fewer passes."
            ),
        ),
    ] = False,
    long: LongOption = None,
    max_source: Annotated[
        int | None,
        typer.Option("--max-source", help="Tokens that the model reads at once; default: the model's own."),
    ] = None,
    instruction: Annotated[
        str | None, typer.Option("--instruction", help="Put before each document; default: the model's own.")
    ] = None,
    json_lines: Annotated[
        bool, typer.Option("--json", help="One JSON object a document, with what was read.")
    ] = False,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, max=4096, help="Documents at a time.")
    ] = 8,
    document_column: DocumentColumn = None,
    units_column: UnitsColumn = None,
    skip_bad: SkipBad = False,
    threads: Threads = None,
) -> None:
    """Summarize documents.

    Nothing is cut silently: each summary comes with the number of tokens that were read.
    """
    from precis.cli.console import ProgressLine, note, refuse_terminal, writes_unicode
    from precis.cli.quiet import quieten_transformers

    sources = files or ["-"]
    if "-" in sources:
        refuse_terminal("name files to summarize, or pipe a document in: precis summarize FILE --model M")
    quieten_transformers()
    use_threads(threads)
    from precis.data.tasks import GenerationSettings
    from precis.generation.length import make_length
    from precis.generation.loops import AUTOMATIC, Drafting
    from precis.generation.summarizer import Summarizer
    from precis.recipes.summarize import holds_many, read_documents, summarize_documents, told

    # what cannot be is refused before anything is loaded
    make_length(words=words, sentences=sentences, tokens=tokens, min_words=min_words)
    GenerationSettings(beams=1 if beams is None else beams)
    documents = read_documents(
        sources, column=document_column, units=units_column, skip_bad=skip_bad, tell=note
    )
    loop = Drafting() if draft else AUTOMATIC
    summarizer = Summarizer.from_pretrained(model, adapter=adapter, loop=loop, max_source=max_source)
    if summarizer.limit_is_assumed:
        note(
            f"this model declares no limit: it is given {summarizer.max_source:,} tokens at once; "
            "--max-source changes that"
        )
    alone = len(sources) == 1 and not holds_many(sources[0])
    with ProgressLine() as progress:
        results = summarize_documents(
            summarizer,
            documents,
            words=words,
            sentences=sentences,
            tokens=tokens,
            min_words=min_words,
            short=short.value,
            beams=1 if draft and beams is None else beams,
            instruction=instruction,
            batch_size=batch_size,
            long=long.value if long is not None else None,
            watch=lambda done, known, written: progress(
                f"writing, {written} tokens" if written else "reading", done, known
            ),
        )
        for result in results:
            progress.pause()
            if json_lines:
                print(json.dumps(result.to_dict(), ensure_ascii=not writes_unicode()), flush=True)
                continue
            note(told(result, max_source=summarizer.max_source))
            text = result.summary.text if result.summary is not None else f"(no summary: {result.problem})"
            print(text if alone else f"{result.document.name}\n{text}\n", flush=True)
