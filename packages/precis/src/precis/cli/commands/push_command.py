"""`precis push`: upload a model or adapter to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from precis.cli.framework.command_class import described, examples
from precis.cli.framework.options import begin

Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="A run folder, or the model or adapter in it."),
]
Name = Annotated[
    str,
    typer.Argument(metavar="OWNER/NAME", help="Repository on the hub; created if missing."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List the files, without using the network.")]
Public = Annotated[bool, typer.Option("--public", help="Make a new repository public. Default: private.")]


@described(
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
    from precis.cli.framework.console import note
    from precis.phases.output_folders import existing_folder

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
