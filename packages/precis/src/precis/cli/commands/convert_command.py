"""`precis convert`: a ProphetNet or a DeBERTa from elsewhere becomes a model folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.framework.command_class import described, examples
from precis.cli.framework.options import begin


@described(
    "convert",
    rich_help_panel="Data and experiments",
    epilog=examples(
        "precis convert cnndm.pt --tokenizer bert-base-uncased --out models/cnndm",
        "precis convert FOLDER --out models/prophetnet",
        "precis convert deberta-v3-base/ --decoder-layers 6 --out models/deberta",
    ),
)
def convert(
    source: Annotated[Path, typer.Argument(metavar="FILE", help=(
        "A ProphetNet checkpoint of fairseq (.pt, .safetensors), or a folder of transformers' ProphetNet or "
        "DeBERTa-v2/v3."
    ))],
    out: Annotated[Path, typer.Option("--out", help="Folder to write the model to.")],
    tokenizer: Annotated[str | None, typer.Option("--tokenizer", help=(
        "The model's tokenizer: a folder or hub name (bert-base-uncased for the English models). Default: "
        "the one in the folder, else none."
    ))] = None,
    decoder_layers: Annotated[int | None, typer.Option("--decoder-layers", metavar="N", help=(
        "Layers of the new decoder for a DeBERTa. Default: as many as its encoder."
    ))] = None,
) -> None:  # fmt: skip
    """Convert a released ProphetNet or a DeBERTa to a model folder with safetensors; the weights do not change.

    A DeBERTa becomes the encoder of a Z-Code++ whose decoder is new: fine-tune it before you use it.

    Opening a .pt file does not run any code in it.
    """
    from precis.cli.framework.console import note
    from precis.phases.output_folders import existing_file

    existing_file(source)
    begin()
    from precis.phases.use.model_conversion import convert as run_convert

    done = run_convert(source, out, tokenizer=tokenizer, decoder_layers=decoder_layers)
    kind = "DeBERTa's encoder and a new decoder"
    kind = kind if done.streams is None else f"{done.streams} predicting streams"
    print(f"model: {out}, {done.parameters / 1e6:,.1f} M parameters, {kind}")
    if done.has_tokenizer:
        model = f"--model {shlex.quote(str(out))}"
        trains = f"precis finetune {model} --data PAIRS --out RUN"
        print(f"next:  {trains if done.streams is None else f'precis summarize FILE {model}'}")
    else:
        if done.tokenizer_problem is not None:
            note(f"the tokenizer is left out: {done.tokenizer_problem}")
        note(
            f"{out}: lacks a tokenizer, which every other command needs; convert again with --tokenizer FOLDER "
            "(bert-base-uncased for the English models)"
        )
