"""`precis data pack`: pack unlabelled text into a corpus for pre-training."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from precis.cli.framework.command_class import described
from precis.cli.framework.options import SkipBad, begin
from precis_text.errors import UserError

Sources = Annotated[
    list[str],
    typer.Argument(
        help=(
            "Text files, .jsonl, .csv (.gz, .xz too), .parquet, folders of these, or patterns; hub:owner/name streams "
            "the training rows of a data set."
        ),
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Folder for the pack.", show_default=False)]
Tokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="Tokenizer to use. Default: train one on a sample of the texts."),
]
VocabSize = Annotated[
    int | None,
    typer.Option("--vocab-size", min=400, help="Vocabulary size of a new tokenizer. Default: 8000."),
]
DocumentColumn = Annotated[
    str,
    typer.Option(
        "--document-column",
        help="Column with the text. de+en: two columns that translate each other, packed as one document.",
    ),
]
Rows = Annotated[
    int | None, typer.Option("--rows", min=1, help="Maximum rows of each hub:owner/name. Default: all.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="Number of processes. Default: one per core, fewer for little text."
    ),
]
DevShare = Annotated[
    float, typer.Option("--dev-share", min=0, max=0.5, help="Share of the documents held out for validation.")
]
Restart = Annotated[bool, typer.Option("--restart", help="Replace an existing pack.")]


@described(
    "pack",
    epilog=(
        "Examples:\n\n"
        "precis data pack books/ --out packs/books\n\n"
        "precis data pack news.jsonl --document-column body --tokenizer packs/books/tokenizer --out packs/news\n\n"
        "precis data pack hub:allenai/c4:en --rows 1000000 --out packs/c4\n\n"
        "precis data pack captions.jsonl --document-column de+en --tokenizer tokenizers/both --out packs/de-en"
    ),
)
def pack(
    context: typer.Context,
    sources: Sources,
    out: Out,
    tokenizer: Tokenizer = None,
    vocab_size: VocabSize = None,
    document_column: DocumentColumn = "text",
    rows: Rows = None,
    workers: Workers = None,
    dev_share: DevShare = 0.01,
    skip_bad: SkipBad = False,
    restart: Restart = False,
) -> None:
    """Tokenize unlabelled text for precis pretrain. Each file or row is a document; duplicates are dropped."""
    if tokenizer is not None and vocab_size is not None:
        raise UserError(
            f"--vocab-size {vocab_size} is for a new tokenizer, but --tokenizer names one; omit one of them"
        )
    from precis.cli.framework.console import note
    from precis.data.packs.text_sources import text_sources

    text_sources(sources, rows=rows)
    begin()
    from precis.phases.data.corpus_packing import make_pack
    from precis_text.row import counted

    made = make_pack(
        sources, out, tokenizer=tokenizer, vocab_size=vocab_size or 8000, column=document_column, rows=rows,
        workers=workers, dev_share=dev_share, skip_bad=skip_bad, restart=restart, notify=note,
    )  # fmt: skip
    counts = made.counts
    if made.skipped:
        note(f"{counted(made.skipped_count, 'row')} skipped (first: {made.skipped[0]})")
    if not made.is_new:
        note(f"{out}: already contains these files, packed with these settings; nothing to do")
    print(f"documents: {counts.documents:,}, {counts.tokens:,} tokens")
    print(f"held out:  {counts.held_out:,}, {counts.held_out_tokens:,} tokens")
    print(
        f"dropped:   {counted(counts.duplicates, 'duplicate')}, {made.empty:,} empty, {made.skipped_count:,} bad"
    )
    print(f"speed:     {made.tokens_per_second:,.0f} tokens per second, {counted(made.workers, 'process')}")
    print(f"tokenizer: {made.folder / 'tokenizer'}, {made.entries:,} entries")
    if made.dev_blocks:
        print(f"next: precis pretrain --corpus {shlex.quote(str(made.folder))} --out runs/pretrain")
    elif made.share_to_validate is not None:
        print(f"next: {_again(context.params, made.share_to_validate)}")


def _again(options: Mapping[str, Any], share: float) -> str:
    """Return the command that packs the same texts again with another share held out."""
    values = {**options, "dev_share": f"{share:g}", "restart": True}
    words = ["precis", "data", "pack", *map(str, values.pop("sources"))]
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value not in (None, False):
            words += [option, str(value)]
    return shlex.join(words)
