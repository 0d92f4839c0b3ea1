"""The answers in the forms of a PDF, and the texts that its readers wrote on a page, by PDFium.

Both are annotations: PDFium does not give them with the text of the page. An answer follows its label, which is the
nearest text to its left in the same row. Without one, it is a line of its own below the text above it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from precis_text.documents.passages import clean
from precis_text.documents.pdf_lines import Line

_MOST_ANNOTATIONS = 10_000  # of a page
_MOST_VALUE = 1_000_000  # bytes
_HIDDEN, _NOT_SHOWN, _PASSWORD = 1 << 1, 1 << 5, 1 << 13  # bits of flags
_ROW = 0.6  # of the letter size: how far the baseline of a label may be outside its field
_USUAL_SIZE, _STEP = 11.0, 1.2  # points, and from line to line as a multiple of it
_WIDTH = 0.5  # of the letter size: the usual width of a letter
_COMMENTS = ("TEXT", "HIGHLIGHT", "UNDERLINE", "SQUIGGLY", "STRIKEOUT", "CARET", "STAMP")


@dataclass(frozen=True)
class Answer:
    """The answer in a field.

    Attributes:
        text: one or more lines.
        box: left, bottom, right and top, in points.
        is_mark: whether it marks a box to its left as chosen, before its label.
    """

    text: str
    box: tuple[float, float, float, float]
    is_mark: bool = False


@dataclass(frozen=True)
class Annotations:
    """The contents of the annotations of a page.

    Attributes:
        answers: in the order of the file.
        comments: the number of remarks that readers attached to the text.
        passwords: the number of hidden answers.
        choices: the unmarked ones of lists.
        files: names of attached files.
    """

    answers: Sequence[Answer] = ()
    comments: int = 0
    passwords: int = 0
    choices: Sequence[str] = ()
    files: Sequence[str] = ()


def annotations_of(page: Any) -> Annotations:
    """Return the annotations of a page of `pypdfium2.PdfDocument`, whose forms were initialized if it has any."""
    import pypdfium2.raw as pdfium

    answers: list[Answer] = []
    choices: list[str] = []
    files: list[str] = []
    comments = passwords = 0
    count = min(_MOST_ANNOTATIONS, pdfium.FPDFPage_GetAnnotCount(page.raw))
    kinds = {getattr(pdfium, f"FPDF_ANNOT_{name}") for name in _COMMENTS}
    for number in range(count):
        raw = pdfium.FPDFPage_GetAnnot(page.raw, number)
        if not raw:
            continue
        try:
            note = _Annotation(pdfium, raw, page.formenv)
            if note.flags & (_HIDDEN | _NOT_SHOWN):
                continue
            if note.kind == pdfium.FPDF_ANNOT_WIDGET:
                answers += note.answers()
                choices += note.not_chosen()
                passwords += note.is_password
            elif note.kind == pdfium.FPDF_ANNOT_FREETEXT and note.contents:
                answers.append(Answer(note.contents, note.box))
            elif note.kind == pdfium.FPDF_ANNOT_FILEATTACHMENT:
                files.append(note.contents or "a file without a name")
            elif note.kind in kinds and note.contents:
                comments += 1
        finally:
            pdfium.FPDFPage_CloseAnnot(raw)
    return Annotations(answers, comments, passwords, choices, files)


class _Annotation:
    def __init__(self, pdfium: Any, raw: Any, forms: Any) -> None:
        self._pdfium, self._raw = pdfium, raw
        self._forms = None if forms is None else forms.raw
        self.kind, self.flags = pdfium.FPDFAnnot_GetSubtype(raw), pdfium.FPDFAnnot_GetFlags(raw)

    @property
    def box(self) -> tuple[float, float, float, float]:
        found = self._pdfium.FS_RECTF()
        self._pdfium.FPDFAnnot_GetRect(self._raw, found)
        return found.left, found.bottom, found.right, found.top

    @property
    def contents(self) -> str:
        return self._string(b"Contents")

    def _string(self, key: bytes) -> str:
        return self._text(
            lambda into, size: self._pdfium.FPDFAnnot_GetStringValue(self._raw, key, into, size)
        )

    @property
    def is_password(self) -> bool:
        if self._forms is None or self._type != self._pdfium.FPDF_FORMFIELD_TEXTFIELD:
            return False
        return bool(self._pdfium.FPDFAnnot_GetFormFieldFlags(self._forms, self._raw) & _PASSWORD)

    @property
    def _type(self) -> int:
        return int(self._pdfium.FPDFAnnot_GetFormFieldType(self._forms, self._raw))

    def answers(self) -> Iterator[Answer]:
        pdfium = self._pdfium
        if self._forms is None:  # a page that was taken out of its form
            value = self._string(b"V")
            if value:
                yield Answer(value, self.box)
            return
        if self.is_password:
            return
        kind = self._type
        if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
            if pdfium.FPDFAnnot_IsChecked(self._forms, self._raw):
                yield Answer("[x]", self.box, is_mark=True)
        elif kind in (
            pdfium.FPDF_FORMFIELD_LISTBOX,
            pdfium.FPDF_FORMFIELD_TEXTFIELD,
            pdfium.FPDF_FORMFIELD_COMBOBOX,
        ):
            chosen = ", ".join(label for label, is_chosen in self._options() if is_chosen)
            value = chosen or self._value
            if value:
                yield Answer(value, self.box)

    def not_chosen(self) -> list[str]:
        """Return the choices of a list box that are not chosen; those of a menu if none is."""
        pdfium = self._pdfium
        lists = (pdfium.FPDF_FORMFIELD_LISTBOX, pdfium.FPDF_FORMFIELD_COMBOBOX)
        if self._forms is None or self._type not in lists:
            return []
        options = [*self._options()]
        is_answered = any(is_chosen for _, is_chosen in options) or bool(self._value)
        if is_answered and self._type == pdfium.FPDF_FORMFIELD_COMBOBOX:
            return []
        return [label for label, is_chosen in options if not is_chosen]

    @property
    def _value(self) -> str:
        return self._text(
            lambda into, size: self._pdfium.FPDFAnnot_GetFormFieldValue(self._forms, self._raw, into, size)
        )

    def _options(self) -> Iterator[tuple[str, bool]]:
        """Yield the choices of a list as shown, and whether each is chosen; none for other fields."""
        pdfium = self._pdfium
        count = min(_MOST_ANNOTATIONS, pdfium.FPDFAnnot_GetOptionCount(self._forms, self._raw))
        for number in range(count):
            label = self._text(
                lambda into, size, number=number: pdfium.FPDFAnnot_GetOptionLabel(
                    self._forms, self._raw, number, into, size
                )
            )
            yield label, bool(pdfium.FPDFAnnot_IsOptionSelected(self._forms, self._raw, number))

    def _text(self, ask: Any) -> str:
        """Return what a function of PDFium writes into a buffer, as text."""
        size = min(_MOST_VALUE, ask(None, 0))
        buffer = ctypes.create_string_buffer(max(2, size))
        ask(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
        text = buffer.raw[:size].decode("utf-16-le", "replace").partition("\0")[0]
        return clean(text).strip()


def with_answers(lines: Sequence[Line], answers: Sequence[Answer], page: int) -> list[Line]:
    """Return the lines of a page and the answers in its fields, each behind its label."""
    found = [cell for line in lines for cell in line.cells or (line,)] if answers else [*lines]
    for answer in sorted(answers, key=lambda one: (-one.box[3], one.box[0])):
        first, *more = [" ".join(line.split()) for line in answer.text.splitlines() if line.strip()]
        place = _marked(found, answer) if answer.is_mark else _label(found, answer)
        if place is None:
            place = _above(found, answer)
            found.insert(place, _line(first, answer, page))
        elif answer.is_mark:
            found[place] = replace(found[place], text=f"{first} {found[place].text}", is_row=True)
        else:
            label = found[place]
            found[place] = replace(label, text=f"{label.text} {first}", right=answer.box[2], is_row=True)
        found[place + 1 : place + 1] = [
            _line(text, answer, page, below=number) for number, text in enumerate(more, start=1)
        ]
    return found


def _line(text: str, answer: Answer, page: int, *, below: int = 0) -> Line:
    """Build the line of an answer, which is `below` lines below the first one in its field."""
    left, bottom, _, top = answer.box
    size = min(_USUAL_SIZE, max(1.0, 0.7 * (top - bottom)))
    right = left + _WIDTH * size * len(text)
    base = top - size - below * _STEP * size
    return Line(text=text, page=page, left=left, right=right, base=base, size=size, is_row=True)


def _in_row(line: Line, answer: Answer) -> bool:
    _, bottom, _, top = answer.box
    return line.direction == 0 and bottom - _ROW * line.size <= line.base <= top


def _label(lines: Sequence[Line], answer: Answer) -> int | None:
    """Find the nearest line that ends at the left of a field, in the row of its first line."""
    left, _, _, top = answer.box
    row = [
        (left - line.right, number)
        for number, line in enumerate(lines)
        if _in_row(line, answer) and line.right <= left + line.size and top - line.base < 3 * line.size
    ]
    return min(row)[1] if row else None


def _marked(lines: Sequence[Line], answer: Answer) -> int | None:
    """Find the nearest line that starts at the right of a box."""
    right = answer.box[2]
    row = [
        (line.left, number)
        for number, line in enumerate(lines)
        if _in_row(line, answer) and line.left >= right - line.size
    ]
    return min(row)[1] if row else _label(lines, answer)


def _above(lines: Sequence[Line], answer: Answer) -> int:
    """Return the index behind the nearest line above a field."""
    top = answer.box[3]
    above = [(line.base - top, -number) for number, line in enumerate(lines) if line.base >= top - line.size]
    return 1 - min(above)[1] if above else 0
