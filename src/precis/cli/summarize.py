"""Placeholder until the command is written."""

import typer


def add_to(app: typer.Typer) -> None:
    """Nothing yet."""
