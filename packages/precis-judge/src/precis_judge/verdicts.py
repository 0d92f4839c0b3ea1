"""Verdicts on disk: JSON lines, each synced to disk before its judge gets the confirmation.

A judge who goes back and changes a page adds a line, and the last line of a page counts. A line that a kill left
unfinished was never confirmed; it is cut off when collecting resumes.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO, Literal, Self

from precis.evaluation.predictions import truncate_partial_line
from precis.storage.atomic import appending, sync_directory, write_whole
from precis.storage.locks import locked_place
from precis_judge.judging_study import VERDICTS, JudgingStudy, whole_lines
from precis_text.bounded_io import stat_or_none
from precis_text.errors import UserError
from precis_text.row import invalid_text

Side = Literal["left", "right", "same"]
SIDES: tuple[Side, ...] = ("left", "right", "same")
MOST_REASON = 2000  # characters


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
        UserError: a line does not belong to this study.
    """
    file = study.folder / VERDICTS
    found = {}
    for number, record in whole_lines(file):
        try:
            verdict = checked(study, record)
        except UserError as error:
            raise UserError(f"{file}, line {number}: {error}") from None
        found[verdict.judge, verdict.page] = verdict
    return found


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

    def __init__(self, study: JudgingStudy, file: BinaryIO) -> None:
        self.study = study
        self.verdicts = read_verdicts(study)
        self._path = study.folder / VERDICTS
        self._file = file
        self._lock = threading.Lock()
        self._broken = False

    @classmethod
    @contextmanager
    def opened(cls, study: JudgingStudy) -> Iterator[Self]:
        """Hold the study's verdicts while the body runs.

        Raises:
            HeldError: another process collects them.
            UserError: a line does not belong to this study.
        """
        path = study.folder / VERDICTS
        with locked_place(path, doing="collecting"):
            read_verdicts(study)  # before any change
            if stat_or_none(path) is not None:
                truncate_partial_line(path)
            file = appending(path)
            with file:
                sync_directory(path.parent)
                yield cls(study, file)

    def add(self, record: Mapping[str, Any]) -> Verdict:
        """Save a verdict.

        Raises:
            UserError: it does not belong to this study.
            OSError: writing failed; the verdict is not saved.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        verdict = checked(self.study, {**record, "time": now})
        line = (json.dumps(asdict(verdict), ensure_ascii=False) + "\n").encode()
        with self._lock:
            if self._broken:
                truncate_partial_line(self._path)
            self._broken = True
            write_whole(self._path, self._file, line)
            os.fsync(self._file.fileno())
            self._broken = False
            self.verdicts[verdict.judge, verdict.page] = verdict
        return verdict

    def next_page(self, judge: str) -> int:
        """Return the first page without a verdict, or the number of pages if all have one."""
        pages = len(self.study.layout.pages[judge])
        return next((page for page in range(pages) if (judge, page) not in self.verdicts), pages)
