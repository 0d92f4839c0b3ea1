"""Several models' summaries of the same documents: speed, memory, lengths, marks, ROUGE and agreement, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precis.data.pairs.pair import Pair
from precis.evaluation.rouge import Rouge
from precis.evaluation.score_report import Report, title_of
from precis.evaluation.scoring import score
from precis.evaluation.significance import Bootstrap, Interval
from precis.table import Table
from precis_text.length import Cap
from precis_text.row import pluralize
from precis_text.support.marks import Support
from precis_text.words import length_in_words

MODEL = "model"
_AGREEMENT = "rouge1"
_EACH = "One document at a time, with 95% bootstrap intervals over documents."


@dataclass(frozen=True, kw_only=True)
class ComparedSummary:
    """One model's summary of one document.

    Attributes:
        text: empty if there is an error.
        seconds: from the document to its summary.
        opening: seconds to open the model, in the first summary of a process; else None.
        memory: the most MiB of the model's process so far; None for a server.
        is_whole: whether the model read the whole document; finished: whether the text ends with a sentence.
        error: the reason for a missing summary, or "".
        reasons: the text of each quotation that replaced a written sentence -> why.
        quoted: whether each sentence is a quotation, if the model's way of working says so; else () and the texts are
            compared with the document.
    """

    text: str
    seconds: float
    opening: float | None = None
    memory: float | None = None
    is_whole: bool = True
    finished: bool = True
    error: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    quoted: tuple[bool, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The summaries of all models, and what they were made with.

    Attributes:
        pairs: the documents with their references; the summary is "" for one without a reference.
        summaries: by model, one for each document.
        cap: the requested cap in words or sentences, if any.
        machine: lines about the machine and the run, for the reports.
    """

    pairs: Sequence[Pair]
    summaries: Mapping[str, Sequence[ComparedSummary]]
    cap: Cap | None = None
    machine: Sequence[str] = ()
    intervals: Bootstrap = field(default_factory=Bootstrap)

    @cached_property
    def marks(self) -> Report:
        """The lengths and marks of all summaries."""
        texts = {name: [each.text for each in found] for name, found in self.summaries.items()}
        return score(texts, self.pairs, with_rouge=False, baselines=(), faithful=(), intervals=self.intervals)

    @cached_property
    def scores(self) -> Report | None:
        """ROUGE on the documents with a reference; None if no document has one."""
        rows = [row for row, pair in enumerate(self.pairs) if any(pair.all_references)]
        if not rows:
            return None
        texts = {name: [found[row].text for row in rows] for name, found in self.summaries.items()}
        return score(texts, [self.pairs[row] for row in rows], baselines=(), intervals=self.intervals)

    def support(self, model: str, row: int) -> Support:
        """Return the support of a model's summary of a document."""
        return self.marks.faithful[model].supports[row]

    def tables(self) -> list[Table]:
        """Return all tables in the order of the report."""
        found = [self._speed(), self._shape(), self._agreement()]
        return found if self.scores is None else [*found[:2], *self._rouge(self.scores), found[2]]

    def _speed(self) -> Table:
        words = [length_in_words(pair.document) for pair in self.pairs]
        rows = []
        for name, found in self.summaries.items():
            seconds = np.array([each.seconds for each in found])
            memory = [each.memory for each in found if each.memory is not None]
            opening = [each.opening for each in found if each.opening is not None]
            read = [each.is_whole for each in found]
            rows.append(
                [
                    name,
                    self._interval(seconds, decimals=2),
                    f"{sum(words) / max(seconds.sum(), 1e-9):,.0f}",
                    f"{np.mean(opening):.1f}" if opening else "-",
                    f"{max(memory):,.0f}" if memory else "-",
                    _percent(read),
                ]
            )
        heads = ["seconds a document", "words a second", "seconds to open", "memory MiB", "read whole %"]
        caption = f"{_EACH} Memory: the most of the model's process, with its libraries; - for a server."
        return Table(
            header=[MODEL, *heads], rows=rows, title="Speed and memory", texts=(MODEL,), caption=caption
        )

    def _copied(self, name: str, row: int) -> Sequence[bool]:
        """Return whether each sentence of a summary is a quotation: a quoted turn may start with its speaker."""
        known = self.summaries[name][row].quoted
        return known or [each.copied for each in self.support(name, row).sentences]

    def _shape(self) -> Table:
        faithful = self.marks.faithful_intervals
        rows = []
        for name, found in self.summaries.items():
            copied = [is_copied for row in range(len(found)) for is_copied in self._copied(name, row)]
            over = [not self._holds(each.text) for each in found]
            marked, other = (faithful[name].get(column) for column in ("marked", "other_language"))
            rows.append(
                [
                    name,
                    f"{self.marks.system(name).statistics['length']:.1f}",
                    str(sum(over)) if self._is_checked else "-",
                    str(sum(not each.finished for each in found)),
                    _percent([not each for each in copied]),
                    _percent(copied),
                    "-" if not marked else str(marked) if self.marks.has_intervals else f"{marked.mean:.1f}",
                    f"{other.mean:.0f}" if other else "-",
                    str(sum(bool(each.error) for each in found)),
                ]
            )
        heads = ["words", "over the cap", "cut off", "written %", "quoted %", "with a mark %"]
        return Table(
            header=[MODEL, *heads, "other language %", "without a summary"],
            rows=rows,
            title="Summaries",
            texts=(MODEL,),
            caption=f"Written and quoted: shares of sentences. {self.marks.notes[-1]}",
        )

    @property
    def _is_checked(self) -> bool:
        return self.cap is not None

    def _holds(self, text: str) -> bool:
        return self.cap is None or not text or self.cap.holds(text, tokens=0)

    def _rouge(self, report: Report) -> list[Table]:
        """Return ROUGE of each model, and the differences to the first."""
        titles = [title_of(measure) for measure in report.systems[0].metrics]
        rows = [
            [
                system.name,
                *(str(i) if report.has_intervals else f"{i.mean:.1f}" for i in system.metrics.values()),
            ]
            for system in report.systems
        ]
        scored = pluralize(len(report.pairs), "document")
        caption = f"On {scored} with a reference. {report.signatures['rouge']}"
        table = Table(header=[MODEL, *titles], rows=rows, title="ROUGE", texts=(MODEL,), caption=caption)
        differences = replace(report.differences_table(), title="Differences")
        return [table, differences] if report.differences else [table]

    def _agreement(self) -> Table:
        """Return how much the models' summaries have in common, pair by pair."""
        names = [*self.summaries]
        texts = {name: [each.text for each in found] for name, found in self.summaries.items()}
        rouge = Rouge.choose((text for found in texts.values() for text in found), types=(_AGREEMENT,))
        rows = [
            [
                one,
                *(
                    "-"
                    if one == other
                    else f"{rouge.score(texts[one], [[text] for text in texts[other]])[_AGREEMENT].mean():.1f}"
                    for other in names
                ),
            ]
            for one in names
        ]
        caption = f"{title_of(_AGREEMENT)} of one model's summaries and another's; 100: the same words."
        return Table(header=[MODEL, *names], rows=rows, title="Agreement", texts=(MODEL,), caption=caption)

    def _interval(self, values: NDArray[np.float64], *, decimals: int) -> str:
        found: Interval = self.intervals.interval(values)
        several = f" [{found.low:.{decimals}f}, {found.high:.{decimals}f}]" if len(values) > 1 else ""
        return f"{found.mean:.{decimals}f}{several}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary of the tables, as texts, and the scores."""
        return {
            "documents": len(self.pairs),
            "machine": [*self.machine],
            "tables": {
                table.title: [dict(zip(table.header, row, strict=True)) for row in table.rows]
                for table in self.tables()
            },
            "marks": self.marks.to_dict(),
            "scores": None if self.scores is None else self.scores.to_dict(),
        }


def _percent(values: Sequence[bool]) -> str:
    return f"{100 * sum(values) / len(values):.0f}" if values else "-"
