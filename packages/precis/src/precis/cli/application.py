"""The `precis` app with all its commands."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.main import get_command

from precis.cli.commands import data_command, probe_command
from precis.cli.commands.batch_command import batch
from precis.cli.commands.compare_command import compare
from precis.cli.commands.errors_command import errors
from precis.cli.commands.evaluate_command import evaluate
from precis.cli.commands.finetune_command import finetune
from precis.cli.commands.mixture_commands import extractor, ground
from precis.cli.commands.model_commands import convert, export, push
from precis.cli.commands.pretrain_command import pretrain
from precis.cli.commands.serve_command import serve
from precis.cli.commands.summarize_command import summarize
from precis.cli.commands.tokenizer_command import tokenizer
from precis.cli.commands.tune_command import tune
from precis.cli.framework.command_class import Commands
from precis.version import __version__
from precis_text.errors import UserError

# Our own distributions, so that their commands can say what to install where they are missing
_OURS = {"judge": "precis-judge", "reproduce": "precis-experiments"}

app = Commands(
    name="precis",
    help="Summarize documents on your own machine; train, adapt and evaluate the models that do it.",
    epilog=(
        "To summarize:  precis summarize report.txt   (with the included small model)\n\n"
        "To train a model:  precis data synthetic --out pairs   then   "
        "precis finetune --data pairs --recipe zcodepp-micro --out runs/first\n\n"
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


def _add_plugins(app: Commands) -> None:
    """Add the commands of other distributions, the entry points of the group `precis.commands`.

    A `typer.Typer` becomes a group of commands, a function with `describe_command` one command.
    """
    found = {point.name: point for point in entry_points(group="precis.commands")}
    for name, point in sorted(found.items()):
        command = point.load()
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=command.rich_help_panel)
        else:
            app.add(command)
    for name, distribution in _OURS.items():
        if name not in found:
            _add_missing(app, name, distribution)


def _add_missing(app: Commands, name: str, distribution: str) -> None:
    """Add a hidden command that names the distribution to install."""

    @app.command(
        name, hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
    )
    def missing(context: typer.Context) -> None:
        del context
        raise UserError(
            f"precis {name} is part of {distribution}, which is not installed; install {distribution}"
        )


app.add(summarize, batch, serve, compare, evaluate, finetune, tune, ground, pretrain, extractor, tokenizer)
app.add_typer(data_command.app, name="data", rich_help_panel="Data and experiments")
app.add_typer(probe_command.app, name="probe", rich_help_panel="Use a model")
app.add(convert, push, errors)
app.add_typer(export, name="export", rich_help_panel="Use a model")
_add_plugins(app)


@cache
def parser() -> Any:
    """Build the parser of all commands once: building takes longer than parsing."""
    return get_command(app)
