"""`precis convert`, `precis export`, `precis push`: model folders from elsewhere, for other runtimes, on the hub."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.framework.command_class import Commands, describe_command, examples
from precis.cli.framework.console import note
from precis.cli.framework.options import begin
from precis.phases.output_folders import existing_file, existing_folder


@describe_command(
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
        "Layers of the new decoder for a DeBERTa. Default: as many as its encoder has."
    ))] = None,
) -> None:  # fmt: skip
    """Convert a released ProphetNet or a DeBERTa into a model folder with safetensors; the weights do not change.

    A DeBERTa becomes the encoder of a Z-Code++ whose decoder is new: fine-tune it before you use it.

    Opening a .pt file does not run any code in it.
    """
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


Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A run folder, or the model or adapter in it.")
]
Name = Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Repository on the hub; created if missing.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List the files, without using the network.")]
Public = Annotated[bool, typer.Option("--public", help="Make a new repository public. Default: private.")]


@describe_command(
    "push",
    rich_help_panel="Use a model",
    epilog=examples(
        "precis push runs/first ann/first --dry-run",
        "precis push runs/first ann/first --public",
        "Log in first: hf auth login",
    ),
)
def push(folder: Folder, name: Name, dry_run: DryRun = False, public: Public = False) -> None:
    """Upload a trained model or adapter, with its card, to the Hugging Face hub."""
    existing_folder(folder)
    begin()
    from precis.phases.use.model_push import plan_push
    from precis.phases.use.model_push import push as run_push

    plan = plan_push(folder, name)
    for remark in plan.remarks:
        note(remark)
    if dry_run:
        for file, size in plan.files:
            print(f"{size:>15,}  {file}")
        print(f"would go to {plan.address}, licence: {plan.licence or 'not stated'}")
        return
    print(f"uploaded: {run_push(plan, public=public)}")


export = Commands(help="Export a model for another runtime.", no_args_is_help=True)


@export.command(
    "onnx",
    epilog=examples(
        "precis export onnx --out onnx/small",
        "precis export onnx runs/mine --out onnx/mine",
        "precis export onnx runs/mine --out onnx/int8 --int8",
    ),
)
def onnx(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help=(
        "Run folder, Hugging Face folder or hub name. Default: default, the model included with precis."
    ))] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Store matrices in 8 bits: a third to half the size.")
    ] = False,
) -> None:  # fmt: skip
    """Write ONNX files that onnxruntime runs without torch.

    The package precis-onnx summarizes with them. Tools that know Optimum's file names can run them too.
    """
    begin()
    from precis.generation.model_metadata import DEFAULT
    from precis.phases.use.onnx_export import export_onnx

    done = export_onnx(DEFAULT if model is None else model, out, int8=int8)
    for name, size in done.files.items():
        print(f"{out / name}: {size / 1e6:,.1f} MB")
    print(f"next:  precis-onnx {shlex.quote(str(out))} FILE")
