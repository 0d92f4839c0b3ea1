"""Rows of tables as a reader needs them: each cell has the name of its column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from precis_text.forms.form import ScoredText

CELLS = " | "  # between the cells of a row
_DIGITS = re.compile(r"[\d.,\s]+")
_NUMBER = re.compile(r"\W*\d")


def named_rows(source: ScoredText) -> ScoredText:
    """Return a document in which each row of a table names the column of each cell, as a reader needs it."""
    rows = rows_of(source)
    units = [replace(unit, text=rows.get(place, unit.text)) for place, unit in enumerate(source.units)]
    return replace(source, units=units)


def rows_of(source: ScoredText) -> dict[int, str]:
    """Return the text of each row of a table, without those that name the columns."""
    tables: list[list[int]] = []
    for place, unit in enumerate(source.units):
        if CELLS not in unit.text or unit.speaker:
            continue
        before = source.units[tables[-1][-1]].stop if tables else 0
        if tables and source.document[before : unit.start].strip(" ") == "\n":
            tables[-1].append(place)
        else:
            tables.append([place])
    found: dict[int, str] = {}
    for table in tables:
        found |= _named_cells(table, [source.units[place].text.split(CELLS) for place in table])
    return found


def _named_cells(places: Sequence[int], rows: Sequence[Sequence[str]]) -> dict[int, str]:
    """Return the rows of a table with the names of their columns, if the first row has them.

    It lacks digits but above numbers ("Sales Q1"). Two columns may be a list of names and values, unless all values are
    numbers of one unit.
    """
    names, *others = [[cell.strip(" |") for cell in row] for row in rows]
    is_named = bool(others) and all(
        not any(map(str.isdigit, name))
        or (name[0].isalpha() and all(map(_NUMBER.match, filter(None, below))))
        for name, *below in zip_longest(names, *others, fillvalue="")
    )
    if len(names) == 2:
        values = [row[-1] for row in others]
        is_number = all(any(map(str.isdigit, value)) for value in values)
        is_named = is_named and is_number and len({_DIGITS.sub("", value) for value in values}) == 1
    if not is_named:
        return {place: CELLS.join(row) for place, row in zip(places, [names, *others], strict=True)}
    shown = (
        CELLS.join(
            f"{name}: {cell}" if name else cell
            for name, cell in zip_longest(names, row[: len(names)], fillvalue="")
            if cell
        )
        + "".join(f"{CELLS}{cell}" for cell in row[len(names) :])
        for row in others
    )
    return dict(zip(places[1:], shown, strict=True))
