"""Measures how well each metric agrees with human scores of summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from precis.evaluation.agreement import Agreement, Judged, agreements
from precis.evaluation.rouge import Rouge
from precis.evaluation.significance import Bootstrap, Interval
from precis.evaluation.support_scores import MARK_COLUMNS, Judge, faithful_scores
from precis.evaluation.text_statistics import shape_statistics
from precis.phases.measure.human_scores import ScoredSummary
from precis.phases.output_folders import writing_to
from precis.storage.atomic import write_file, write_json
from precis.table import Table

Column = NDArray[np.float64]
_HEADINGS = ("metric", "n", "Spearman", "Kendall", "systems, Kendall")
_SHAPE = {"length": 1.0, "coverage": 1.0, "density": 1.0, "compression": 1.0, "repetition": -1.0}


@dataclass(frozen=True, kw_only=True)
class MetricTable:
    """The agreement of each metric with each human score, and a description of the data."""

    found: Mapping[str, Mapping[str, Agreement]]
    about: str

    def tables(self) -> list[Table]:
        """Return one table per human score."""
        return [
            Table(
                header=_HEADINGS,
                rows=[[metric, *_cells(one)] for metric, one in rows.items()],
                title=name,
                texts=("metric",),
            )
            for name, rows in self.found.items()
        ]

    def markdown(self) -> str:
        """Return the same tables as Markdown."""
        return "\n\n".join([*(table.markdown() for table in self.tables()), self.about]) + "\n"

    def write(self, out: Path) -> None:
        """Write metrics.json and metrics.md into a folder."""
        with writing_to(out, doing="writing into") as folder:
            found = {
                name: {metric: one.to_dict() for metric, one in rows.items()}
                for name, rows in self.found.items()
            }
            record = {"about": self.about, "agreement": found}
            write_file(folder / "metrics.md", self.markdown())
            write_json(folder / "metrics.json", record)


def judge_metrics(
    rows: Sequence[ScoredSummary], *, judges: Sequence[Judge] = (), bootstrap: Bootstrap | None = None
) -> MetricTable:
    """Compute every metric that the rows allow, and compare each with every human score.

    ROUGE needs references; copying, marks and judges need documents. Marks and repetition are negated, so that more is
    better; length, compression, coverage and density are unchanged.
    """
    bootstrap = bootstrap or Bootstrap()
    names = list(dict.fromkeys(name for row in rows for name in row.scores))
    human = {name: np.array([row.scores.get(name, np.nan) for row in rows]) for name in names}
    judged = Judged(documents=[row.id for row in rows], systems=[row.system for row in rows])
    documents, systems = len(set(judged.documents)), len(set(judged.systems))
    about = (
        f"{len(rows):,} summaries of {documents:,} documents by {systems} systems; intervals: {bootstrap.level:.0%} "
        f"percentile bootstrap over documents, {bootstrap.samples:,} samples, seed {bootstrap.seed}."
    )
    if not any(row.references for row in rows):
        about += " No references: no ROUGE."
    if not any(row.document for row in rows):
        about += " No documents: no marks, no copying, no likelihoods."
    return MetricTable(
        found=agreements(_metrics(rows, judges), human, judged, bootstrap=bootstrap), about=about
    )


def _metrics(rows: Sequence[ScoredSummary], judges: Sequence[Judge]) -> dict[str, Column]:
    """Return metric -> value of each row, NaN where it cannot be computed."""
    found: dict[str, Column] = {}
    referred = [at for at, row in enumerate(rows) if row.references]
    read = [at for at, row in enumerate(rows) if row.document]

    def put(name: str, places: Sequence[int], values: Column) -> None:
        found[name] = np.full(len(rows), np.nan)
        found[name][list(places)] = values

    if referred:
        references = [rows[at].references for at in referred]
        rouge = Rouge.choose(text for texts in references for text in texts)
        for name, values in rouge.score([rows[at].output for at in referred], references).items():
            put(name, referred, values)
    if read:
        outputs, documents = [rows[at].output for at in read], [rows[at].document for at in read]
        shapes = shape_statistics({"": outputs}, documents)[""]
        for name, sign in _SHAPE.items():
            put(name, read, sign * shapes[name])
        put("supported pairs of words", read, 100 - shapes["novelty_2"])
        scores = faithful_scores(
            {"": outputs}, documents, [rows[at].references for at in read], judges=judges
        )
        for name, values in scores[""].columns.items():
            put(
                f"marks: {name}" if name in MARK_COLUMNS else name,
                read,
                -values if name in MARK_COLUMNS else values,
            )
    return found


def _cells(one: Agreement) -> list[str]:
    return [str(one.summaries), *(_cell(each) for each in (one.spearman, one.kendall, one.system_tau))]


def _cell(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
