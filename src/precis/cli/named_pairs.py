"""The pairs that a command's options name, as they are typed again in the commands that it prints."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import typer

_TEST_FILE = "TEST_FILE"  # for the user to fill in


@dataclass(frozen=True, kw_only=True)
class NamedPairs:
    """Where pairs are and how they are read; each field is the option of that name."""

    task: str | None = None
    data: str | None = None
    document_column: str | None = None
    summary_column: str | None = None
    units_column: str | None = None
    skip_bad: bool = False

    @classmethod
    def of(cls, context: typer.Context) -> Self:
        """Those of a command that has these options."""
        return cls(
            **{
                field.name: context.params[field.name]
                for field in fields(cls)
                if field.name in context.params
            }
        )

    @property
    def typed(self) -> str:
        """The options."""
        return self._with_data(self.data)

    def to_test(self, source: str) -> str:
        """Options of `precis evaluate`: the test split where the source has one, else a file of the user's.

        Args:
            source: what the pairs are read from, as of `precis.phases.sources.Part`.

        Raises:
            UserError: the hub cannot be asked for its splits.
        """
        from precis.phases.sources import splits_of

        if "test" in (splits_of(source) or ()):
            return f"{self.typed} --split test"
        return self._with_data(_TEST_FILE)

    def _with_data(self, data: str | None) -> str:
        values = {
            "--task": self.task,
            "--data": data,
            "--document-column": self.document_column,
            "--summary-column": self.summary_column,
            "--units-column": self.units_column,
        }
        words = [f"{option} {shlex.quote(value)}" for option, value in values.items() if value is not None]
        return " ".join([*words, *(["--skip-bad"] if self.skip_bad else [])])


def next_commands(
    run: Path, *, test_pairs: str, units_column: str | None = None, writes: bool = True
) -> list[str]:
    """The commands that score and use what a training has made.

    Args:
        run: the run folder, which stands for the model.
        test_pairs: see `NamedPairs.to_test`.
        units_column: the column of units that the model needs beside its documents.
        writes: whether it can summarize.
    """
    name, scores = (shlex.quote(str(place)) for place in (run, run / "evaluation"))
    units = "" if units_column is None else f" --units-column {shlex.quote(units_column)}"
    return [
        f"precis evaluate --model {name} {test_pairs} --out {scores}",
        *([f"precis summarize FILE --model {name}{units}"] if writes else []),
    ]
