"""The lines of a mail that its sender did not write: quotations, signatures, disclaimers, frames of newsletters.

Lines are judged one by one, so that answers between quotations stay:

    > ...                    a quotation, and "On Monday Ann wrote:" above it
    From: ... Sent: ...      the header of the answered mail: all behind it is quoted
    From: ... Date: ...      of a later mail, in a thread whose oldest mail is above: a mail of its own
    On ... wrote:            without ">" behind it: all behind it is quoted, if it is not a line of prose
    --                       the signature follows
"""

from __future__ import annotations

import re
from collections import Counter
from email.header import Header
from email.utils import mktime_tz, parsedate_tz
from functools import cache
from itertools import pairwise

from precis_text.documents.passages import CUT
from precis_text.tables import read_table

_WORDS = read_table("documents/mail_words.toml")
QUOTED, SIGNATURE, PROGRAM, DISCLAIMER, FRAME = (
    "quoted", "signature", "line of the mail program", "disclaimer", "frame of the newsletter",
)  # fmt: skip
_MOST_SAYS = 3  # lines of "On ... wrote:"
_MOST_SIGNED = 12  # lines behind a "--" that lacks its space
_MOST_FRAME = 60  # words
_RULE = re.compile(r"\s*[_*=-]{5,}\s*")
_SHORT_RULE = re.compile(r"\s*[-_–—]{3,}\s*")
_CONTACT = re.compile(_WORDS["contact"], re.IGNORECASE)
_LABEL = re.compile(r"[*>\s]*([^\W\d][^:：\n]{0,28}?)\*?\s?[:：]\*?\s*(\S.*)")
_LABELLED = re.compile(r"[*\s]*[^\W\d][^:：\n]{0,28}[:：]")
_FEWEST_NAMED = 3  # kinds of labels of a header
_DATE = re.compile(r"\d{4}|\d{1,2}[.:/-]\d{2}")
_ZONED = re.compile(_WORDS["zoned"])
_QUOTE = re.compile(r"\s{0,3}>")
_CLOCK = re.compile(r"(?<![\d.:])\d{1,2}[:h]\d{2}(?!\d)")
_OF_A_MAIL = re.compile(rf"\S@\S|(?<!\d)(?:199|20\d)\d(?!\d)|{_CLOCK.pattern}")
_OF_OLD = re.compile(r"(?<!\d)1(?:[0-8]\d|9[0-6])\d(?!\d)")  # years before mails
_SENTENCE = re.compile(r"[.!…。！][ \t]*$|\n.*[?？][ \t]*$", re.MULTILINE)  # a question alone may be a title


def _any(name: str) -> str:
    return "(?:" + "|".join(_WORDS[name]) + ")"


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


_PATTERNS = {
    **{name: rf"[*\s]*{_any(name)}\*?\s?[:：]" for name in ("sent", "subject")},
    **{name: rf"[*\s]*{_any(name)}\*?\s?[:：](?!\*?\s*\d)" for name in ("from", "to")},  # not "From: 10 am"
    "forwarded": rf"\s*-{{2,}}\s?{_any('forwarded')}\s?-{{2,}}\s*|\s*{_any('forwarded')}\s?[:：]?\s*",
    "says": rf"(?:(?<![a-z]){_any('wrote')}.{{0,80}}|\d.{{0,200}}@.{{0,120}}|@.{{0,160}}\d.{{0,80}})[:：]\s*$",
    "begins": rf"[\s\"“]*(?:{_any('begins')}\b|\d|.{{0,60}}<[^<>\s]+@)",
    "sent_with": rf"\s*{_any('sent_with')}\s*", "newsletter": _any("newsletter"), "stub": _any("stub"),
    "replies": rf"\A\s*(?:(?:{_any('reply')}|{_any('forward')})\s*(?:\[\d+\]|\(\d+\))?\s*[:：]\s*)+",
    "reply": rf"\A\s*{_any('reply')}\s*(?:\[\d+\]|\(\d+\))?\s*[:：]",
    "forward": rf"\A\s*{_any('forward')}\s*[:：]",
    **{f"disclaimer {n}": each for n, each in enumerate(_WORDS["disclaimer"])},
}  # fmt: skip


def plain_subject(subject: str) -> str:
    """Return a subject without the signs of answers and forwarded mails."""
    return _pattern("replies").sub("", subject).strip()


def is_forward(subject: str) -> bool:
    """Check whether a subject is that of a forwarded mail."""
    return bool(_pattern("forward").match(subject))


def is_reply(subject: str) -> bool:
    """Check whether a subject is that of an answer."""
    return bool(_pattern("reply").match(subject))


def is_stub(text: str) -> bool:
    """Check whether a plain text only says that the mail is in HTML."""
    return len(text.split()) < 60 and bool(_pattern("stub").search(text))


def as_mail(text: str) -> str:
    """Return a pasted mail or thread as the content of a mail file; "" for a text that is not surely one.

    It starts with a header in a known language, has one within it, or quotes what a person wrote. Lines of the header
    that no mail has are text.
    """
    lines = text.strip().split("\n")
    head = next((place for place, line in enumerate(lines) if not _LABELLED.match(line)), len(lines))
    labels = _labels(lines[:head])
    is_headed = bool(head and _labels(lines[:1])) and {"from"} < labels and len(labels) >= _FEWEST_NAMED
    is_headed = is_headed and ("subject" in labels or _has_address(lines[:head]))
    body = [line for line in lines[:head] if not (is_headed and _labels([line]))] + lines[head:]
    is_mail = is_headed or any(_begins_old(lines, place) for place in range(1, len(lines)))
    if not is_mail or not "".join(body).strip():
        return ""
    named = next((line for line in lines[:head] if is_headed and _pattern("subject").match(line)), ":")
    subject = Header(re.split("[:：]", named, maxsplit=1)[1].strip(), "utf-8").encode(maxlinelen=0)
    sent = next((line for line in lines[:head] if is_headed and sent_at([line])), ":").partition(":")[2]
    header = f"Subject: {subject}\nDate:{sent}\nContent-Type: text/plain; charset=utf-8\n\n"
    return header + "\n".join(body)


def sent_at(header: list[str]) -> int:
    """Return the seconds at which a mail was sent whose header names its time with a zone; 0 for others."""
    found = next((line for line in header if _pattern("sent").match(line) and _ZONED.search(line)), "")
    parsed = parsedate_tz(found.partition(":")[2])
    return mktime_tz(parsed) if parsed else 0


def _labels(lines: list[str]) -> set[str]:
    """Return the kinds of labels of a header in some lines: who, when, to whom, about what."""
    return {name for name in ("from", "sent", "to", "subject") if any(map(_pattern(name).match, lines))}


def _has_address(lines: list[str]) -> bool:
    """Check whether the sender or the receiver has an address."""
    return any("@" in line and _labels([line]) & {"from", "to"} for line in lines)


def _begins_old(lines: list[str], place: int) -> bool:
    """Check whether an answered mail surely begins at a line of a text that may be none."""
    before, line = lines[place - 1], lines[place]
    if _QUOTE.match(line):
        last = place - 1 - (not before.strip())
        count = 0 if _QUOTE.match(before) else _says(lines, last)
        said = " ".join(lines[last - count + 1 : last + 1])
        is_of_a_mail = count > 0 and _OF_A_MAIL.search(said) is not None and not _OF_OLD.search(said)
        return is_of_a_mail and _ends_quoted(lines, place, said) and _is_prose(lines[: last - count + 1])
    if line.lstrip().startswith("-") and _pattern("forwarded").fullmatch(line):
        return _labels(lines[place + 1 : place + 7]) > {"from"} and _is_prose(lines[:place])
    if not _LABELLED.match(line) or not _pattern("from").match(line) or _LABELLED.match(before):
        return False
    head = [each for each in lines[place : place + 6] if _LABELLED.match(each)]
    labels, is_timed = _labels(head), any(_CLOCK.search(each) for each in head if _labels([each]) == {"sent"})
    is_sure = _has_address(head) or ("subject" in labels and is_timed)
    return is_sure and len(labels) >= _FEWEST_NAMED and _is_prose(lines[:place])


def _ends_quoted(lines: list[str], place: int, said: str) -> bool:
    """Check whether nothing but quotations follows a line, or a mail answers below longer ones."""
    if all(_QUOTE.match(line) or not line.strip() for line in lines[place:]):
        return True
    quoted = sum(len(line) for line in lines if _QUOTE.match(line))
    return "@" in said and 2 * quoted >= sum(map(len, lines))


def _is_prose(lines: list[str]) -> bool:
    """Check whether lines are more than a title: one of them ends like a sentence."""
    return _SENTENCE.search("\n".join(lines).strip()) is not None


def foreign_lines(
    lines: list[str], *, forward: bool, subject: str = "", newsletter: bool = False, sent: int = 0
) -> list[str]:
    """Say of each line what it is: "" for the sender's own.

    Args:
        lines: the body; each line of a quotation has a ">".
        forward: the mail passes on another one, which is then a part of it.
        subject: the mail's, without signs of an answer.
        newsletter: look for the frame of a newsletter too.
        sent: when the mail was sent, in seconds; 0 if that is not known. One below that is later is a part, too.
    """
    starts, kinds = [0], list[str]()
    for place in range(1, 0 if forward else len(lines)):
        is_headed = not lines[place - 1].strip() and _pattern("from").match(lines[place])
        if is_headed and (at := sent_at(lines[place : place + 6])) > sent > 0:
            starts.append(place)
            sent = at
    for start, stop in pairwise([*starts, len(lines)]):
        body = next((at for at in range(start, stop) if not lines[at].strip()), stop) if start else 0
        kinds += [PROGRAM] * (body - start)
        kinds += _kinds(lines[body:stop], forward=forward, subject=subject, newsletter=newsletter)
    return kinds


def _kinds(lines: list[str], *, forward: bool, subject: str, newsletter: bool) -> list[str]:
    kinds = [QUOTED if _QUOTE.match(line) else "" for line in lines]
    end = len(lines) if forward else _old_mail(lines, kinds, subject)
    kinds[end:] = [QUOTED] * (len(lines) - end)
    _mark_says(lines, kinds)
    _mark_signature(lines, kinds)
    for place, line in enumerate(lines):
        if not kinds[place] and (_pattern("sent_with").fullmatch(line) or line == CUT):
            kinds[place] = PROGRAM
    _mark_paragraphs(lines, kinds, newsletter=newsletter)
    return [kind if line.strip() else "" for kind, line in zip(kinds, lines, strict=True)]


def _old_mail(lines: list[str], kinds: list[str], subject: str) -> int:
    """Return the first line behind which everything is quoted."""
    last = max((place for place, kind in enumerate(kinds) if kind), default=-1)
    for place, line in enumerate(lines):
        if kinds[place]:
            continue
        is_start = line == CUT or (_pattern("forwarded").fullmatch(line) and "-" in line)
        if is_start or _is_header(lines, place, subject) or (place > last and _opens_unmarked(lines, place)):
            while place and (_RULE.fullmatch(lines[place - 1]) or not lines[place - 1].strip()):
                place -= 1
            return place
    return len(lines)


def _is_header(lines: list[str], place: int, subject: str) -> bool:
    """Check whether the header of an answered mail begins here: labels in a known language, or its subject."""
    first = _LABEL.match(lines[place])
    if first is None or (place and _LABEL.match(lines[place - 1]) and lines[place - 1].strip()):
        return False
    block = []
    for line in lines[place : place + 14]:
        if line.strip():
            block.append(line)
        elif len(block) > 1 and not _LABEL.match(block[-1]):
            break
    labels = [found for line in block[:8] if (found := _LABEL.match(line))]
    if _pattern("from").match(lines[place]) and any(_pattern("sent").match(line) for line in block[1:5]):
        return True
    values = [plain_subject(found.group(2)) for found in labels]
    has_date = any(_DATE.search(found.group(2)) for found in labels)
    return len(labels) >= 3 and labels[0] is not None and bool(subject) and subject in values and has_date


def _opens_unmarked(lines: list[str], place: int) -> bool:
    """Check whether "On ... wrote:" is here and the text behind it lacks marks."""
    if not _pattern("begins").match(lines[place]):
        return False
    for count in range(1, _MOST_SAYS + 1):
        said = " ".join(lines[place : place + count])
        if _pattern("says").search(said):
            is_dated = _DATE.search(said) is not None and ("@" in said or len(said.split()) >= 4)
            return is_dated and any(line.strip() for line in lines[place + count :])
        if place + count < len(lines) and not lines[place + count].strip():
            return False
    return False


def _mark_says(lines: list[str], kinds: list[str]) -> None:
    """Mark the lines that introduce a quotation, directly above it."""
    for place in range(1, len(lines)):
        if kinds[place] == QUOTED and kinds[place - 1] != QUOTED:
            last = place - 1
            while last >= 0 and not lines[last].strip():
                last -= 1
            count = 0 if last < 0 or kinds[last] else _says(lines, last)
            for at in range(last - count + 1, last + 1):
                kinds[at] = QUOTED


def _says(lines: list[str], last: int) -> int:
    """Count the lines up to `last` that name the author of the quotation after them."""
    for count in range(1, min(_MOST_SAYS, last + 1) + 1):
        first = last - count + 1
        if not lines[first].strip():
            return 0
        is_whole = first == 0 or not lines[first - 1].strip() or bool(_pattern("begins").match(lines[first]))
        if is_whole and _pattern("says").search(" ".join(lines[first : last + 1])):
            return count
    return 0


def _mark_signature(lines: list[str], kinds: list[str]) -> None:
    own = [place for place, line in enumerate(lines) if not kinds[place] and line.strip()]
    for number, place in enumerate(own):
        line = lines[place]
        short = len(own) - number - 1 <= _MOST_SIGNED
        is_ruled = _SHORT_RULE.fullmatch(line) and any(_CONTACT.search(lines[at]) for at in own[number:])
        is_dashed = line.rstrip() in ("--", "—", "-- ") or is_ruled
        if line == "-- " or (is_dashed and short and number):
            for at in own[number:]:
                kinds[at] = SIGNATURE
            return


def _mark_paragraphs(lines: list[str], kinds: list[str], *, newsletter: bool) -> None:
    """Mark disclaimers, and the frame of a newsletter."""
    start = 0
    for place in range(len(lines) + 1):
        if place < len(lines) and lines[place].strip() and kinds[place] not in (QUOTED,):
            continue
        text = " ".join(lines[start:place])
        what = _frame_of(text, newsletter=newsletter) if text.strip() else ""
        for at in range(start, place) if what else ():
            kinds[at] = kinds[at] or what
        start = place + 1


def _frame_of(text: str, *, newsletter: bool) -> str:
    hits = sum(bool(_pattern(name).search(text)) for name in _PATTERNS if name.startswith("disclaimer"))
    if hits >= 3 and len(text.split()) < 250:
        return DISCLAIMER
    if newsletter and len(text.split()) <= _MOST_FRAME and _pattern("newsletter").search(text):
        return FRAME
    return ""


def described(kinds: list[str]) -> list[str]:
    """Describe the lines that are left out, a note for each kind."""
    counts = Counter(kind for kind in kinds if kind)
    notes = []
    for kind in (QUOTED, SIGNATURE, PROGRAM, DISCLAIMER, FRAME):
        if count := counts[kind]:
            lines = "line" if count == 1 else "lines"
            notes.append(f"{count:,} quoted {lines} left out" if kind == QUOTED else f"{kind} left out")
    return notes
