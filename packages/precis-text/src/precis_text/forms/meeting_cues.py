"""The words by which each language says the parts of minutes; `minutes.toml` lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from typing import Any

from precis_text.language import language_of
from precis_text.minutes_heads import heads_in
from precis_text.motions import Motions, motions_in
from precis_text.tables import read_table
from precis_text.words import unicode_words

_DEFAULT = "en"
_LETTERS = 4000  # characters by which the language is detected
_PARTWISE, _WORDS = ("assigned", "due"), ("hollow", "nobody")


@dataclass(frozen=True)
class Cues:
    """The words of a language that mark the parts of minutes; see `minutes.toml`."""

    labels: Mapping[str, str]
    heads: Mapping[str, re.Pattern[str]]
    columns: Mapping[str, re.Pattern[str]]
    done: re.Pattern[str]
    decisions: re.Pattern[str]
    undecided: re.Pattern[str]
    objects: re.Pattern[str]
    promises: re.Pattern[str]
    requests: re.Pattern[str]
    idle: re.Pattern[str]
    open: re.Pattern[str]
    hours: re.Pattern[str]
    asks: re.Pattern[str]
    greets: re.Pattern[str]
    next: re.Pattern[str]
    topics: re.Pattern[str]
    accepts: re.Pattern[str]
    declines: re.Pattern[str]
    unknown: re.Pattern[str]
    assigned: Sequence[re.Pattern[str]]
    shared: re.Pattern[str]
    letters: re.Pattern[str]
    wishes: re.Pattern[str]
    elsewhen: re.Pattern[str]
    due: Sequence[re.Pattern[str]]
    agrees: re.Pattern[str]
    proposals: re.Pattern[str]
    tasks: re.Pattern[str]
    concludes: re.Pattern[str]
    moved: Motions
    hollow: frozenset[str]
    nobody: frozenset[str]

    def undated(self, text: str) -> str:
        """Return a statement without its dates."""
        return reduce(lambda left, due: due.sub("", left), self.due, text)

    def decides(self, text: str) -> bool:
        """Check whether a statement says itself what is decided."""
        is_told = self.decisions.search(text) and not self.undecided.search(text)
        return bool(is_told) and not self.is_hollow(text)

    def is_hollow(self, text: str) -> bool:
        """Check whether a statement lacks content, such as "Good, then that is decided." and "Open questions:"."""
        is_head = any(head.fullmatch(text) for head in self.heads.values())
        return is_head or self.hollow.issuperset(unicode_words(text.replace("'", " ")))


def cues_of(document: str) -> Cues:
    """Return the words of a document's language, else the English ones."""
    return _cues_of_text(document[:_LETTERS])


@lru_cache(maxsize=16)
def _cues_of_text(text: str) -> Cues:
    code = language_of(text) or _code_of_heads(text) or _DEFAULT
    if code == "cyrillic" and "ы" in text and "і" not in text:
        code = "ru"
    return _cues_by_code().get(code, _cues_by_code()[_DEFAULT])


def _code_of_heads(text: str) -> str:
    """Return the language with most of the lines that are headings of parts; "" without any. Minutes may be short."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    counts = {
        code: sum(any(head.fullmatch(line) for head in cues.heads.values()) for line in lines)
        for code, cues in _cues_by_code().items()
    }
    best = max(counts, key=lambda code: counts[code])
    return best if counts[best] else ""


@cache
def _cues_by_code() -> Mapping[str, Cues]:
    """Load the languages that have labels, by code; those without patterns of their own have the English ones."""
    table = read_table("forms/minutes.toml")
    return {code: _cues(table[_DEFAULT] | record, code) for code, record in table.items()}


def _cues(record: Mapping[str, Any], code: str) -> Cues:
    labels = record["labels"]
    listed = {part: heads_in(part, code) or heads_in(part, _DEFAULT) for part in ("decisions", "actions")}
    heads = {part: "|".join(map(re.escape, each)) for part, each in listed.items()} | record["heads"]
    made: dict[str, Any] = {"labels": labels, "moved": motions_in(code)}
    made["heads"] = {
        part: _pattern(rf"[\W\d]*(?:{re.escape(labels[part])}|{head})\W*") for part, head in heads.items()
    }
    made["columns"] = {name: _pattern(rf"\W*(?:{column})\W*") for name, column in record["columns"].items()}
    for name in record.keys() - made.keys():
        if name in _PARTWISE:
            made[name] = [_pattern(each) for each in record[name]]
        elif name in _WORDS:
            made[name] = frozenset(record[name].split())
        else:
            each = [record[name]] if isinstance(record[name], str) else record[name]
            made[name] = _pattern("|".join(f"(?:{pattern})" for pattern in each))
    return Cues(**made)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)
