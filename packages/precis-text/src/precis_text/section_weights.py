"""Sections of papers and reports that say more of a document than others: conclusions, and not methods.

`section_weights.toml` has the headings. Other headings end a section, except in methods: those have parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from precis_text.tables import read_table
from precis_text.units import TextUnit

_TABLE = read_table("section_weights.toml")
_FACTORS = {
    heading.strip(): float(group["factor"])
    for group in _TABLE.values()
    for heading in group["headings"].split("|")
}
_METHODS = float(_TABLE["methods"]["factor"])
_INGREDIENTS = frozenset(_TABLE["ingredients"]["headings"].split("|"))
_HEADING = re.compile(r"(?:#{1,6}\s+)?(?:(\d{1,2}|[ivx]{1,4})(?:\.\d+)*[.)]?\s+)?(.*?)[\s.:]*")


def section_weights(units: Sequence[TextUnit]) -> list[float]:
    """Return the factor on the score of each unit of a document, by the section that it is in."""
    headings = [_HEADING.fullmatch(unit.text.lower()) if unit.heading else None for unit in units]
    listed = [place for place, found in enumerate(headings) if found and found[2] in _FACTORS]
    labels = [unit.text.partition(":")[0].lower() if ":" in unit.text else "" for unit in units]
    labels = [
        label if label in _FACTORS and not found else ""
        for label, found in zip(labels, headings, strict=True)
    ]
    heads = {*labels, *(found[2] for found in headings if found)} & {*_FACTORS}
    is_labelled = len({*labels} - {""}) > 1
    is_recipe = not heads.isdisjoint(_INGREDIENTS) and all(_FACTORS[head] < 1 for head in heads)
    methods = {name for name, factor in _FACTORS.items() if factor == _METHODS}
    factors = _FACTORS | dict.fromkeys(methods if is_recipe else _INGREDIENTS, 1.0)
    weights, weight, number = [], 1.0, None
    for place, found in enumerate(headings):
        if found is not None:
            is_part = weight == _METHODS and place < listed[-1] and found[1] in (None, number)
            if found[2] in _FACTORS or not is_part:
                weight, number = factors.get(found[2], 1.0), found[1]
        label = labels[place] if is_labelled else ""  # "Conclusion: It rains more."
        weights.append(factors[label] if label else weight)
    return weights
