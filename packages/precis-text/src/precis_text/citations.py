"""Text without its references to sources and figures, which lead nowhere in a summary: "[12, 13]", "(Fig. 3a)".

Without "As discussed above," or the head or greeting of a mail at its start, marks of quoted mail ("> >"), brackets
around nothing, a lone mark of emphasis and the addresses of Markdown's links, too.

A reference in brackets goes with the space before it. One that the sentence needs stays: "see [12]", "in (Gray, 1978)".
Names with years, and numbers behind a word without a space, count as references only in a document with several of
them: "(Paris, 1924)" may be a place, and "rows[3]" a program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from precis_text.tables import read_table

_TABLE = read_table("citations.toml")


def _whole(pattern: str) -> str:
    """Return a pattern with those of the table that it names: "<<year>>"."""
    return re.sub(r"<<(\w+)>>", lambda other: _whole(_TABLE[other[1]]), pattern)


_POINTER, _EMPHASIS, _WHOLE, _GREETING, _OPENING, _ITEM, _NEEDS, _MAIL, _LINK, _COMPARED = (
    re.compile(_whole(_TABLE[name])) for name in (
        "pointer", "emphasis", "whole", "greeting", "opening", "item", "needs", "mail", "link", "compared",
    )
)  # fmt: skip
_FEWEST = 5  # such references, and those with names and years, in a document where they are references


@dataclass(frozen=True)
class Citations:
    """The references of a document that its sentences do not need.

    Attributes:
        pattern: what one of them, or several in a row, look like.
        is_mail: whether the document is a mail, whose greetings are not shown.
        compared: the words around each sign of a mail with one space before it: "cost > income".
    """

    pattern: re.Pattern[str]
    is_mail: bool = False
    compared: frozenset[str] = frozenset()

    @classmethod
    def of(cls, document: str) -> Citations:
        """Return the references of a document."""
        several = [("names", r"\s<<names>>"), ("at_once", "<<at_once>>"), ("quoted_twice", "<<quoted>>")]
        is_mail = _MAIL.search(document) is not None
        several += [("joined", "<<quoted_once>>")] if is_mail else []
        found = [kind for name, kind in several if len(re.findall(_whole(_TABLE[name]), document)) >= _FEWEST]
        compared = frozenset(_COMPARED.findall(document) if is_mail else ())
        pattern = _whole("|".join((_TABLE["always"], *found, _TABLE["nothing"])))
        return cls(re.compile(rf"(?:{pattern})+", re.IGNORECASE), is_mail, compared)

    def left_out(self, text: str) -> str:
        """Return a text on one line without its references; the text itself if nothing else is there."""

        def kept(found: re.Match[str]) -> str:
            if not any(map(str.isalnum, found.group())):
                if ">" not in found.group():
                    return ""
                before, after = text[: found.start()], text[found.end() :]
                is_compared = f"{before.rpartition(' ')[2]} > {after.partition(' ')[0]}" in self.compared
                return found.group() if is_compared else " "
            return found.group() if _NEEDS.search(text[: found.start()]) else ""

        text = _LINK.sub(r"\1", text)
        shown = _OPENING.sub("", self.pattern.sub(kept, text).strip())
        if self.is_mail and (greeting := _GREETING.match(shown)):
            shown = shown[greeting.end()].upper() + shown[greeting.end() + 1 :]
        shown = _ITEM.sub(lambda label: f"{label[1]}: " if label[1] else "", shown)
        shown = _POINTER.sub(lambda found: found[1].upper(), shown)
        shown = _EMPHASIS.sub("", shown) if shown.count("*") + shown.count("_") == 1 else shown
        shown = _WHOLE.sub(r"\2", shown)
        return shown if any(map(str.isalnum, shown)) else text
