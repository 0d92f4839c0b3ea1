"""Models and baselines in one table: the same examples, each figure with its interval, each scorer named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from precis.data.pairs.pair import Pair
from precis.data.text.marks import unmarked
from precis.data.text.words import non_latin_share
from precis.errors import UserError
from precis.evaluation.baselines import DEFAULT_BASELINES, Baseline
from precis.evaluation.bleu import bleu
from precis.evaluation.rouge import NON_LATIN_WARNING, Rouge
from precis.evaluation.significance import (
    Bootstrap,
    Interval,
    PairedTest,
    bootstrap_corpus,
    bootstrap_interval,
    paired_bootstrap,
    paired_bootstrap_corpus,
)
from precis.evaluation.tables import REFERENCES, markdown_report, rich_differences, rich_scores
from precis.evaluation.text_statistics import shape_statistics_of_all
from precis.files import replacing

Kind = Literal["model", "baseline", "bound"]


class Corpus(Protocol):
    """A score of a whole test set, 0..100, that can be computed for any of its examples again."""

    @property
    def score(self) -> float: ...

    @property
    def signature(self) -> str: ...

    @property
    def examples(self) -> NDArray[np.float64] | None:
        """The score of each example alone, (n,), where there is such a score."""

    def resampled(self, rows: NDArray[np.int64]) -> float: ...


Scorer = Callable[[Sequence[str], Sequence[Sequence[str]]], Corpus]
_NO_SCORERS: Mapping[str, Scorer] = MappingProxyType({})
_DECIMALS = 4  # of scores on disk: more would be noise


@dataclass(frozen=True, kw_only=True)
class SystemScores:
    """One row of the report.

    Attributes:
        kind: "model" for what was given, "baseline" for what needs no training, "bound" for what reads the
            references.
        metrics: ROUGE types (mean F1 * 100), then "bleu" and others when asked for, each with its interval.
        statistics: means of `shape_statistics`.
        empty: predictions without text; each scores 0.
        examples: scores and statistics of each example, arrays (n,).
        corpus: the metrics that are no mean of examples, by name.
    """

    name: str
    kind: Kind
    metrics: Mapping[str, Interval]
    statistics: Mapping[str, float]
    empty: int
    predictions: Sequence[str] = field(repr=False)
    examples: Mapping[str, NDArray[np.float64]] = field(repr=False)
    corpus: Mapping[str, Corpus] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Scores of all systems on the same pairs, with what is needed to compute them again."""

    systems: Sequence[SystemScores]  # models in the order given, then baselines
    reference_statistics: Mapping[str, float]
    signatures: Mapping[str, str]
    intervals: Bootstrap
    notes: Sequence[str]
    pairs: Sequence[Pair] = field(repr=False)

    def system(self, name: str) -> SystemScores:
        """Raises UserError when no system has that name."""
        for system in self.systems:
            if system.name == name:
                return system
        raise UserError(
            f"no system {name!r} in this report; there are {', '.join(s.name for s in self.systems)}"
        )

    def compare(self, first: str, second: str) -> dict[str, PairedTest]:
        """For each metric the difference first - second on the same examples, its interval and p-value."""
        a, b = self.system(first), self.system(second)
        settings = self.intervals.to_dict()
        tests = {
            name: paired_bootstrap(a.examples[name], b.examples[name], **settings)
            for name in a.metrics
            if name not in a.corpus
        }
        return tests | {
            name: paired_bootstrap_corpus(
                a.corpus[name].resampled, b.corpus[name].resampled, len(self.pairs), **settings
            )
            for name in a.corpus
        }

    @cached_property
    def differences(self) -> dict[str, dict[str, PairedTest]]:
        """Each further model minus the first, by its name, as `compare` gives it; baselines are left out."""
        models = [system.name for system in self.systems if system.kind == "model"]
        return {name: self.compare(name, models[0]) for name in models[1:]}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: per system the metrics (mean, low, high), statistics and empties; differences of the models;
        signatures; notes. Of one example low, high and p_value are None.
        """
        return {
            "examples": len(self.pairs),
            "systems": {system.name: _system_dict(system, self.has_intervals) for system in self.systems},
            "differences_to_first": {
                name: {measure: _test_dict(test, self.has_intervals) for measure, test in tests.items()}
                for name, tests in self.differences.items()
            },
            "reference_statistics": _rounded(self.reference_statistics),
            "signatures": dict(self.signatures),
            "intervals": self.intervals.to_dict(),
            "notes": list(self.notes),
        }

    @property
    def has_intervals(self) -> bool:
        """Whether there are examples to draw from: of one alone every draw is the same."""
        return len(self.pairs) > 1

    @property
    def remarks(self) -> list[str]:
        """To be printed below the table, each on a line of its own: the notes, then the signatures."""
        return [*self.notes, *self.signatures.values()]

    def table(self) -> Table:
        """For the terminal: the models in bold above the baselines, each score above its interval; see `remarks`."""
        return rich_scores(self)

    def differences_table(self) -> Table:
        """For the terminal, where there are `differences`: one measure a line, with interval and p-value."""
        return rich_differences(self)

    def markdown(self) -> str:
        """Scores, shape of the summaries, differences, signatures and notes, for a file or a page."""
        return markdown_report(self)

    def write(self, folder: str | Path) -> None:
        """Write `scores.json`, `table.md` and `examples.jsonl` (all scores, an example a line).

        A kill leaves each file as it was or as it is to be, and what cannot be told of them leaves none.
        """
        markdown = self.markdown()
        scores = json.dumps(self.to_dict(), ensure_ascii=False, indent=2)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        examples = (json.dumps(example, ensure_ascii=False) + "\n" for example in self._examples())
        _replace(folder / "examples.jsonl", examples)
        _replace(folder / "table.md", [markdown])
        _replace(folder / "scores.json", [scores + "\n"])

    def _examples(self) -> Iterator[dict[str, Any]]:
        for row, pair in enumerate(self.pairs):
            systems = {
                system.name: {
                    "prediction": system.predictions[row],
                    **_rounded({name: values[row] for name, values in system.examples.items()}),
                }
                for system in self.systems
            }
            yield {"row": row + 1, "id": pair.id, "references": list(pair.all_references), "systems": systems}


def evaluate(
    systems: Mapping[str, Sequence[str]],
    pairs: Sequence[Pair],
    *,
    rouge: Rouge | None = None,
    with_bleu: bool = False,
    scorers: Mapping[str, Scorer] = _NO_SCORERS,
    baselines: Sequence[Baseline] = DEFAULT_BASELINES,
    intervals: Bootstrap | None = None,
) -> Report:
    """Score predictions and baselines on the same pairs.

    Args:
        systems: name -> predictions, one a pair, in the order of `pairs`; empty ones score 0 and are counted.
        pairs: documents with their references (`all_references`).
        rouge: how ROUGE is computed; if None, as suits the language of the references (`Rouge.suited`).
        with_bleu: corpus BLEU as well (sacrebleu, 13a).
        scorers: further scores of the whole corpus by name, such as {"meteor": Meteor()}.
        baselines: join as systems of their own; () for none.
        intervals: samples, level and seed of the bootstrap.

    Raises:
        UserError: no pairs, a system with another number of predictions, or a name used twice.

    Example:
        >>> pairs = list(precis.read_pairs("pairs", split="test"))
        >>> report = evaluate({"mine": ["Ann sings." for _ in pairs]}, pairs)
        >>> report.system("mine").metrics["rougeL"].mean
        100.0
    """
    if not pairs:
        raise UserError("nothing to evaluate: there are no pairs")
    rouge = rouge or Rouge.suited(text for pair in pairs for text in pair.all_references)
    intervals = intervals or Bootstrap()
    rows = _predictions(systems, pairs, baselines, rouge)
    documents = [unmarked(pair.document) for pair in pairs]
    texts = {name: predictions for name, (_, predictions) in rows.items()}
    texts[REFERENCES] = [pair.all_references[0] for pair in pairs]
    shapes = shape_statistics_of_all(texts, documents)
    scored = [
        _score(name, kind, predictions, pairs, rouge, intervals, shapes[name])
        for name, (kind, predictions) in rows.items()
    ]
    signatures = {"rouge": rouge.signature}
    everything: dict[str, Scorer] = {**({"bleu": bleu} if with_bleu else {}), **scorers}
    for measure, scorer in everything.items():
        scored = [_with_corpus(system, measure, scorer, pairs, intervals) for system in scored]
        if scored:
            signatures[measure] = scored[0].corpus[measure].signature
    return Report(
        systems=scored,
        reference_statistics=_means(shapes[REFERENCES]),
        signatures=signatures,
        intervals=intervals,
        notes=_notes(scored, pairs, rouge, intervals),
        pairs=pairs,
    )


def _predictions(
    systems: Mapping[str, Sequence[str]], pairs: Sequence[Pair], baselines: Sequence[Baseline], rouge: Rouge
) -> dict[str, tuple[Kind, Sequence[str]]]:
    """What each row is and predicts: the given systems, checked, then the baselines."""
    rows: dict[str, tuple[Kind, Sequence[str]]] = {}
    for name, predictions in systems.items():
        if name == REFERENCES:
            raise UserError(f"a system cannot be called {name!r}: that row is the references' own; rename it")
        if len(predictions) != len(pairs):
            raise UserError(f"system {name!r} has {len(predictions)} predictions for {len(pairs)} pairs")
        rows[name] = ("model", predictions)
    for baseline in baselines:
        if baseline.name in rows:
            raise UserError(f"two systems are called {baseline.name!r}; rename one")
        kind: Kind = "bound" if baseline.reads_references else "baseline"
        rows[baseline.name] = (kind, [baseline.extract(pair, rouge=rouge) for pair in pairs])
    return rows


def _score(
    name: str,
    kind: Kind,
    predictions: Sequence[str],
    pairs: Sequence[Pair],
    rouge: Rouge,
    intervals: Bootstrap,
    shape: Mapping[str, NDArray[np.float64]],
) -> SystemScores:
    scores = rouge.score(predictions, [pair.all_references for pair in pairs])
    settings = intervals.to_dict()
    return SystemScores(
        name=name,
        kind=kind,
        metrics={measure: bootstrap_interval(values, **settings) for measure, values in scores.items()},
        statistics=_means(shape),
        empty=sum(not prediction.strip() for prediction in predictions),
        predictions=predictions,
        examples={**scores, **shape},
    )


def _with_corpus(
    system: SystemScores, measure: str, scorer: Scorer, pairs: Sequence[Pair], intervals: Bootstrap
) -> SystemScores:
    corpus = scorer(system.predictions, [pair.all_references for pair in pairs])
    interval = bootstrap_corpus(corpus.resampled, len(pairs), **intervals.to_dict())
    own = {} if corpus.examples is None else {measure: corpus.examples}
    return replace(
        system,
        metrics={**system.metrics, measure: interval},
        examples={**system.examples, **own},
        corpus={**system.corpus, measure: corpus},
    )


def _notes(
    systems: Sequence[SystemScores], pairs: Sequence[Pair], rouge: Rouge, intervals: Bootstrap
) -> list[str]:
    """What a reader must know before comparing the figures."""
    notes = [
        f"{len(pairs)} examples; intervals: {intervals.level:.0%} percentile bootstrap over examples, "
        f"{intervals.samples} samples, seed {intervals.seed}."
        if len(pairs) > 1
        else "1 example: no intervals; score more to know how far a figure would move."
    ]
    several = sum(len(pair.all_references) > 1 for pair in pairs)
    if several:
        how = "best" if rouge.references == "max" else "mean"
        notes.append(f"{several} examples have several references: ROUGE takes the {how} for each measure.")
    share = non_latin_share(text for pair in pairs for text in pair.all_references)
    if rouge.tokenizer == "rouge-score" and share > NON_LATIN_WARNING:
        notes.append(
            f"WARNING: {share:.0%} of the references' letters are not Latin, and rouge-score's tokenizer "
            "ignores them: these scores mean little; use --rouge-tokenizer unicode."
        )
    blank = sum(not any(text.strip() for text in pair.all_references) for pair in pairs)
    if blank:
        notes.append(f"{blank} examples have an empty reference; every system scores 0 there.")
    notes += [f"{s.name}: {s.empty} empty predictions, scored 0." for s in systems if s.empty]
    bounds = [system.name for system in systems if system.kind == "bound"]
    if bounds:
        notes.append(f"{', '.join(bounds)} reads the references: a bound for extraction, not a competitor.")
    return notes


def _system_dict(system: SystemScores, has_intervals: bool) -> dict[str, Any]:
    return {
        "kind": system.kind,
        "metrics": {
            name: _interval_dict(interval, has_intervals) for name, interval in system.metrics.items()
        },
        "statistics": _rounded(system.statistics),
        "empty": system.empty,
    }


def _test_dict(test: PairedTest, has_intervals: bool) -> dict[str, float | None]:
    p_value = _rounded({"p_value": test.p_value}) if has_intervals else {"p_value": None}
    return _interval_dict(test.difference, has_intervals) | p_value


def _interval_dict(interval: Interval, has_intervals: bool) -> dict[str, float | None]:
    bounds = _rounded({"low": interval.low, "high": interval.high})
    return {**_rounded({"mean": interval.mean}), **(bounds if has_intervals else dict.fromkeys(bounds))}


def _means(values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    return {name: float(column.mean()) for name, column in values.items()}


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(float(value), _DECIMALS) for name, value in values.items()}


def _replace(path: Path, lines: Iterable[str]) -> None:
    """Write line by line into a file that replaces the old one."""
    with replacing(path) as file:
        file.writelines(line.encode() for line in lines)
