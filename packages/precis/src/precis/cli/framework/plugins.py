"""Commands of other distributions, found by the entry points of the group `precis.commands`."""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from precis.cli.framework.command_class import Commands
from precis_text.errors import UserError

__all__ = ["GROUP", "add_plugins"]

GROUP = "precis.commands"
# Our own distributions, so that their commands can say what to install where they are missing
_OURS = {"judge": "precis-judge", "reproduce": "precis-experiments"}


def add_plugins(app: Commands) -> None:
    """Add each command of the group: a `typer.Typer` as a group of commands, a `described` function as one command."""
    found = {point.name: point for point in entry_points(group=GROUP)}
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
