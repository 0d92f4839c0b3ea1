"""Spreadsheets (.xlsx, .xls, .ods), by calamine: sheets under their names, rows as lines of cells between bars.

Text boxes follow the sheets. Comments, charts, page headers and hidden sheets are left out and named.
"""

from __future__ import annotations

import datetime
import re
from io import BytesIO
from zipfile import ZipFile

from precis_text.documents.archives import open_archive, part_of
from precis_text.documents.html_text import words_in
from precis_text.documents.passages import Passages, Writer
from precis_text.documents.word_parts import texts_in
from precis_text.errors import UserError

_WHAT = "a spreadsheet"
_MOST_CELLS = 2_000_000
_PAGE_HEADS = re.compile(rb"<(?:odd|even|first)(?:Header|Footer)>([^<]*)<")


def read(content: bytes) -> Passages:
    """Read the values of a spreadsheet's cells; formulas are not calculated.

    Raises:
        UserError: it is locked, damaged, too large, or contains no text.
    """
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetVisibleEnum

    writer, boxes = Writer(), list[str]()
    if content.startswith(b"PK"):
        with open_archive(content, what=_WHAT) as archive:
            boxes = _around(archive, writer)
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
    for text in boxes:
        writer.add(text)
    return writer.finished()


def _around(archive: ZipFile, writer: Writer) -> list[str]:
    """Return the text boxes of the sheets, and name what is around the cells."""
    boxes: list[str] = []
    for name in archive.namelist():
        if name.startswith("xl/drawings/drawing") and name.endswith(".xml"):
            boxes += filter(None, map(texts_in, part_of(archive, name, what=_WHAT)))
        elif name.startswith(("xl/comments", "xl/threadedComments/")) and name.endswith(".xml"):
            writer.leave_out("comments", texts_in(part_of(archive, name, what=_WHAT)))
        elif name.startswith("xl/charts/chart"):
            writer.leave_out("charts", texts_in(part_of(archive, name, what=_WHAT)))
        elif name.startswith("xl/worksheets/sheet") and name.endswith(".xml"):
            found = b" ".join(_PAGE_HEADS.findall(archive.read(name))).decode("utf-8", "replace")
            writer.leave_out("page headers and footers", found)
        elif name == "content.xml":  # of OpenDocument
            root = part_of(archive, name, what=_WHAT)
            for each in root.iter("{*}annotation"):
                writer.leave_out("comments", words_in(each))
            boxes += [words_in(each) for each in root.iter("{*}custom-shape", "{*}text-box")]
    return boxes


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
