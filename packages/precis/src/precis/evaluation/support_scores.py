"""Marks and other reference-free figures of several systems' summaries of the same documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from precis_text.control_characters import remove_marks
from precis_text.language import language_of
from precis_text.support.marks import KINDS, SourceText, Support

Column = NDArray[np.float64]
Judge = Callable[[Sequence[str], Sequence[str], Sequence[Sequence[str]]], Mapping[str, Column]]
"""A function from documents, summaries and references (n each) to named figures (n), NaN if undefined."""

MARK_COLUMNS = ("marked", *(f"{kind}s" for kind in KINDS), "other_language")


@dataclass(frozen=True, kw_only=True)
class FaithfulScores:
    """The marks and scores of one system.

    Attributes:
        supports: one for each summary.
        columns: (n) each. "names", "numbers", "negations": number of marks in a summary; "marked": 100 for one with a
            mark, else 0; "other_language": 100 for one not in its document's language, else 0; then judges' scores.
    """

    supports: Sequence[Support]
    columns: Mapping[str, Column]


def faithful_scores(
    systems: Mapping[str, Sequence[str]],
    documents: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    judges: Sequence[Judge] = (),
) -> dict[str, FaithfulScores]:
    """Compute the figures of each system, with n summaries of the same n documents."""
    read = [remove_marks(document) for document in documents]
    supports: dict[str, list[Support]] = {name: [] for name in systems}
    other: dict[str, list[float]] = {name: [] for name in systems}
    for row, document in enumerate(read):
        source = SourceText(document)
        for name, summaries in systems.items():
            supports[name].append(source.support(summaries[row]))
            spoken = language_of(summaries[row])
            other[name].append(100.0 * (None not in (spoken, source.language) and spoken != source.language))
    found = {}
    for name, summaries in systems.items():
        counts = {f"{kind}s": np.array([float(s.count(kind)) for s in supports[name]]) for kind in KINDS}
        marked: Column = 100.0 * np.any([*counts.values()], axis=0)
        columns: dict[str, Column] = {"marked": marked, **counts, "other_language": np.array(other[name])}
        for judge in judges:
            columns |= judge(read, summaries, references)
        found[name] = FaithfulScores(supports=supports[name], columns=columns)
    return found
