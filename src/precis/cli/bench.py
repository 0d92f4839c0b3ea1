"""`precis bench`, which moved: the source repository now contains the comparisons with other libraries."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from precis.cli.commands import described
from precis.cli.console import note
from precis.errors import UserError

_REPOSITORY = Path(__file__).resolve().parents[3]
_NOW = "python -m benchmarks.compare"


@described(
    "bench",
    hidden=True,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def bench(context: typer.Context) -> None:
    """Run `python -m benchmarks.compare`, the new name, in the source repository (`make bench`)."""
    if not (_REPOSITORY / "benchmarks" / "compare").is_dir():
        raise UserError(f"precis bench is now {_NOW}, in a clone of the source repository")
    note(f"precis bench is now {_NOW} (or: make bench); this spelling works for one more version")
    sys.path.insert(0, str(_REPOSITORY))
    from benchmarks.compare.__main__ import app  # type: ignore[import-not-found, unused-ignore]

    app(context.args, prog_name="precis bench", standalone_mode=False)
