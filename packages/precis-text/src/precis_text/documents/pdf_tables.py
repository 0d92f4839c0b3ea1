"""Tables and columns in the lines of a PDF page: lines whose words form cells.

PDFium joins all text on one baseline to a line, and starts a line where the file continues elsewhere. So

    a row of a table   is one line with wide spaces, or a line for each cell,
    two columns        are two lines, or one line with a wide space if the file has row after row.

Cells of a table are short, and lines of a column are long. Here rows of tables get a mark between their cells, and
columns follow one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from statistics import median

from precis_text.documents.pdf_lines import WIDE_GAP, Line, is_right_to_left, with_cells

_BETWEEN = " | "  # the cells of a row
_NUMBER = re.compile(r"(?:\w+ )?\d+(?:\.\d+)*\.?")  # of a section: "2.1", "Item 1"
_FEWEST_ROWS = 2
_LONG = 4  # words: lines of columns have at least so many, cells fewer
_SHORT = 6  # words: the most in a cell that is a line of its own
_SAME_ROW = 0.2  # of the letter size: how far baselines of a row are apart
_FEWEST_OF_COLUMNS = 4  # rows
_SAME_PLACE = 0.3  # of the letter size: how far the edges of cells below each other are apart
_ALIGNED = 2.0  # times the letter size: how far the left edges of a column are apart


def in_reading_order(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page with each table in rows and each column in one piece."""
    found: list[Line] = []
    for has_cells, run in groupby(_aligned(_side_by_side(lines)), key=lambda line: bool(line.cells)):
        group = [*run]
        if not has_cells:
            found += _grids(group)
        elif _are_columns(group):
            found += [line.cells[0] for line in group] + [line.cells[1] for line in group]
        elif len(group) >= _FEWEST_ROWS and not all(map(_is_numbered_heading, group)):
            found += map(_row, group)
        else:
            found += group
    return found


def _is_numbered_heading(line: Line) -> bool:
    return line.is_bold and _NUMBER.fullmatch(line.cells[0].text) is not None


def _aligned(lines: Iterable[Line]) -> list[Line]:
    """Return the lines; one next to a row of a table is divided where its parts are below the cells of that."""
    found = [*lines]
    for step in (1, -1):
        for row, place in pairwise([*range(len(found))][::step]):
            if _continues(found[place], found[row]):
                found[place] = with_cells(found[place], found[place].parts, found[place].parts)
    return found


def _continues(line: Line, row: Line) -> bool:
    """Check whether the parts of a line are those of a row next to it: their edges, or in a row their places."""
    if not (line.parts and row.cells and row.size == line.size and all(map(_is_short, line.parts))):
        return False
    pairs = zip(line.parts[1:], row.cells[1:], strict=False)
    is_over = all(part.left < cell.right and cell.left < part.right for part, cell in pairs)
    is_row = bool(line.cells) and len(line.parts) == len(row.cells) and is_over
    return is_row or all(any(_is_below(part, cell) for cell in row.cells[1:]) for part in line.parts[1:])


def _is_below(part: Line, cell: Line) -> bool:
    return min(abs(part.left - cell.left), abs(part.right - cell.right)) <= _SAME_PLACE * part.size


def _side_by_side(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines, joined where the file continues in the same row behind a wide space."""
    joined: Line | None = None
    for line in lines:
        if joined is not None and _follows(joined, line):
            cells = (*(joined.cells or (joined,)), *(line.cells or (line,)))
            text = f"{joined.text} {line.text}"
            joined = replace(joined, text=text, right=line.right, parted=line.parted, cells=cells)
            continue
        if joined is not None:
            yield joined
        joined = line
    if joined is not None:
        yield joined


def _follows(line: Line, other: Line) -> bool:
    return (
        line.page == other.page
        and line.direction == other.direction
        and not line.parted
        and abs(line.base - other.base) <= _SAME_ROW * line.size
        and other.left - line.right >= WIDE_GAP * line.size
    )


def _row(line: Line) -> Line:
    text = _BETWEEN.join(cell.text for cell in line.cells)
    return replace(line, text=text + line.parted, parted="", is_row=True)


def _are_columns(lines: Sequence[Line]) -> bool:
    """Check whether these lines are those of two columns of text, not the rows of a table."""
    if len(lines) < _FEWEST_OF_COLUMNS or any(len(line.cells) != 2 for line in lines):
        return False
    starts = [line.cells[1].left for line in lines]
    is_aligned = max(starts) - min(starts) < _ALIGNED * lines[0].size
    return is_aligned and all(
        median(len(line.cells[column].text.split()) for line in lines) >= _LONG for column in (0, 1)
    )


def _grids(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield these lines; cells that are lines of their own become rows."""
    for is_short, run in groupby(lines, key=_is_short):
        group = [*run]
        rows = _rows(group) if is_short else []
        if not rows:
            yield from group
            continue
        first, last = next(k for k, row in enumerate(rows) if len(row) > 1), len(rows)
        while len(rows[last - 1]) == 1:
            last -= 1
        for number, row in enumerate(rows):
            yield _joined(row) if first <= number < last else row[0]


def _is_short(line: Line) -> bool:
    return len(line.text.split()) <= _SHORT and not line.parted and line.direction == 0


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Return short lines by their rows, if these are a table of two rows or more; otherwise nothing."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: -line.base):
        if rows and abs(rows[-1][0].base - line.base) <= _SAME_ROW * line.size:
            rows[-1].append(line)
        else:
            rows.append([line])
    full = [row for row in rows if len(row) > 1]
    if len(full) < _FEWEST_ROWS or _is_prose(lines) or any(map(_overlaps, full)):
        return []
    inside = rows[rows.index(full[0]) : rows.index(full[-1]) + 1]
    widths = {len(row) for row in inside}
    return rows if len(inside) == len(full) and len(widths) <= 2 else []


def _is_prose(lines: Sequence[Line]) -> bool:
    """Check whether sentences continue from line to line."""
    goes_on = sum(line.text[:1].islower() for line in lines)
    return 2 * goes_on > len(lines) or median(len(line.text.split()) for line in lines) >= _LONG


def _overlaps(row: Sequence[Line]) -> bool:
    ordered = sorted(row, key=lambda line: line.left)
    return any(line.right > after.left for line, after in pairwise(ordered))


def _joined(row: Sequence[Line]) -> Line:
    ordered = sorted(row, key=lambda line: line.left)  # lines from right to left are mirrored
    if len({is_right_to_left(line.text) for line in ordered}) > 1:
        ordered = [*row]
    text = _BETWEEN.join(line.text for line in ordered)
    return replace(ordered[0], text=text, right=ordered[-1].right, is_row=True)
