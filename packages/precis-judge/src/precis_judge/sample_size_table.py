"""A plan as a table."""

from __future__ import annotations

from collections.abc import Sequence

from precis_judge.sample_size import Preference, needed, power_of
from precis_judge.tables import Table


def plan_table(wanted: Preference, judges: Sequence[int], documents: int | None) -> Table:
    """Return the documents that each number of judges needs, or the power of each with `documents` documents."""
    share = f"{wanted.share:.0%} of verdicts without ties for the better system, {wanted.ties:.0%} ties"
    rows: list[tuple[str, ...]]
    header: tuple[str, ...]
    if documents is not None:
        rows = [(f"{n}", f"{documents * n:,}", f"{power_of(documents, n, wanted):.0%}") for n in judges]
        header = ("judges", "pages in all", "power")
        title = f"Power with {documents:,} documents: {share}"
    else:
        needs = [needed(wanted, n) for n in judges]
        rows = [
            (
                f"{need.judges}",
                "more than 10,000" if need.documents is None else f"{need.documents:,}",
                "-" if need.verdicts is None else f"{need.verdicts:,}",
                f"{need.power:.0%}",
            )
            for need in needs
        ]
        header = ("judges", "documents", "pages in all", "power")
        title = f"To detect {share}"
    reading = (
        f"p <= {wanted.significance} in an exact test over documents. Every judge sees every document. Log-odds to win "
        f"spread by {wanted.document_spread} over documents and {wanted.judge_spread} over judges. More documents help "
        "more than more judges. Repeated and gold pages are extra."
    )
    return Table(title=title, reading=reading, header=header, rows=tuple(rows))
