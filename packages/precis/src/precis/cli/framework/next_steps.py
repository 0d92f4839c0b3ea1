"""The pairs of a command's options, repeated in the commands that it prints."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import typer

_TEST_FILE = "TEST_FILE"  # for the user to fill in


@dataclass(frozen=True, kw_only=True)
class NamedPairs:
    """The options for the place and format of pairs; each field is the option of that name."""

    task: str | None = None
    data: str | None = None
    document_column: str | None = None
    summary_column: str | None = None
    units_column: str | None = None
    skip_bad: bool = False

    @classmethod
    def of(cls, context: typer.Context) -> Self:
        """Read them from a command with these options."""
        return cls(
            **{
                field.name: context.params[field.name]
                for field in fields(cls)
                if field.name in context.params
            }
        )

    @property
    def typed(self) -> str:
        """The options, as words of a command line."""
        return self._with_data(self.data)

    def to_test(self, source: str) -> str:
        """Return options of `precis evaluate`: the test split if the source has one, else a placeholder for a file.

        Args:
            source: the source of the pairs, as in `precis.phases.data.run_pairs.Part`.

        Raises:
            UserError: the hub does not return its splits.
        """
        from precis.phases.data.run_pairs import splits_of

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
    """Return the commands that score and use a trained model.

    Args:
        run: the run folder, which names the model.
        test_pairs: see `NamedPairs.to_test`.
        units_column: the column of units that the model needs in addition to its documents.
        writes: whether the model can summarize.
    """
    name, scores = (shlex.quote(str(place)) for place in (run, run / "evaluation"))
    units = "" if units_column is None else f" --units-column {shlex.quote(units_column)}"
    return [
        f"precis evaluate --model {name} {test_pairs} --out {scores}",
        *([f"precis summarize FILE --model {name}{units}"] if writes else []),
    ]
