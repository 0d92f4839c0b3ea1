"""Text without its references to sources and figures, which lead nowhere in a summary: "[12, 13]", "(Fig. 3a)".

Without "As discussed above," or the head or greeting of a mail at its start, marks of quoted mail ("> >"), brackets
around nothing and a lone mark of emphasis, too.

A reference in brackets goes with the space before it. One that the sentence needs stays: "see [12]", "in (Gray, 1978)".
Names with years, and numbers behind a word without a space, count as references only in a document with several of
them: "(Paris, 1924)" may be a place, and "rows[3]" a program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBERS = r"\[(?:\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*|note\s\d{1,3}|[a-z]|citation\sneeded)\]"
_FIGURE = r"(?:fig(?:ure)?s?|tab(?:le)?s?|eqs?|equations?|appendix|abbildung|abb|tabelle|tableau|tabla|figura|рис|табл)"
_BEFORE = r"(?:see\s|cf\.\s|siehe\s|voir\s|ver\s)?(?:supp\w*\.?\s|extended\sdata\s)?"
_LABELLED = rf"(?:{_FIGURE}\.?\s?[a-z]?\d|(?:s?\d{{1,3}}[a-z]?\s(?:and\s)?)+{_FIGURE}(?=[\s,;.)]))"
_HERE = r"(?:above|below|(?:the\s)?(?:methods|materials|section|appendix|supp\w+))"
_SEE = rf"\((?:see|cf\.)\s(?:also\s)?{_HERE}\b[^()]{{0,50}}\)"
_FIGURES = rf"\({_BEFORE}{_LABELLED}[^()=<>≤≥]{{0,60}}\)"
_NAME, _YEAR = r"[^\W\d_][\w’'-]+", r"(?:1[89]|20)\d\d[a-z]?"
_NAMED = rf"{_NAME}(?:\set\sal\.?|(?:\sand|\s&|,)\s{_NAME})*,?\s{_YEAR}(?:,\s{_YEAR})*"
_NAMES = rf"\((?:e\.g\.,?\s|see\s|reviewed\sin\s)?{_NAMED}(?:;\s{_NAMED})*\)"
_PLACEHOLDERS = r"\s?(?:<cit>|@xcite)(?:\s?[,;–-]?\s?(?:<cit>|@xcite))*(?:\s(?=[.,;:]))?"
_OTHER = rf"{_NAME}(?:\sand\s{_NAME})?"
_OTHERS = (
    rf"\((?:{_OTHER}[;,]\s)*{_NAME}\set\sal\.?(?:[;,]\s{_OTHER}(?:\set\sal\.?)?)*\)"  # their years are lost
)
_AT_ONCE = rf"(?<=[^\W\d_]{{3}}){_NUMBERS}"  # behind a word: "in Dulwich[17]", or "rows[17]" of a program
_POINTER = re.compile(
    r"^As (?:\w+ly )?(?:described|discussed|explained|mentioned|noted|outlined|seen|shown|stated)"
    r" (?:above|below|earlier|before|previously|elsewhere|in (?:the )?(?:previous|preceding|next|last) section), (\w)"
)
_EMPTY = r"\(\s?\)(?=[.,;])|\((?:see|cf\.|e\.g\.,?)\s?\)(?=[\s.,;])"
_NOTHING = rf"(?<!\[)\s(?:(?:\[\s\]|\(\s\)|[\[\]])(?=\s)|{_EMPTY})"
_QUOTED_TWICE = r"(?:\s|^)>(?:\s?>)+(?:\s|(?=[\w-]))"
_QUOTED = rf"{_QUOTED_TWICE}|(?:\s|^)>(?=[^\W\d])"  # mail whose lines were joined
_FIELD = r"(?:name|e-?mail|from|to|cc|bcc|date|sent|subject|reply-to):"
_QUOTE = r'"[^"]*"(?:\s?<[^<>\s]*>)?'
_ADDRESSES = r"(?:\S+@[^\s,]+(?:,\s|(?=\s)))+"
_HEAD = (
    rf"(?:{_FIELD}\s(?:{_QUOTE}|{_ADDRESSES}|[^:\n]+(?=\s{_FIELD}))\s)+{_FIELD}\s(?:{_QUOTE}|{_ADDRESSES})\s"
)
_CLOSING = (
    r"(?:(?:(?:best|kind|warm|many)\s)?(?:regards|thanks|cheers|best|thank\syou)\b[^<.?!:]{0,60}(?=</s>))?"
)
_OPENING = re.compile(
    rf"^(?:(?:<\S+@\S+>\s)?>\s?(?=[^\W\d])|{_CLOSING}(?:</s>\s?)?{_HEAD}(?=\S))", re.IGNORECASE
)
_GROUP = "(?:again|all|colleagues|everybody|everyone|folks|friends|list|team|there)"
_ADDRESSED = rf"(?: (?:[A-Z][\w@.-]*|{_GROUP}))"
_GREETING = re.compile(
    rf"^(?:(?:(?:Hi|Hey)(?: [\w@.-]+){{0,4}}|(?:Hello|Dear){_ADDRESSED}{{1,4}})[,!] (?=[A-Z])"
    rf"|(?:Hi|Hello)(?: {_GROUP})?, (?=[a-z\d]))"
)  # of a mail
_MAIL = re.compile(
    r"^(?:subject|reply-to|sent): |\bemail: \S+@|\bwrote:\s|^(?:(?:best|kind|warm) )?regards\b|^cheers,",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERED = re.compile(
    r"^(?:(action|decision|suggestion|proposal|motion|resolution) (?:item )?|(?:agenda )?item |papers? to note )"
    r"#?\d{1,3}(?:\.\d{1,3})*(?::\s|\s[–—-]\s)(?=[^\W_])",
    re.IGNORECASE,
)  # of an agenda
_EMPHASIS = re.compile(
    r"^[*_](?=[^\W\d_a-z]\w*\s)|(?<=[^\W_][.!?])[*_]$"
)  # not "_id" and "*args" of programs
_FEWEST = 5  # such references, and those with names and years, in a document where they are references
_NEEDS = re.compile(
    r"\b(?:in|see|by|from|of|refs?|references?|with|to|and|or|than|on|for|cf|as|eq|siehe|nach|von|aus|mit|laut|und|dans"
    r"|voir|de|par|selon|et|en|ver|por|según|y|da|di|secondo|e|см|по|в|и)\.?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Citations:
    """The references of a document that its sentences do not need.

    Attributes:
        pattern: what one of them, or several in a row, look like.
        is_mail: whether the document is a mail, whose greetings are not shown.
    """

    pattern: re.Pattern[str]
    is_mail: bool = False

    @classmethod
    def of(cls, document: str) -> Citations:
        """Return the references of a document."""
        kinds = [
            rf"\s{_FIGURES}",
            _PLACEHOLDERS,
            rf"\s{_OTHERS}",
            rf"\s{_SEE}",
            rf"(?:\s|(?<=[.,;:!?])){_NUMBERS}(?:\s?{_NUMBERS})*",
        ]
        names, numbers = (len(re.findall(kind, document)) >= _FEWEST for kind in (_NAMES, _AT_ONCE))
        quoted = len(re.findall(_QUOTED_TWICE, document)) >= _FEWEST
        kinds += [rf"\s{_NAMES}"] * names + [_AT_ONCE] * numbers + [_QUOTED] * quoted + [_NOTHING]
        return cls(re.compile(rf"(?:{'|'.join(kinds)})+", re.IGNORECASE), _MAIL.search(document) is not None)

    def left_out(self, text: str) -> str:
        """Return a text on one line without its references; the text itself if nothing else is there."""

        def kept(found: re.Match[str]) -> str:
            if not any(map(str.isalnum, found.group())):
                return " " if ">" in found.group() else ""
            return found.group() if _NEEDS.search(text[: found.start()]) else ""

        shown = _OPENING.sub("", self.pattern.sub(kept, text).strip())
        if self.is_mail and (greeting := _GREETING.match(shown)):
            shown = shown[greeting.end()].upper() + shown[greeting.end() + 1 :]
        shown = _NUMBERED.sub(lambda label: f"{label[1]}: " if label[1] else "", shown)
        shown = _POINTER.sub(lambda found: found[1].upper(), shown)
        shown = _EMPHASIS.sub("", shown) if shown.count("*") + shown.count("_") == 1 else shown
        return shown if any(map(str.isalnum, shown)) else text
