"""`precis convert`: a released ProphetNet to a model folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.commands import described
from precis.cli.options import begin


@described(
    "convert",
    rich_help_panel="Data and experiments",
    epilog=(
        "Examples:\n\n"
        "precis convert cnndm.pt --tokenizer bert-base-uncased --out models/cnndm\n\n"
        "precis convert FOLDER --out models/prophetnet"
    ),
)
def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="fairseq's ProphetNet (.pt, .safetensors), or a folder of transformers' ProphetNet.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write the model to.", show_default=False)],
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            help=(
                "Its tokenizer (folder or hub name; BERT's uncased one for the English models); "
                "default: what lies in the folder, else none."
            ),
        ),
    ] = None,
) -> None:
    """Convert a released ProphetNet to a model folder with safetensors; no number changes.

    A .pt is opened without running any code in it.
    """
    from precis.cli.console import note

    begin()
    from precis.phases.convert import convert as run_convert

    done = run_convert(source, out, tokenizer=tokenizer)
    print(f"model: {out}, {done.parameters / 1e6:,.1f} M parameters, {done.streams} predicting streams")
    if done.has_tokenizer:
        print(f"next:  precis summarize FILE --model {shlex.quote(str(out))}")
    else:
        if done.tokenizer_problem is not None:
            note(f"the tokenizer is left out: {done.tokenizer_problem}")
        note(
            f"{out}: has no tokenizer, which every other command needs; convert again with --tokenizer FOLDER "
            "(BERT's uncased one for the English models)"
        )
