"""The `precis` app with all its commands."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from precis.cli.commands import data_command, export_command, probe_command
from precis.cli.commands.batch_command import batch
from precis.cli.commands.compare_command import compare
from precis.cli.commands.convert_command import convert
from precis.cli.commands.errors_command import errors
from precis.cli.commands.evaluate_command import evaluate
from precis.cli.commands.extractor_command import extractor
from precis.cli.commands.finetune_command import finetune
from precis.cli.commands.ground_command import ground
from precis.cli.commands.pretrain_command import pretrain
from precis.cli.commands.push_command import push
from precis.cli.commands.serve_command import serve
from precis.cli.commands.summarize_command import summarize
from precis.cli.commands.tokenizer_command import tokenizer
from precis.cli.commands.tune_command import tune
from precis.cli.framework.command_class import Commands
from precis.cli.framework.plugins import add_plugins
from precis.version import __version__

app = Commands(
    name="precis",
    help="Summarize documents on your own machine; train, adapt and evaluate the models that do it.",
    epilog=(
        "To summarize:  precis summarize report.txt   (with the included small model)"
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
    """Summarize documents on your own machine; train, adapt and evaluate the models that do it."""


app.add(summarize, batch, serve, compare, evaluate, finetune, tune, ground, pretrain, extractor, tokenizer)
app.add_typer(data_command.app, name="data", rich_help_panel="Data and experiments")
app.add_typer(probe_command.app, name="probe", rich_help_panel="Use a model")
app.add(convert, push, errors)
app.add_typer(export_command.app, name="export", rich_help_panel="Use a model")
add_plugins(app)


@cache
def parser() -> Any:
    """Build the parser of all commands once: building takes longer than parsing."""
    return get_command(app)
