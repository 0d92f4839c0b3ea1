"""The turns of chats and transcripts: who says what, and when.

`turns.toml` lists the forms that programs write, and how each is recognized. A stamp is not text, and a line of the
program ("image omitted") is a notice, which is not a turn of anybody.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from precis_text.tables import read_table

_TABLE = read_table("turns.toml")
_LABELS = frozenset(_TABLE["labels"]["words"].split())
_WHOLE = re.compile(_TABLE["notices"]["whole"], re.IGNORECASE)
_ENCRYPTED = re.compile(_TABLE["notices"]["encrypted"], re.IGNORECASE)
_PROGRAM_WORDS = re.compile(_TABLE["notices"]["words"], re.IGNORECASE)
_EDITED = re.compile(_TABLE["notices"]["edited"], re.MULTILINE)
PROGRAM_LINES = re.compile(_TABLE["notices"]["lines"], re.MULTILINE)
_QUOTES = re.compile(_TABLE["notices"]["quotes"], re.MULTILINE)
_POST_ENDS = re.compile(r"\s*(?:#\d|_{10}|\Z)")
_DATE = re.compile(_TABLE["date"])
_LONGEST_NOTICE = 40  # words
_LEAST_SHARE = 0.08  # of the lines that are heads; a message may be long
_MOST_WORDS = 6  # of a speaker's name
NAMED = re.compile(_TABLE["named"])
_FEWEST, _HALF, _TENTH = 2, 0.5, 0.1
_ITEM_MARKS = "-*\u2022\u2013\u2014|#>`["  # an item of a list or a row of a table does not speak
AGENDA = "TOP|Tagesordnungspunkt|Punkt|Point|Punto|Item|Agenda item"  # with a number; "User 1" speaks
_PART = re.compile(rf"(?:{AGENDA}) \d{{1,2}}: [^.!?…]+")
_FEW_HEADS = 3  # in which no speaker needs to return
_TIMED = re.compile(r"\d{1,2}[:.h]\d[05](?![:.]?\d)")  # timetables have full five minutes, chats any
_ODD = re.compile(_TABLE["odd"])
_NUMBERED = re.compile(r"(?:speaker|spk)[_ ]?(?:\d+|[A-Z])", re.IGNORECASE)
_STOPS = ".?!。"
_TURNS_A_STOP = 10  # at most, in a transcript with full stops
_PIECE = 17  # least words of a piece of a transcript without them, more than a heading has


@dataclass(frozen=True)
class Turn:
    """A message of a chat or transcript: `document[start:stop]`, with its head.

    Attributes:
        body: offset at which the message begins, behind its head.
        text: the message on one line.
        speaker: "" if the form does not name one.
        time: as written in the stamp, or "".
        is_notice: whether the program wrote it.
    """

    start: int
    stop: int
    body: int
    text: str
    speaker: str
    time: str
    is_notice: bool

    @property
    def line(self) -> str:
        """The message with its speaker, on one line."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True)
class _Form:
    name: str
    head: re.Pattern[str]
    least: int = _FEWEST
    is_spoken: bool = False
    is_loose: bool = False

    def heads(self, document: str) -> list[re.Match[str]]:
        """Return the heads in a document; none if it does not have this form."""
        heads = [head for head in self.head.finditer(document) if _is_head(head)]
        if len(heads) < self.least or (self.is_loose and not _is_conversation(document, heads)):
            return []
        return heads


def _forms() -> list[_Form]:
    forms = []
    for entry in _TABLE["forms"]:
        head = entry["head"]
        for name in ("time", "date", "speaker"):
            pattern = _TABLE[name]
            head = head.replace(f"{{{name}}}", f"(?P<{name}>{pattern})", 1).replace(f"{{{name}}}", pattern)
        forms.append(_Form(**{**entry, "head": re.compile(head, re.MULTILINE)}))
    return forms


_FORMS = _forms()
_STAMP = re.compile(_TABLE["stamp"], re.MULTILINE | re.IGNORECASE)


def turns_of(document: str) -> list[Turn]:
    """Return the turns of a chat or transcript with stamps, in order; none if the document is not one.

    The text before the first turn is not part of any.
    """
    form, heads = _recognized(document)
    if form is None:
        return []
    stops = [*(head.start() for head in heads[1:]), len(document)]
    turns: list[Turn] = []
    for head, stop in zip(heads, stops, strict=True):
        turns.append(_turn(document, form, head, stop, turns[-1].speaker if turns else ""))
    return turns if any(turn.text for turn in turns) else []


def without_quotes(text: str, earlier: str = "") -> str:
    """Leave out the signatures of posts, and quotations of the posts above them, but no quotation that ends a post."""

    def own(found: re.Match[str]) -> str:
        head, lines = found.group().split("\n")[:2], found.group().split("\n")[2:]
        if head[0].startswith("_"):
            return ""
        above, count = earlier + text[: found.start()], 0
        while count < len(lines) and _stands(" ".join(lines[: count + 1]), above):
            count += 1
        is_last = count == len(lines) and _POST_ENDS.match(text, found.end())
        return found.group() if is_last or not count else "\n".join(lines[count:])

    return _QUOTES.sub(own, text)


def _stands(words: str, above: str) -> bool:
    pattern = r"\s+".join(map(re.escape, words.split()))
    return re.search(rf"(?<!\w){pattern}(?!\w)", above) is not None


def _recognized(document: str) -> tuple[_Form | None, list[re.Match[str]]]:
    best: tuple[_Form | None, list[re.Match[str]]] = None, []
    if len(_STAMP.findall(document)) < _FEWEST:
        return best
    lines, most = sum(bool(line.strip()) for line in document.split("\n")), 0
    for form in _FORMS:
        heads = form.heads(document)
        count = len(heads) if form.is_spoken else sum(map(_is_named, heads))
        if count >= form.least and len(heads) >= _LEAST_SHARE * lines and count > most:
            best, most = (form, heads), count
    return best


def _is_head(head: re.Match[str]) -> bool:
    speaker = _group(head, "speaker")
    is_name = speaker.lower() not in _LABELS and not _DATE.fullmatch(speaker)
    return len(speaker.split()) <= _MOST_WORDS and is_name


def _is_named(head: re.Match[str]) -> bool:
    return any(_group(head, name) for name in ("speaker", "label", "again"))


def _is_conversation(document: str, heads: Sequence[re.Match[str]]) -> bool:
    """Check whether most heads have a speaker and a message, and speakers return.

    At most three need not, if they look like names. Others need to return more often, and those behind a time that
    begins the line, as in a timetable.
    """
    stops = [*(head.start() for head in heads[1:]), len(document)]
    said = [
        document[head.end() : stop].strip()
        for head, stop in zip(heads, stops, strict=True)
        if _is_named(head)
    ]
    names = {_group(head, "speaker") for head in heads} - {""}
    returns, odd = len(said) - len(names), sum(_ODD.search(name) is not None for name in names)
    timed = sum(_TIMED.match(head.group()) is not None for head in heads)
    is_clear = 3 * returns >= timed and 2 * odd <= returns
    is_few = 0 < len(names) <= _FEW_HEADS
    return (
        len(heads) < 2 * (len(said) - said.count("")) and is_clear and (is_few or 0 < len(names) < len(said))
    )


def _group(head: re.Match[str], name: str) -> str:
    return (head.groupdict().get(name) or "").strip()


def _turn(document: str, form: _Form, head: re.Match[str], stop: int, before: str) -> Turn:
    said = without_quotes(_EDITED.sub("", document[head.end() : stop]), document[: head.start()])
    text = " ".join(PROGRAM_LINES.sub("", said).split())
    start, again = head.start(), _group(head, "again")  # a time above more of the last speaker
    speaker = _group(head, "label") or _group(head, "speaker") or (before if again else "")
    is_unnamed = not (speaker or again or form.is_spoken)
    is_notice = _group(head, "program") != "" or is_unnamed or _WHOLE.fullmatch(text) is not None
    if not is_notice and len(text.split()) <= _LONGEST_NOTICE:
        is_marked = document[head.end() : head.end() + 1] == "\u200e"  # by WhatsApp on an iPhone
        is_notice = _ENCRYPTED.search(text) is not None or (
            is_marked and _PROGRAM_WORDS.search(text) is not None
        )
    stop = start + len(document[start:stop].rstrip())
    return Turn(start, stop, head.end(), text, speaker, _group(head, "time") or again, is_notice or not text)


def dialogue_speakers(lines: Sequence[str]) -> frozenset[str]:
    """Return the speakers of a dialogue whose lines start with a name and a colon; none if it is not a dialogue.

    A single line "Word: text" is not a turn. Several lines must have that form: half of them, or a tenth if two
    speakers return. Labels such as "Subject", "Figure 1" and "Appendix A" are not speakers, nor are those of parts: a
    line "TOP 2: Accounts". Names with an initial before them may be parts as well ("A. Fees"), or authors.
    """
    written = [line for line in lines if line.strip()]
    parts = Counter(speaker_of(line) for line in written if _PART.fullmatch(line.strip()))
    agenda = {"", *parts} if parts.total() == len(parts) else {""}  # where none returns
    speakers = Counter(name for name in map(speaker_of, written) if name not in agenda)
    if speakers.keys().isdisjoint(("Q", "F")):  # "A" answers these, and is else a letter of a list
        del speakers["A"]
    short = {name: times for name, times in speakers.items() if name[1:3] == ". "}
    if max(short.values(), default=0) == 1 and not {"A", "I"}.isdisjoint(name[0] for name in short):
        speakers -= Counter(short)
    count = speakers.total()
    returning = sum(times > 1 for name, times in speakers.items() if name not in short)
    numbered = sum(_NUMBERED.fullmatch(name) is not None for name in speakers)
    share = _TENTH if max(returning, numbered) > 1 else _HALF
    if count < _FEWEST or count < share * len(written):
        return frozenset()
    return frozenset(speakers)


def speaker_of(line: str) -> str:
    """Return the name before the colon of a line "Ann: text"; "" without one, or if it is a label."""
    found = NAMED.match(line.lstrip() + " ")
    if found is None:
        return ""
    name = found.group().strip().removesuffix(":")
    words = name.lower().partition(" (")[0].split()
    is_label = (
        (words[0].rstrip(".") in _LABELS and name != "A" and words[0] != "a.")
        or len(words) > _MOST_WORDS
        or name[0] in _ITEM_MARKS
    )
    return "" if is_label else name


def without_stamps(document: str, turns: Sequence[Turn], *, in_pieces: bool = True) -> str:
    """Replace the stamps of turns without speakers by spaces, since sentences cross them; offsets stay valid.

    Where nothing ends like a sentence, a blank line remains after every 17 words or more, if it is wanted `in_pieces`.
    """
    stops = sum(turn.text.count(mark) for turn in turns for mark in _STOPS)
    is_marked = not in_pieces or stops > len(turns) / _TURNS_A_STOP
    parts, done, words = [], 0, 0
    for turn in turns:
        text = document[turn.body : turn.stop]
        body = turn.body + len(text) - len(text.lstrip())
        between, head = document[done : turn.start], document[turn.start : body]
        flows = between.count("\n") < 2 and head.count("\n") < 2 and not speaker_of(turn.text)
        if flows and not is_marked and words >= _PIECE:
            parts.append(between.replace("\n", " ") + ("\n\n" + " " * len(head))[: len(head)])
            words = 0
        elif flows:
            parts.append(
                " " * (len(between) + len(head)) if not between.strip() else between + " " * len(head)
            )
        else:
            parts.append(between + re.sub(r"[^\n]", " ", head))
        parts.append(document[body : turn.stop])
        words += len(turn.text.split())
        done = turn.stop
    return "".join([*parts, document[done:]])
