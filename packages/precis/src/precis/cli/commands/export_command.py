"""`precis export`: write a model for another runtime."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.framework.command_class import Commands, examples
from precis.cli.framework.options import begin

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
