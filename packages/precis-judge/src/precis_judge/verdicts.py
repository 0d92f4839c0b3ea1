"""Verdicts on disk: a journal, each line synced to disk before its judge gets the confirmation.

A judge who goes back and changes a page adds a line, and the last line of a page counts. A line that a kill left
unfinished was never confirmed; it is cut off when collecting resumes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, Self

from precis.storage.journal import Journal, JournalFormat, read_journal
from precis_judge.judging_study import VERDICTS, JudgingStudy
from precis_text.bounded_io import stat_or_none
from precis_text.errors import UserError
from precis_text.row import invalid_text

Side = Literal["left", "right", "same"]
SIDES: tuple[Side, ...] = ("left", "right", "same")
MOST_REASON = 2000  # characters
_FORMAT = JournalFormat(
    name="precis-verdicts-1", remedy="restore a good copy of the file, or move it away", durable=True
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A judge's verdict on a page: the better side by each criterion.

    Attributes:
        page: number of the page among the judge's, from 0.
        reasons: criterion -> reason; only if the judge wrote one.
        seconds: time from first seeing the page to the answer.
        time: time when it was saved, in UTC.
    """

    judge: str
    page: int
    choices: dict[str, str]
    reasons: dict[str, str]
    seconds: float
    time: str

    def first_won(self, study: JudgingStudy, criterion: str) -> float:
        """Return 1 if the item's first summary is better, 0 if the second is, 0.5 for a tie."""
        choice = self.choices[criterion]
        if choice == "same":
            return 0.5
        return float((choice == "left") == study.layout.pages[self.judge][self.page].first_left)


def read_verdicts(study: JudgingStudy) -> dict[tuple[str, int], Verdict]:
    """Return (judge, page) -> the last verdict on it; read without a lock, so that reports are possible meanwhile.

    Raises:
        UserError: the file has changed, or a line does not belong to this study.
    """
    file = study.folder / VERDICTS
    found: dict[tuple[str, int], Verdict] = {}
    if stat_or_none(file) is not None or file.is_symlink():
        for number, record in read_journal(file, _FORMAT, made_by={"study": study.digest}):
            _keep(found, study, number, record)
    return found


def _keep(
    found: dict[tuple[str, int], Verdict], study: JudgingStudy, line: int, record: Mapping[str, Any]
) -> None:
    """Add the verdict of a line, which replaces an earlier one on its page."""
    try:
        verdict = checked(study, record)
    except UserError as error:
        raise UserError(f"{study.folder / VERDICTS}, line {line}: {error}") from None
    found[verdict.judge, verdict.page] = verdict


def checked(study: JudgingStudy, record: Mapping[str, Any]) -> Verdict:
    """Convert a record to a verdict.

    Raises:
        UserError: judge, page, criteria or values do not fit this study.
    """
    judge, page = record.get("judge"), record.get("page")
    if not isinstance(judge, str) or judge not in study.layout.pages:
        raise UserError("unknown judge")
    if not isinstance(page, int) or isinstance(page, bool) or not 0 <= page < len(study.layout.pages[judge]):
        raise UserError("unknown page of this judge")
    choices, reasons = record.get("choices"), record.get("reasons", {})
    if not isinstance(choices, dict) or choices.keys() != set(study.protocol.keys):
        raise UserError("choose a side for each criterion, and for no others")
    if not all(isinstance(one, str) and one in SIDES for one in choices.values()):
        raise UserError(f"a choice must be one of {', '.join(SIDES)}")
    if not isinstance(reasons, dict) or not reasons.keys() <= choices.keys():
        raise UserError("a reason must belong to a criterion")
    if not all(isinstance(one, str) and len(one) <= MOST_REASON for one in reasons.values()):
        raise UserError(f"a reason must be a text of at most {MOST_REASON:,} characters")
    if problem := next(filter(None, map(invalid_text, reasons.values())), ""):
        raise UserError(f"a reason {problem}")
    seconds = record.get("seconds", 0.0)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < 1e9:
        raise UserError("seconds must be a number from 0")
    return Verdict(
        judge=judge,
        page=page,
        choices={key: choices[key] for key in study.protocol.keys},
        reasons={key: text for key, text in reasons.items() if text.strip()},
        seconds=float(seconds),
        time=str(record.get("time", "")),
    )


class VerdictStore:
    """The only writer of a study's verdicts; `add` returns when the line is on disk."""

    def __init__(
        self, study: JudgingStudy, journal: Journal, verdicts: dict[tuple[str, int], Verdict]
    ) -> None:
        self.study, self.verdicts = study, verdicts
        self._journal = journal
        self._lock = threading.Lock()

    @classmethod
    @contextmanager
    def opened(cls, study: JudgingStudy) -> Iterator[Self]:
        """Hold the study's verdicts while the body runs.

        Raises:
            HeldError: another process collects them.
            UserError: the file has changed, or a line does not belong to this study.
            RunError: at the end, if another program has replaced, deleted or changed the file.
        """
        found: dict[tuple[str, int], Verdict] = {}
        with Journal(
            study.folder / VERDICTS,
            _FORMAT,
            made_by={"study": study.digest},
            replay=partial(_keep, found, study),
            doing="collecting",
        ) as journal:
            yield cls(study, journal, found)

    def add(self, record: Mapping[str, Any]) -> Verdict:
        """Save a verdict.

        Raises:
            UserError: it does not belong to this study.
            OSError: writing failed; the verdict is not saved.
            RunError: another program has replaced, deleted or changed the file; no verdict is saved any more.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        verdict = checked(self.study, {**record, "time": now})
        with self._lock:
            self._journal.append(asdict(verdict))
            self.verdicts[verdict.judge, verdict.page] = verdict
        return verdict

    def next_page(self, judge: str) -> int:
        """Return the first page without a verdict, or the number of pages if all have one."""
        pages = len(self.study.layout.pages[judge])
        return next((page for page in range(pages) if (judge, page) not in self.verdicts), pages)
