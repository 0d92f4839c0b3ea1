"""Options that several commands share, each described once."""

from __future__ import annotations

from typing import Annotated

import typer

TaskName = Annotated[
    str | None,
    typer.Option("--task", help="A task of the table (see: precis data list), with its columns and lengths."),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        help=(
            "Pairs: a .jsonl, .csv or .parquet file (.gz, .xz too), a folder with train/dev/test files, or "
            "hub:owner/name. With --task: the folder that holds the task's files."
        ),
    ),
]
Dev = Annotated[
    str | None, typer.Option("--dev", help="A file of pairs to validate on, if --data has no dev split.")
]
DocumentColumn = Annotated[
    str | None, typer.Option("--document-column", help="Column that holds the document.")
]
SummaryColumn = Annotated[str | None, typer.Option("--summary-column", help="Column that holds the summary.")]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Pass over rows that cannot be used; they are counted and named.")
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="A run folder of precis finetune, a Hugging Face encoder-decoder folder, or a hub name.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="CPU threads; default: as many as the machine has cores."),
]


def use_threads(count: int | None) -> None:
    """Limit torch to `count` threads, if given."""
    if count is not None:
        import torch

        torch.set_num_threads(count)
