"""`precis tokenizer`: train a tokenizer on one's own texts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.options import Data, DocumentColumn, SkipBad, SummaryColumn, TaskName


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "tokenizer",
        rich_help_panel="Train a model",
        epilog="Example:  precis tokenizer --data pairs --vocab-size 8000 --out tokenizers/mine",
    )(tokenizer)


def tokenizer(
    out: Annotated[Path, typer.Option("--out", help="Folder to write the tokenizer to.", show_default=False)],
    task: TaskName = None,
    data: Data = None,
    vocab_size: Annotated[
        int,
        typer.Option("--vocab-size", min=400, help="Entries in all, control tokens and sentinels included."),
    ] = 8000,
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    skip_bad: SkipBad = False,
) -> None:
    """Train a tokenizer on the documents and summaries of a training set.

    `precis finetune` does this by itself; train one apart to share it between runs. Any text can be written
    in it: what its pieces do not cover is spelt in bytes.
    """
    from precis.cli.console import note
    from precis.phases.sources import ColumnNames, find_sources
    from precis.phases.trainable import make_tokenizer

    columns = ColumnNames(document=document_column, summary=summary_column)
    sources = find_sources(task_name=task, data=data, columns=columns, skip_bad=skip_bad)
    made = make_tokenizer(out, sources, vocab_size=vocab_size, tell=note)
    print(f"tokenizer of {made.entries:,} entries: {out}")
    print(f"one word takes {made.tokens_per_word:.2f} tokens on average in the texts it was trained on")
    print(f"next: precis finetune --tokenizer {shlex.quote(str(out))} ...")
