"""Units that are not statements, which a summary does not use while the document has sentences.

These are table rows, labels, captions, lists of contents, of sources and of names, letter heads, copyright lines, code,
and what newsletters and web pages say about themselves. `asides.toml` has the patterns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from precis_text.minutes_heads import DECISIONS
from precis_text.tables import read_table

_TABLE = read_table("asides.toml")
_LINES = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _TABLE["line"].items()}
_SENTENCES = [re.compile(pattern, re.IGNORECASE) for pattern in _TABLE["sentence"].values()]
_HEADINGS = {name: frozenset(words.split("|")) for name, words in _TABLE["headings"].items()}
CONTENTS = _HEADINGS["contents"]
_MAIL = frozenset(_TABLE["labels"]["mail"].split())

CLOSED = re.compile(r"""[.!?…。！？؟।][\])}"'”’»]*\s*$""")
"""The end of a text that an end mark closes."""
_LABEL = re.compile(r"\s*(?P<label>[^\s:][^\n:.!?]{0,39})[:：]\s+(?P<value>\S.*)?$")
_COLUMNS = re.compile(r"\S {3,}\S.* {3,}\S")
_LEADERS = re.compile(r"(?:\.\s?){4,}\s*\d{1,4}\s*$|…{2,}\s*\d{1,4}\s*$")
_QUOTED_CODE = re.compile(r"`[^`\n]*`")
_PAGE = re.compile(r"(?<=\s)\d{1,4}(?=\s+[^\W\d_a-z]|\s*$)")
_CONTACT = re.compile(r"[^\s@]{1,64}@\S+\.\w|https?://|www\.|\+\d[\d ()/-]{6,}|\bp\.?o\.? box\b", re.I)
_LETTERS = re.compile(r"[^\W\d_]+")
_LISTED = re.compile(r"[-*•–—]\s+[^\W_]|\(?\d{1,3}[.)]\s")
_NUMBERED = re.compile(r"^\(?(?:\d+(?:\.\d+)*|[a-z])[.)]?\s+")
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b|doi|https?://")
_WHOLE_LINE = re.compile(r"if\b.+\bthen\b|(?:else|end|break|pass|continue|endif|fi|done);?$")
_CODE_SIGNS = frozenset("={}();<>[]_|&$\\/")

_LONGEST = 2000  # characters: what is longer is a paragraph
_LONG_CELL, _LONG_LABEL, _LONG_VALUE, _LONG_CONTACT = 10, 10, 15, 8  # words
_LONG_SENTENCE = 30  # words of a sentence that a page says about itself
_LONG_LETTER = 12  # words of a salutation or a closing
_FEWEST_PAGES, _FEWEST_NAMES = 3, 4
# Least shares: of numbers in a row, of signs in code, of capitals in names
_NUMBERS, _SIGNS, _NAMES = 0.6, 0.12, 0.75


class Asides:
    """The asides of a document whose blocks are given in order: a heading decides what follows it."""

    def __init__(self) -> None:
        self._section = ""  # of the last heading: contents, sources or ""

    def after(self, block: str, *, is_heading: bool) -> None:
        """Take note of a block that was read: one of sources or contents begins, or ends, with a heading."""
        first = " ".join(block.strip().partition("\n")[0].split())
        named = _NUMBERED.sub("", first.lower()).rstrip(": ")
        section = next((name for name, words in _HEADINGS.items() if named in words), None)
        if section is not None:
            self._section = section
        elif self._section == "more":
            self._section = "" if is_heading or CLOSED.search(block) else "more"
        elif is_heading and not (self._section and _is_listed(first)):
            self._section = ""

    def has(self, text: str) -> bool:
        """Check whether a line, or lines of one sentence, is an aside as a whole."""
        if len(text) > _LONGEST:
            return False
        line = " ".join(text.split())
        words = line.split()
        if not any(map(str.isalnum, line)):  # the rule between two scenes
            return True
        if self._section == "sources" and _YEAR.search(line):
            return True
        if self._section == "more" and _is_link(line, words):
            return True
        if self._section == "contents" and not CLOSED.search(line):
            return True
        return (
            _is_row(text, words)
            or _is_label(line, words)
            or _is_contents(line)
            or _matches(line, "caption", "credited", "copyright", "entry", "imprint")
            or (len(words) <= _LONG_LETTER and _matches(line, "salutation", "closing"))
            or (len(words) <= _LONG_CONTACT and not CLOSED.search(line) and bool(_CONTACT.search(line)))
            or _is_names(line, words)
            or _is_code(line, words)
        )

    def is_address(self, lines: Sequence[str]) -> bool:
        """Check whether a block of lines is an address or a letterhead: no sentence, and a place or telephone."""
        most = _LONG_LABEL if len(lines) > 1 else _LONG_CONTACT
        is_told = any(
            CLOSED.search(line) or _LISTED.match(line) or len(_LETTERS.findall(line)) > most
            for line in lines
            if not self.has_sentence(line)
        )
        return not is_told and any(_LINES["address"].match(line) for line in lines)

    def is_furniture(self, line: str) -> bool:
        """Check whether a line belongs to the page around a text, so that it is not a heading either."""
        is_around = self.has_sentence(line) or _matches(line, "copyright")
        return is_around or (self._section == "more" and _is_link(line, line.split()))

    def has_sentence(self, sentence: str) -> bool:
        """Check whether a single sentence is an aside within a text."""
        few = len(sentence.split()) <= _LONG_SENTENCE
        return few and any(pattern.search(sentence) for pattern in _SENTENCES)


def greets(line: str) -> bool:
    """Check whether a line opens or closes a letter."""
    return _matches(line, "salutation", "closing")


def _matches(line: str, *names: str) -> bool:
    return any(_LINES[name].match(line) for name in names)


def _is_link(line: str, words: list[str]) -> bool:
    """Check whether a line may link to another page: a short one without an end mark, or an item."""
    return len(words) <= _LONG_SENTENCE and not (CLOSED.search(line) and not _NUMBERED.match(line))


def _is_listed(line: str) -> bool:
    return bool(_YEAR.search(line) or _LEADERS.search(line[-80:]) or _PAGE.search(line))


def _is_row(text: str, words: list[str]) -> bool:
    """Check whether a line is a row of a table: short cells, or mostly numbers."""
    text = _QUOTED_CODE.sub("", text)
    if "\n" not in text.strip() and (" | " in text or "\t" in text.strip() or _COLUMNS.search(text)):
        cells = re.split(r"\s\|\s|\t| {3,}", text.strip())
        if all(len(cell.split()) <= _LONG_CELL for cell in cells):
            return True
    numbers = sum(any(map(str.isdigit, word)) for word in words)
    return len(words) > 2 and numbers >= _NUMBERS * len(words) and not CLOSED.search(words[-1])


def _is_label(line: str, words: list[str]) -> bool:
    """Check whether a line is a label with a value: "Posted: Thursday"."""
    found = _LABEL.match(line)
    if found is None:
        return False
    if found["label"].lower().split()[0] in _MAIL:
        return len(words) <= _LONG_VALUE
    is_told = found["value"] is None or found["label"].lower().split()[-1] in DECISIONS
    return not (is_told or CLOSED.search(line)) and len(words) <= _LONG_LABEL


def _is_contents(line: str) -> bool:
    """Check whether a line ends in a page number after dots, or is a list of titles with growing page numbers."""
    if _LEADERS.search(line[-80:]):
        return True
    pages = [int(found.group()) for found in _PAGE.finditer(line)]
    grows = all(one <= other for one, other in pairwise(pages))
    return (
        len(pages) >= _FEWEST_PAGES and grows and not re.search(r"[.!?]\s", line) and not CLOSED.search(line)
    )


def _is_names(line: str, words: list[str]) -> bool:
    """Check whether a line lists names: parts between commas, most of whose words have capitals."""
    parts = [
        part for part in re.split(r"[,;]\s|\s(?:and|und|et|y|e)\s", line.partition(": ")[2] or line) if part
    ]
    if len(parts) < _FEWEST_NAMES or any(len(part.split()) > _FEWEST_NAMES for part in parts):
        return False
    letters = [word for word in words if word[0].isalpha() and len(word) > 3]
    return bool(letters) and sum(word[0].isupper() for word in letters) >= _NAMES * len(letters)


def _is_code(line: str, words: list[str]) -> bool:
    """Check whether a line is code: it opens like a statement, and many of its signs are those of programs."""
    if CLOSED.search(line) or not line.isascii() or not _LINES["code"].match(line):
        return False
    signs = sum(sign in _CODE_SIGNS for sign in _NUMBERED.sub("", line))
    opens = line.startswith(("$ ", ">>> ", "#include")) or _WHOLE_LINE.match(line) is not None
    return opens or signs >= _SIGNS * len("".join(words)) or (line[-1] in ";{}" and signs > 1)
