"""Verdicts on disk: JSON lines, each written through to the disk before its judge is told that it is kept.

A judge who goes back and changes a page adds a line, and the last line of a page counts. A line that a kill left
unfinished was never acknowledged; it is cut off when collecting goes on.
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

from precis.data.rows.row import invalid_text
from precis.errors import UserError
from precis.evaluation.predictions import cut_torn_line
from precis.files import appending, sync_directory, write_whole
from precis.judging.study import VERDICTS, JudgingStudy, whole_lines
from precis.lock import locked_place
from precis.untrusted import look_at

Side = Literal["left", "right", "same"]
SIDES: tuple[Side, ...] = ("left", "right", "same")
MOST_REASON = 2000  # characters


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What a judge said on a page: the better side by each criterion.

    Attributes:
        page: number of the page among the judge's, from 0.
        reasons: criterion -> why; only where the judge wrote something.
        seconds: from the page's first sight to the answer.
        time: when it was kept, in UTC.
    """

    judge: str
    page: int
    choices: dict[str, str]
    reasons: dict[str, str]
    seconds: float
    time: str

    def first_won(self, study: JudgingStudy, criterion: str) -> float:
        """1 where the item's first summary is better, 0 where the second is, 0.5 where they are the same."""
        choice = self.choices[criterion]
        if choice == "same":
            return 0.5
        return float((choice == "left") == study.layout.pages[self.judge][self.page].first_left)


def read_verdicts(study: JudgingStudy) -> dict[tuple[str, int], Verdict]:
    """(judge, page) -> the last verdict on it; read without a lock, so that a report may be made meanwhile.

    Raises:
        UserError: a line is none of this study's.
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
    """The verdict that a record is.

    Raises:
        UserError: judge, page, criteria or values are none of this study's.
    """
    judge, page = record.get("judge"), record.get("page")
    if not isinstance(judge, str) or judge not in study.layout.pages:
        raise UserError("names no judge of this study")
    if not isinstance(page, int) or isinstance(page, bool) or not 0 <= page < len(study.layout.pages[judge]):
        raise UserError("names no page of this judge")
    choices, reasons = record.get("choices"), record.get("reasons", {})
    if not isinstance(choices, dict) or choices.keys() != set(study.protocol.keys):
        raise UserError("needs a choice for each criterion, and no other")
    if not all(isinstance(one, str) and one in SIDES for one in choices.values()):
        raise UserError(f"a choice is one of {', '.join(SIDES)}")
    if not isinstance(reasons, dict) or not reasons.keys() <= choices.keys():
        raise UserError("reasons are given for criteria")
    if not all(isinstance(one, str) and len(one) <= MOST_REASON for one in reasons.values()):
        raise UserError(f"a reason is a text of at most {MOST_REASON:,} characters")
    if problem := next(filter(None, map(invalid_text, reasons.values())), ""):
        raise UserError(f"a reason {problem}")
    seconds = record.get("seconds", 0.0)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < 1e9:
        raise UserError("seconds is a number from 0 on")
    return Verdict(
        judge=judge,
        page=page,
        choices={key: choices[key] for key in study.protocol.keys},
        reasons={key: text for key, text in reasons.items() if text.strip()},
        seconds=float(seconds),
        time=str(record.get("time", "")),
    )


class VerdictStore:
    """The one writer of a study's verdicts; `add` returns when the line is on the disk."""

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
            UserError: a line is none of this study's.
        """
        path = study.folder / VERDICTS
        with locked_place(path, doing="collecting"):
            read_verdicts(study)  # before anything is changed
            if look_at(path) is not None:
                cut_torn_line(path)
            file = appending(path)
            with file:
                sync_directory(path.parent)
                yield cls(study, file)

    def add(self, record: Mapping[str, Any]) -> Verdict:
        """Keep a verdict.

        Raises:
            UserError: it is none of this study's.
            OSError: it could not be written; it is not kept.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        verdict = checked(self.study, {**record, "time": now})
        line = (json.dumps(asdict(verdict), ensure_ascii=False) + "\n").encode()
        with self._lock:
            if self._broken:
                cut_torn_line(self._path)
            self._broken = True
            write_whole(self._path, self._file, line)
            os.fsync(self._file.fileno())
            self._broken = False
            self.verdicts[verdict.judge, verdict.page] = verdict
        return verdict

    def next_page(self, judge: str) -> int:
        """The first page without a verdict; the number of pages where there is none."""
        pages = len(self.study.layout.pages[judge])
        return next((page for page in range(pages) if (judge, page) not in self.verdicts), pages)
