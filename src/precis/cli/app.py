"""The `precis` app with all its commands."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from precis.cli import data, export, judge, probe
from precis.cli.batch import batch
from precis.cli.bench import bench
from precis.cli.commands import Commands
from precis.cli.convert import convert
from precis.cli.evaluate import evaluate
from precis.cli.extractor import extractor
from precis.cli.finetune import finetune
from precis.cli.ground import ground
from precis.cli.pretrain import pretrain
from precis.cli.reproduce import reproduce
from precis.cli.serve import serve
from precis.cli.summarize import summarize
from precis.cli.tokenizer import tokenizer
from precis.cli.tune import tune
from precis.version import __version__

app = Commands(
    name="precis",
    help="Train, evaluate and run abstractive summarizers on your own machine.",
    epilog=(
        "To summarize:  precis summarize report.txt   (with the small model that is included)"
        "\n\n"
        "To train a model:  precis data synthetic --out pairs   then   "
        "precis finetune --data pairs --recipe zcodepp-micro --out runs/first"
        "\n\n"
        "Exit codes: 0 done; 1 the run failed; 2 bad input (the error line says how to fix it); "
        "130 interrupted (Ctrl-C)."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"precis {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks and library warnings (allowed anywhere).")
    ] = False,
) -> None:
    """Train, evaluate and run abstractive summarizers on your own machine."""


app.add(summarize, batch, serve, evaluate, finetune, tune, ground, pretrain, extractor, tokenizer)
app.add_typer(data.app, name="data", rich_help_panel="Data and experiments")
app.add_typer(probe.app, name="probe", rich_help_panel="Use a model")
app.add_typer(judge.app, name="judge", rich_help_panel="Use a model")
app.add(convert)
app.add_typer(export.app, name="export", rich_help_panel="Use a model")
app.add(reproduce, bench)


@cache
def parser() -> Any:
    """Build the parser of all commands once: building takes longer than parsing."""
    return get_command(app)
