"""Writes a study's report next to its verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from precis.storage.atomic import write_file
from precis_judge.judging_study import open_study
from precis_judge.report_page import report_page
from precis_judge.report_tables import tables
from precis_judge.study_report import JudgingReport, make_report
from precis_judge.tables import Table
from precis_text.errors import UserError


def publish(
    folder: Path, *, leave_out: Sequence[str] = (), seed: int = 0
) -> tuple[JudgingReport, list[Table]]:
    """Write report.json and report.html; return the report and its tables.

    Raises:
        UserError: the study or its verdicts are missing, or evalica is not installed.
    """
    study = open_study(folder)
    try:
        report = make_report(study, leave_out=leave_out, seed=seed)
    except ModuleNotFoundError as error:
        raise UserError(
            f"reports need {error.name}, which is not installed: pip install 'precis-summarizer[judge]'"
        ) from None
    write_file(folder / "report.json", report.to_json())
    write_file(folder / "report.html", report_page(report))
    return report, tables(report)
