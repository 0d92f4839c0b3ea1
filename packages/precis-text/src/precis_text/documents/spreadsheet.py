"""Spreadsheets (.xlsx, .xls, .ods), by calamine: sheets under their names, rows as lines of cells between bars."""

from __future__ import annotations

import datetime
from io import BytesIO

from precis_text.documents.archives import open_archive
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_WHAT = "a spreadsheet"
_MOST_CELLS = 2_000_000


def read(content: bytes) -> Passages:
    """Read the values of a spreadsheet's cells; formulas are not calculated.

    Raises:
        UserError: it is locked, damaged, too large, or contains no text.
    """
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetVisibleEnum

    if content.startswith(b"PK"):
        open_archive(content, what=_WHAT).close()
    writer = Writer()
    try:
        book = CalamineWorkbook.from_filelike(BytesIO(content))
        cells = 0
        for sheet in book.sheets_metadata:
            rows = book.get_sheet_by_name(sheet.name).to_python(skip_empty_area=True)
            cells += sum(map(len, rows))
            if cells > _MOST_CELLS:
                raise UserError(f"contains more than {_MOST_CELLS:,} cells; split it")
            lines = [line for row in rows if (line := _line([_shown(value) for value in row]))]
            if sheet.visible != SheetVisibleEnum.Visible:
                writer.leave_out("hidden sheets", "\n".join(lines))
            elif lines:
                writer.heading(sheet.name)
                writer.add("\n".join(lines))
    except PasswordError:
        raise UserError("is password-protected; save it without a password") from None
    except CalamineError as error:
        raise UserError(f"is damaged or not {_WHAT} ({str(error).splitlines()[0]}); save it again") from None
    return writer.finished()


def _line(cells: list[str]) -> str:
    while cells and not cells[-1]:
        cells.pop()
    return " | ".join(cells)


def _shown(value: object) -> str:
    """Write a value as a table shows it: whole numbers without a point, midnight as its day."""
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime.datetime):
        return str(value.date() if value.time() == datetime.time() else value)
    return " ".join(str(value).split())
