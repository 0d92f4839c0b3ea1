"""Scores of models and baselines on the same examples: tables for the terminal, Markdown, and files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from precis.data.pairs.pair import Pair
from precis.evaluation.likelihood import FROM_DOCUMENT, FROM_REFERENCE, OF_REFERENCE
from precis.evaluation.significance import OVER_RUNS, Bootstrap, Interval, PairedTest
from precis.evaluation.support_scores import MARK_COLUMNS, FaithfulScores
from precis.storage.atomic import replacing, write_file
from precis.table import Table
from precis_text.errors import UserError

Kind = Literal["model", "baseline", "bound"]
REFERENCES = "references"  # the row for length, novelty and copying of the first references
_DECIMALS = 4  # of scores on disk; more would be noise
_METRICS = {
    "rougeL": "ROUGE-L", "rougeLsum": "ROUGE-Lsum", "bleu": "BLEU", "meteor": "METEOR",
    "bertscore": "BERTScore F1", "ter": "TER (less is better)", "chrf": "chrF", "exact_match": "exact match",
    "answer_f1": "F1 of words", "accuracy": "accuracy", "f1": "F1", "matthews": "Matthews",
    "pearson": "Pearson", "spearman": "Spearman", **{f"rouge{n}": f"ROUGE-{n}" for n in range(1, 10)},
}  # fmt: skip
_SHAPE = {
    "length": "words", "novelty_1": "new 1-grams %", "novelty_2": "new 2-grams %", "novelty_3": "new 3-grams %",
    "repetition": "repeated 3-grams %", "coverage": "coverage", "density": "density", "compression": "compression",
}  # fmt: skip
_FAITHFUL = {
    "marked": "with a mark %", "other_language": "other language %",
    FROM_DOCUMENT: "log p(summary | document)", FROM_REFERENCE: "log p(summary | reference)",
    OF_REFERENCE: "log p(reference | summary)",
}  # fmt: skip
_KINDS = {"model": "model", "baseline": "baseline", "bound": "bound (reads references)"}
_STYLES = {"model": "bold", "baseline": "", "bound": "dim"}
_TEST = "same examples; p: paired bootstrap, two-sided, not corrected for the number of comparisons"


class Corpus(Protocol):
    """A score of a whole test set, 0..100, which can be recomputed for any of its examples."""

    @property
    def score(self) -> float: ...

    @property
    def signature(self) -> str: ...

    @property
    def examples(self) -> NDArray[np.float64] | None:
        """The score of each example by itself, (n,), or None if undefined."""

    def resampled(self, rows: NDArray[np.int64]) -> float: ...


@dataclass(frozen=True, kw_only=True)
class SystemScores:
    """One row of the report.

    Attributes:
        kind: "model" for given systems, "baseline" for those without training, "bound" for those that read the
            references.
        metrics: ROUGE types (mean F1 * 100), then "bleu" and other requested ones, each with its interval.
        statistics: means of `shape_statistics`.
        empty: number of predictions without text; each scores 0.
        examples: scores and statistics of each example, arrays (n,).
        corpus: the metrics that are not means over examples, by name.
        runs: the rows of the runs with several seeds that this row pools; empty for one run.
    """

    name: str
    kind: Kind
    metrics: Mapping[str, Interval]
    statistics: Mapping[str, float]
    empty: int
    predictions: Sequence[str] = field(repr=False)
    examples: Mapping[str, NDArray[np.float64]] = field(repr=False)
    corpus: Mapping[str, Corpus] = field(default_factory=dict, repr=False)
    runs: Sequence[SystemScores] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Scores of all systems on the same pairs, with everything needed to reproduce them."""

    systems: Sequence[SystemScores]  # models in the order given, then baselines
    reference_statistics: Mapping[str, float]
    signatures: Mapping[str, str]
    intervals: Bootstrap
    notes: Sequence[str]
    pairs: Sequence[Pair] = field(repr=False)
    faithful: Mapping[str, FaithfulScores] = field(
        default_factory=dict, repr=False
    )  # by system and REFERENCES
    source: str = ""  # the pairs, as the user named them

    def system(self, name: str) -> SystemScores:
        """Return a system by name; raise `UserError` if the name is unknown."""
        for system in self.systems:
            if system.name == name:
                return system
        raise UserError(
            f"no system {name!r} in this report; it contains {', '.join(s.name for s in self.systems)}"
        )

    def compare(self, first: str, second: str) -> dict[str, PairedTest]:
        """Compute the difference first - second of each metric on the same examples, its interval and p-value."""
        a, b = self.system(first), self.system(second)
        bootstrap, count = self.intervals, len(self.pairs)
        if a.runs or b.runs:
            return compare_runs(a, b, bootstrap, count)
        return {
            name: bootstrap.corpus_paired(a.corpus[name].resampled, b.corpus[name].resampled, count)
            if name in a.corpus
            else bootstrap.paired(a.examples[name], b.examples[name])
            for name in a.metrics
        }

    @cached_property
    def differences(self) -> dict[str, dict[str, PairedTest]]:
        """Each further model minus the first, by name, from `compare`; baselines are left out."""
        models = [system.name for system in self.systems if system.kind == "model"]
        return {name: self.compare(name, models[0]) for name in models[1:]}

    @property
    def has_intervals(self) -> bool:
        """True if there are several examples; with one, every resample is the same."""
        return len(self.pairs) > 1

    @property
    def remarks(self) -> list[str]:
        """The lines to print below the table: the notes, then the signatures."""
        return [*self.notes, *self.signatures.values()]

    @property
    def _measures(self) -> list[str]:
        return list(self.systems[0].metrics) if self.systems else []

    def table(self) -> Table:
        """Return the scores for the terminal: models in bold above the baselines; see `remarks`.

        Each cell holds the score above its interval, so that five measures fit 80 columns.
        """
        titles = {measure: title_of(measure) for measure in self._measures}
        rows = []
        for system in self.systems:
            cells = [
                f"{i.mean:.1f}"
                + (f"\n{i.low:.1f}{' to ' if i.low < 0 else '-'}{i.high:.1f}" if self.has_intervals else "")
                for i in system.metrics.values()
            ]
            kind = f"{len(system.runs)} seeds" if system.runs else system.kind
            rows.append([f"{system.name}\n{kind}", *cells, f"{system.statistics['length']:.1f}"])
        return Table(
            header=["system", *titles.values(), "words"],
            rows=rows,
            texts=("system",),
            unbroken=[
                title for measure, title in titles.items() if measure in _METRICS
            ],  # users' may be long
            styles=[_STYLES[system.kind] for system in self.systems],
            compact=True,
            lines_above=[
                place
                for place, (before, system) in enumerate(pairwise(self.systems), start=1)
                if before.kind == "model" != system.kind
            ],
        )

    def differences_table(self) -> Table:
        """Return the `differences` for the terminal: one measure per line, with interval and p-value."""
        return Table(
            header=["system", "measure", f"difference to {self.systems[0].name}", "p"],
            rows=self._difference_rows(),
            texts=("system", "measure"),
            caption=_TEST,
        )

    @cached_property
    def faithful_intervals(self) -> dict[str, dict[str, Interval]]:
        """The figures of `faithful` by system, with intervals over the examples that have one."""
        return {
            name: {
                column: self.intervals.interval(known)
                for column, values in scores.columns.items()
                if len(known := values[np.isfinite(values)])
            }
            for name, scores in self.faithful.items()
        }

    def _faithful_scores(self) -> Table:
        """Return a row per system, each cell with its interval."""
        columns = list(dict.fromkeys(c for found in self.faithful_intervals.values() for c in found))
        rows = []
        for name, found in self.faithful_intervals.items():
            cells = [_faithful_cell(found.get(column), several=self.has_intervals) for column in columns]
            rows.append([name, *cells])
        headings = [_FAITHFUL.get(column, column) for column in columns]
        return Table(header=["system", *headings], rows=rows, texts=("system",), compact=True)

    def faithful_table(self) -> Table:
        """Return marks per summary and judges' scores, for the terminal."""
        table = self._faithful_scores()
        rows = [
            [row[0], *(cell.rstrip("]").replace(" [", "\n").replace(", ", "..") for cell in row[1:])]
            for row in table.rows
        ]
        return replace(table, rows=rows)

    def markdown(self) -> str:
        """Return scores, shape of the summaries, differences, notes and signatures, for a file or a page."""
        scores = [
            [_named(system), _KINDS[system.kind]]
            + [str(i) if self.has_intervals else f"{i.mean:.1f}" for i in system.metrics.values()]
            + [str(system.empty)]
            for system in self.systems
        ]
        shape = [[_named(system), *_shape_cells(system.statistics)] for system in self.systems]
        shape.append([REFERENCES, *_shape_cells(self.reference_statistics)])
        titles = [title_of(measure) for measure in self._measures]
        kinds = ("system", "kind")
        parts = [
            Table(header=[*kinds, *titles, "empty"], rows=scores, texts=kinds).markdown(),
            Table(header=["system", *_SHAPE.values()], rows=shape, texts=kinds).markdown(),
        ]
        if self.differences:
            table = replace(self.differences_table(), caption=f"Differences: {_TEST}.")
            parts.append(table.markdown())
        if self.faithful:
            parts.append(self._faithful_scores().markdown())
        parts.append("\n".join(f"- {note}" for note in self.notes))
        parts.append("\n".join(f"- `{signature}`" for signature in self.signatures.values()))
        return "\n\n".join(parts) + "\n"

    def _difference_rows(self) -> list[tuple[str, str, str, str]]:
        """Return system, measure, difference with its interval, p."""
        rows = []
        for name, tests in self.differences.items():
            for measure, test in tests.items():
                d = test.difference
                interval = f" [{d.low:+.2f}, {d.high:+.2f}]" if self.has_intervals else ""
                p = f"{test.p_value:.3f}" if self.has_intervals else "-"
                rows.append((name, title_of(measure), f"{d.mean:+.2f}{interval}", p))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary: per system the metrics (mean, low, high), statistics and empties;
        differences of the models; signatures; notes. With one example, low, high and p_value are None.
        """
        differences = {
            name: {m: self._interval_dict(test.difference, p_value=test.p_value) for m, test in tests.items()}
            for name, tests in self.differences.items()
        }
        faithful = {
            system: {column: self._interval_dict(i) for column, i in found.items()}
            for system, found in self.faithful_intervals.items()
        }
        return {
            "examples": len(self.pairs), "pairs": self.source,
            "systems": {system.name: self._system_dict(system) for system in self.systems},
            "differences_to_first": differences, "reference_statistics": _rounded(self.reference_statistics),
            **({"faithful": faithful} if self.faithful else {}),
            "signatures": dict(self.signatures), "intervals": self.intervals.to_dict(), "notes": list(self.notes),
        }  # fmt: skip

    def _system_dict(self, system: SystemScores) -> dict[str, Any]:
        metrics = {name: self._interval_dict(i) for name, i in system.metrics.items()}
        runs = {"runs": _means_of_runs(system)} if system.runs else {}
        statistics = _rounded(system.statistics)
        return {
            "kind": system.kind,
            "metrics": metrics,
            "statistics": statistics,
            "empty": system.empty,
            **runs,
        }

    def _interval_dict(self, interval: Interval, **others: float) -> dict[str, float | None]:
        values = _rounded({"mean": interval.mean, "low": interval.low, "high": interval.high, **others})
        return {
            name: value if self.has_intervals or name == "mean" else None for name, value in values.items()
        }

    def write(self, folder: str | Path) -> None:
        """Write `scores.json`, `table.md` and `examples.jsonl` (all scores, one example per line).

        A kill leaves each file either old or new. All values are computed first, so an error writes nothing.
        """
        markdown = self.markdown()
        scores = json.dumps(self.to_dict(), ensure_ascii=False, indent=2)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / "examples.jsonl") as file:
            for example in self._examples():
                file.write((json.dumps(example, ensure_ascii=False) + "\n").encode())
        write_file(folder / "table.md", markdown)
        write_file(folder / "scores.json", scores + "\n")

    def _examples(self) -> Iterator[dict[str, Any]]:
        for row, pair in enumerate(self.pairs):
            systems = {
                system.name: {
                    "prediction": system.predictions[row],
                    **_rounded({name: values[row] for name, values in system.examples.items()}),
                    **self._faithful_example(system.name, row),
                }
                for row_of_table in self.systems
                for system in row_of_table.runs or (row_of_table,)
            }
            yield {
                "row": row + 1, "id": pair.id, "document": pair.document,
                "references": list(pair.all_references), "systems": systems,
            }  # fmt: skip

    def _faithful_example(self, system: str, row: int) -> dict[str, Any]:
        """Return the marks and figures of one summary, if they were requested."""
        if system not in self.faithful:
            return {}
        found = self.faithful[system]
        judged = {n: values[row] for n, values in found.columns.items() if n not in MARK_COLUMNS}
        kept = {
            name: None if np.isnan(value) else round(float(value), _DECIMALS)
            for name, value in judged.items()
        }
        return {**kept, "support": found.supports[row].to_dict()}


def pooled(name: str, runs: Sequence[SystemScores], intervals: Bootstrap) -> SystemScores:
    """Return one row for runs with several seeds; its intervals cover other seeds and other examples."""
    over_runs = replace(intervals, samples=OVER_RUNS.samples)
    metrics = {
        measure: intervals.corpus_runs_interval(
            [run.corpus[measure].score for run in runs],
            np.array(
                [intervals.resampled(run.corpus[measure].resampled, len(run.predictions)) for run in runs]
            ),
        )
        if measure in runs[0].corpus
        else over_runs.runs_interval(np.array([run.examples[measure] for run in runs]))
        for measure in runs[0].metrics
    }
    return SystemScores(
        name=name,
        kind="model",
        metrics=metrics,
        statistics={
            each: sum(run.statistics[each] for run in runs) / len(runs) for each in runs[0].statistics
        },
        empty=sum(run.empty for run in runs),
        predictions=(),
        examples={each: np.mean([run.examples[each] for run in runs], axis=0) for each in runs[0].examples},
        runs=runs,
    )


def compare_runs(a: SystemScores, b: SystemScores, intervals: Bootstrap, count: int) -> dict[str, PairedTest]:
    """Test the difference a - b of rows that pool runs, paired by seed; a single run stands for every seed."""
    ours, theirs = a.runs or (a,) * len(b.runs), b.runs or (b,) * len(a.runs)
    pairs = [*zip(ours, theirs, strict=False)]
    over_runs = replace(intervals, samples=OVER_RUNS.samples)
    found = {}
    for name in a.metrics:
        if name in ours[0].corpus:
            sides = [(one.corpus[name], other.corpus[name]) for one, other in pairs]
            drawn = [
                intervals.resampled(one.resampled, count) - intervals.resampled(other.resampled, count)
                for one, other in sides
            ]
            found[name] = intervals.corpus_runs_paired(
                [one.score - other.score for one, other in sides], np.array(drawn)
            )
        else:
            differences = np.array([one.examples[name] - other.examples[name] for one, other in pairs])
            found[name] = over_runs.runs_paired(differences)
    return found


def _means_of_runs(system: SystemScores) -> dict[str, dict[str, float]]:
    return {
        run.name: _rounded({name: interval.mean for name, interval in run.metrics.items()})
        for run in system.runs
    }


def _faithful_cell(interval: Interval | None, *, several: bool) -> str:
    if interval is None:
        return "-"
    return f"{interval.mean:.2f}" + (f" [{interval.low:.2f}, {interval.high:.2f}]" if several else "")


def title_of(measure: str) -> str:
    """Return the name of a measure: "ROUGE-L". A user's scorer keeps its name."""
    return _METRICS.get(measure, measure)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(float(value), _DECIMALS) for name, value in values.items()}


def _named(system: SystemScores) -> str:
    return f"**{system.name}**" if system.kind == "model" else system.name


def _shape_cells(statistics: Mapping[str, float]) -> list[str]:
    return [f"{statistics[name]:.2f}" if name == "coverage" else f"{statistics[name]:.1f}" for name in _SHAPE]
