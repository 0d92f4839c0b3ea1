"""The pairs of a command's options, repeated in the commands that it prints."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from precis.phases.data.run_pairs import NamedPairs


def named_pairs_of(context: typer.Context) -> NamedPairs:
    """Return the pairs that the options of a command name."""
    from precis.phases.data.run_pairs import NamedPairs

    names = [field.name for field in fields(NamedPairs)]
    return NamedPairs(**{name: context.params[name] for name in names if name in context.params})


def next_commands(
    run: Path, *, test_pairs: str, units_column: str | None = None, writes: bool = True
) -> list[str]:
    """Return the commands that score and use a trained model.

    Args:
        run: the run folder, which names the model.
        test_pairs: see `precis.phases.data.run_pairs.NamedPairs.to_test`.
        units_column: the column of units that the model needs in addition to its documents.
        writes: whether the model can summarize.
    """
    name, scores = (shlex.quote(str(place)) for place in (run, run / "evaluation"))
    units = "" if units_column is None else f" --units-column {shlex.quote(units_column)}"
    return [
        f"precis evaluate --model {name} {test_pairs} --out {scores}",
        *([f"precis summarize FILE --model {name}{units}"] if writes else []),
    ]
