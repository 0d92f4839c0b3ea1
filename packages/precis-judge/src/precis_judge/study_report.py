"""The results of a study: pairs and systems by each criterion, and the reliability of the judges."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from precis_judge.judging_study import JudgingStudy
from precis_judge.verdict_statistics import (
    ONE_JUDGE,
    Estimate,
    PairResult,
    Votes,
    krippendorff,
    pair_result,
    share,
    sign_test,
    strengths,
)
from precis_judge.verdicts import Verdict, read_verdicts
from precis_text.errors import UserError
from precis_text.row import pluralize

_GOLD_ENOUGH = 0.8
_FAST = 5.0  # seconds per page, the median


@dataclass(frozen=True, kw_only=True)
class CriterionResult:
    """The judges' results by one criterion."""

    key: str
    name: str
    question: str
    pairs: tuple[PairResult, ...]
    strengths: Mapping[str, Estimate]
    alpha: Estimate


@dataclass(frozen=True, kw_only=True)
class JudgeResult:
    """The quality of one judge's work.

    Attributes:
        again: share of the repeated pages' answers that were the same as the first time.
        gold: share of the gold pages' answers that rated the planted summary worse.
        left: share of the answers without ties that were for the left side.
        p_left: exact binomial test of no preference for a side.
        seconds: median time per page.
    """

    judge: str
    pages: int
    done: int
    again: Estimate
    gold: Estimate
    left: Estimate
    p_left: float
    seconds: float | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Points to check before using the verdicts."""
        found = []
        if self.done < self.pages:
            found.append(f"{self.pages - self.done:,} of {self.pages:,} pages lack a verdict")
        if self.gold.value is not None and self.gold.value < _GOLD_ENOUGH:
            found.append(f"missed {1 - self.gold.value:.0%} of the gold checks")
        if self.p_left < 0.01:
            found.append("prefers one side of the page")
        if self.seconds is not None and self.seconds < _FAST:
            found.append(f"took {self.seconds:.0f} seconds per page")
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A judge's reason for choosing a system, or neither."""

    criterion: str
    judge: str
    document: str
    better: str
    other: str
    text: str


@dataclass(frozen=True, kw_only=True)
class JudgingReport:
    """The complete results of a study."""

    title: str
    systems: tuple[str, ...]
    documents: int
    verdicts: int
    left_out: tuple[str, ...]
    criteria: tuple[CriterionResult, ...]
    judges: tuple[JudgeResult, ...]
    equal: Mapping[str, int]
    reasons: tuple[Reason, ...]

    @property
    def is_of_one(self) -> bool:
        """True if all verdicts are by one judge."""
        return sum(one.done > 0 for one in self.judges) == 1

    @property
    def remarks(self) -> list[str]:
        """Sentences that a reader of the figures needs."""
        found = [f"{one.judge}: {warning}" for one in self.judges for warning in one.warnings]
        found += [f"{judge}: left out" for judge in self.left_out]
        for pair, count in self.equal.items():
            found.append(f"{pair}: {pluralize(count, 'document')} with equal summaries skipped")
        if self.is_of_one:
            found.append(
                "one judge: the intervals do not cover other judges, and nothing is known about agreement"
            )
        for one in self.criteria:
            if one.alpha.note and not self.is_of_one:
                found.append(f"{one.name}: agreement: {one.alpha.note}")
            notes: dict[str, list[str]] = {}
            for name, each in one.strengths.items():
                notes.setdefault(_besides_one_judge(each.note), []).append(name)
            found += [f"{one.name}: {', '.join(names)}: {note}" for note, names in notes.items() if note]
            found += [
                f"{one.name}, {each.first} against {each.second}: {note}"
                for each in one.pairs
                if (note := _besides_one_judge(each.rate.note))
            ]
        return found

    def to_json(self) -> str:
        """Return all figures as JSON."""
        record: dict[str, Any] = {
            "title": self.title,
            "systems": self.systems,
            "documents": self.documents,
            "verdicts": self.verdicts,
            "left_out": self.left_out,
            "equal_summaries": dict(self.equal),
            "criteria": [
                {
                    "key": one.key,
                    "name": one.name,
                    "pairs": [each.to_dict() for each in one.pairs],
                    "strengths": {name: each.to_dict() for name, each in one.strengths.items()},
                    "krippendorff_alpha": one.alpha.to_dict(),
                }
                for one in self.criteria
            ],
            "judges": [
                {
                    **vars(one),
                    **{name: getattr(one, name).to_dict() for name in ("again", "gold", "left")},
                    "warnings": one.warnings,
                }
                for one in self.judges
            ],
            "reasons": [vars(one) for one in self.reasons],
            "remarks": self.remarks,
        }
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _besides_one_judge(note: str) -> str:
    """Return a note without the part that holds for every figure."""
    return "; ".join(part for part in note.split("; ") if part != ONE_JUDGE)


def make_report(study: JudgingStudy, *, leave_out: Sequence[str] = (), seed: int = 0) -> JudgingReport:
    """Compute the results of the verdicts so far.

    Args:
        leave_out: judges whose verdicts do not count.

    Raises:
        UserError: a judge to leave out is unknown, or no verdict is left.
    """
    for judge in leave_out:
        if judge not in study.design.judges:
            raise UserError(f"unknown judge {judge!r}; the judges are {', '.join(study.design.judges)}")
    said = {place: one for place, one in read_verdicts(study).items() if place[0] not in leave_out}
    counting = [one for one in said.values() if _counts(study, one)]
    if not counting:
        raise UserError(f"{study.folder} does not have verdicts yet; collect them with precis judge serve")
    judges = [judge for judge in study.design.judges if judge not in leave_out]
    names = [f"{first} against {second}" for _, first, second in study.layout.equal]
    return JudgingReport(
        title=study.protocol.title,
        systems=study.systems,
        documents=len({study.layout.items[_page(study, one).item].document for one in counting}),
        verdicts=len(counting),
        left_out=tuple(leave_out),
        criteria=tuple(
            _criterion(study, counting, one.key, one.name, one.question, seed)
            for one in study.protocol.criteria
        ),
        judges=tuple(_judge(study, judge, said) for judge in judges),
        equal={name: names.count(name) for name in dict.fromkeys(names)},
        reasons=tuple(_reasons(study, counting)),
    )


def _page(study: JudgingStudy, verdict: Verdict) -> Any:
    return study.layout.pages[verdict.judge][verdict.page]


def _counts(study: JudgingStudy, verdict: Verdict) -> bool:
    """Return whether a verdict enters the results: its page is neither gold nor repeated."""
    page = _page(study, verdict)
    return not page.repeat and not study.layout.items[page.item].planted


def _criterion(
    study: JudgingStudy, verdicts: Sequence[Verdict], key: str, name: str, question: str, seed: int
) -> CriterionResult:
    votes = _votes(study, verdicts, key)
    pairs = []
    for first, second in combinations(range(len(study.systems)), 2):
        for one, other in (
            (first, second),
            (second, first),
        ):  # a system compared with all others comes second
            chosen = (votes.first == one) & (votes.second == other)
            if chosen.any():
                names = study.systems[one], study.systems[other]
                pairs.append(pair_result(votes.where(chosen), names, seed=seed))
    return CriterionResult(
        key=key, name=name, question=question, pairs=tuple(pairs),
        strengths=strengths(votes, study.systems, seed=seed), alpha=krippendorff(votes, seed=seed),
    )  # fmt: skip


def _votes(study: JudgingStudy, verdicts: Sequence[Verdict], key: str) -> Votes:
    documents = {name: number for number, name in enumerate(study.documents)}
    systems = {name: number for number, name in enumerate(study.systems)}
    judges = {name: number for number, name in enumerate(study.design.judges)}
    items = [study.layout.items[_page(study, one).item] for one in verdicts]
    return Votes(
        document=np.array([documents[item.document] for item in items]),
        judge=np.array([judges[one.judge] for one in verdicts]),
        first=np.array([systems[item.first] for item in items]),
        second=np.array([systems[item.second] for item in items]),
        first_won=np.array([one.first_won(study, key) for one in verdicts]),
    )


def _judge(study: JudgingStudy, judge: str, said: Mapping[tuple[str, int], Verdict]) -> JudgeResult:
    pages = study.layout.pages[judge]
    mine = {page: said[judge, page] for page in range(len(pages)) if (judge, page) in said}
    first_seen = {pages[page].item: one for page, one in mine.items() if not pages[page].repeat}
    again, gold, left = [], [], []
    for page, one in mine.items():
        showing = pages[page]
        if showing.repeat and showing.item in first_seen:
            before = first_seen[showing.item]
            again += [one.first_won(study, k) == before.first_won(study, k) for k in study.protocol.keys]
        elif study.layout.items[showing.item].planted:
            gold += [one.first_won(study, k) == 1 for k in study.protocol.gold_keys]
        else:
            left += [choice == "left" for choice in one.choices.values() if choice != "same"]
    seconds = [one.seconds for one in mine.values()]
    return JudgeResult(
        judge=judge, pages=len(pages), done=len(mine), again=share(sum(again), len(again)),
        gold=share(sum(gold), len(gold)), left=share(sum(left), len(left)), p_left=_p_left(mine, pages, study),
        seconds=float(np.median(seconds)) if seconds else None,
    )  # fmt: skip


def _p_left(mine: Mapping[int, Verdict], pages: Sequence[Any], study: JudgingStudy) -> float:
    """Test for a preferred side; each page counts once, as answers to its criteria are alike."""
    margins = [
        sum((choice == "left") - (choice == "right") for choice in one.choices.values())
        for page, one in mine.items()
        if not study.layout.items[pages[page].item].planted
    ]
    return sign_test(sum(margin > 0 for margin in margins), sum(margin < 0 for margin in margins))


def _reasons(study: JudgingStudy, verdicts: Sequence[Verdict]) -> list[Reason]:
    found = []
    for one in verdicts:
        item = study.layout.items[_page(study, one).item]
        for key, text in one.reasons.items():
            won = one.first_won(study, key)
            better, other = (item.first, item.second) if won >= 0.5 else (item.second, item.first)
            found.append(
                Reason(
                    criterion=key, judge=one.judge, document=item.document, text=text,
                    better=better if won != 0.5 else f"{better} = {other}", other=other if won != 0.5 else "",
                )
            )  # fmt: skip
    return found


def percent(estimate: Estimate) -> str:
    """Return a share with its interval, in percent."""
    if estimate.value is None:
        return "-"
    low, high = estimate.low or 0.0, 1.0 if estimate.high is None else estimate.high
    return f"{100 * estimate.value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def figure(estimate: Estimate) -> str:
    """Return a figure with its interval; an open end is the word "open"."""
    if estimate.value is None and estimate.low is None and estimate.high is None:
        return "none"
    low = "open" if estimate.low is None else f"{estimate.low:.2f}"
    high = "open" if estimate.high is None else f"{estimate.high:.2f}"
    value = "none" if estimate.value is None else f"{estimate.value:.2f}"
    return f"{value} [{low}, {high}]"


def p_text(p: float) -> str:
    """Return a p-value with three decimals."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"
