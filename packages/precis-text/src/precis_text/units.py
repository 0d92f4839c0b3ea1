"""The units of an extract: sentences, headings, list items and dialogue turns.

The rules of `sentences` split a line of text into sentences. These cases differ:

- a turn of a dialogue ("Ann: Hello. Where are you?") is one unit, so that words keep their speaker; a long one is
  split. Chats and transcripts are read without their stamps (`precis_text.turns`);
- a line about as wide as the widest around it was wrapped, so its line break ends nothing;
- a blank line always ends a unit;
- a citation mark behind a full stop ("in Dulwich. [17]") belongs to the sentence before it;
- speech that was written down without full stops is divided where a clause may begin (`unmarked_speech`).

The text of a turn is without pauses and sounds (`precis_text.pauses`), other text without references to sources and
figures (`precis_text.citations`).

Headings, titles and signatures are units too, but are marked: a summary does not use them. So are asides, which
are not statements: table rows, captions, lines of a menu (`precis_text.asides`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from precis_text.asides import CLOSED, Asides
from precis_text.citations import Citations
from precis_text.control_characters import unit_starts
from precis_text.language import language_of
from precis_text.pauses import Pauses, blank_sounds
from precis_text.sentences import ORDERED, split_sentences
from precis_text.turns import AGENDA, NAMED, Turn, dialogue_speakers, speaker_of, turns_of, without_stamps
from precis_text.unmarked_speech import language_of_unmarked, pieces_of

_LONG_TURN = 20  # words
_BLOCK = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_LINE = re.compile(r"[^\n]+")
_NARROWEST, _WIDEST = 36, 128  # bounds of the widest line, in characters, of text that a program wrapped
# Cells of a table's row, two columns, or a line of a timetable
_ROW = re.compile(r" \| |\S {4,}\S|^\s*(?:[01]?\d|2[0-3])[:.h][0-5]\d\s+[^\W\d_]")
_SAME_PLACE = 2  # characters between the places of the second column in two rows
# What a line of a timetable does not end with, unlike one that was wrapped before a time
_LEFT_OPEN = re.compile(r"(?:,|\b(?:at|to|from|and|or|about|um|gegen|etwa|bis|von|und|à|et|de|a))\s*$")
_FULL = 0.75  # least share of the widest line that a wrapped line fills
_WRAPPED = 8  # fewest lines that surely go on, of a text whose lines a program wrapped at one width
_USUAL = 0.75  # share of these lines that are shorter than that width
_FEW_LINES = 2  # fewest short lines of a list without bullets
_DONE = r"(?:\[[xX]\]|[☑☒✓✔✅])"
BOX = rf"(?:{_DONE}|\[ \]|[☐⬜])"
_TICKED = re.compile(rf"\s*(?:(?:[-*•–—+]|\d{{1,3}}[.)])\s+)*{_DONE}\s")
# "3." may be a date: "3. Oktober"
_MARK = re.compile(rf"(?:(?:[-*•–—]|\(?(?:\d{{1,3}}|[a-z]|[ivx]{{2,4}})\)|{BOX})\s+)+(?=\S)")
_CLUB = r"(?:[AFH]?FC|FSV|FCK|CfR|B?SC|[MT]?SV|Vf[BLR]|TuS|SG|[A-Z]\w+ Club(?= [A-Z])|\w*[Ll]iga)\b"
_NUMBERED = re.compile(rf"(\d{{1,2}})\.(?: |(?=[^\W\d_a-z]))(?!{_CLUB})(?=\S+(?: \S+){{4}})")
_SECTION = re.compile(
    r"(?:\d{1,2}\.? [^\W\d_a-z][^\d_a-z]+: )?(\d{1,2}(?:\.\d{1,2}){1,4})\.? (?=[^\W\d_a-z])"
    r"(?!(?:Mio|Milli\w+|Mrd|(?:B|Tr)illion\w*|Tausend|Thousand|Pro[zc]ent|Percent|Euros?|Dollars?|Tonnen|Liter)\b)"
)
_INDENT = 9  # one more than the most spaces before a section's number
_TOP = re.compile(r"(\d{1,2})\.? (?=[^\W\d_a-z])")
# The first line of a block, below which text follows: "2. Fees", "4 Discussion", "1. Minutes of the last meeting"
_OPENS = re.compile(
    r"(?:\A|\n[ \t]*\n)(\d{1,2})\.? [^\W\d_a-z][^\s,]+(?: (?!(?:the|an?|it)\b)[^\s,]+){0,2}"
    r"(?:[ ]of (?:the )?[^\s,]+(?: [^\s,]+)?)?"
    r"(?<![.!?:;,])\n(?!\s*(?:\d{1,2}\.? |\n|\Z))"
)
_AGENDA = re.compile(rf"\s*(?:{AGENDA}) \d{{1,2}}\b(?! [a-zäöüß])")
_PART = re.compile(rf"(?:{AGENDA}|Section|Chapter|Kapitel|Article|Artikel) \d{{1,2}}\b")
_COMPANY = re.compile(  # a short title may end so; its small letters are those of such words
    r"(?:(?![a-zäöüß])\S+ |(?:of|the|and|for|at|by|an?|de[rsnm]?|die|das|und|für|i[mn]|am|vo[nm]|zu[mr]|et|la) ){0,15}"
    r"(?:e\. ?V|\S*\b(?:Inc|Ltd|Corp|Co|S\.A|S\.L|B\.V))\."
)
_DATE = re.compile(r"(?=\S+(?: \S+){1,4}$)(?=.*\b\d{1,2}\b)[^.!?]*\b(?:1[89]|20)\d\d")
_AUTHOR = re.compile(r"\s*(?:By|Von|Par|Por|Di)(?: [^\W\d_a-z][\w.’'-]+){2}")
_CREDITED = 12  # words of a title above its author
_CAPITALS = re.compile(r"[^\W\d_a-z][^\d_a-z]*")
_WITHOUT_ORDINALS = {"en", "es", "fr", "it", "nl", "pt", "ru"}  # languages in which "3." is no ordinal
_ITEM = re.compile(rf"\s*(?:[-*•–—#>|]|{BOX}|\(?\d{{1,3}}[.)]|[A-Za-z][.)])\s")
_ORDINAL = re.compile(r"\s*\d{1,2}\. ([^\W\d_]+)")
# "11. EARLY TERMINATION." before its clause, "§ 4 Kaution."
_RUN_IN = re.compile(
    r"(?:(?:§|Art\.|Arti[ck](?:le|el)|Artículo|Section|Clause|Ziffer)\s?\d{1,2}(?:\.\d{1,2}){0,3}\.?|\d{1,2}(?:\.\d{1,2}){1,3}"
    r"|\d{1,2}(?:\.\d{1,2}){0,3}\.)(?:\s[–-])?\s"
    r"(?:[^\W\d_a-zß-ÿ][^a-zß-ÿ.]{2,60}|[^\W\d_a-z][\w'’-]+(?:,?\s(?:and|or|of|und|oder|der|des|et|ou|de|du|y|o|the|&)"
    r"(?:\s(?:the|der))?\s[^\W\d_a-z][\w'’-]+){0,3})\."
)
_CITATION = r"(?:\[(?:\d{1,3}|note \d+|[a-z]|citation needed)\])"
ENDED = re.compile(rf"""[.!?…:;,。！？؟।][\])}}"'”’»]*(?:\s?{_CITATION})*\s*$""")
_CITED_LATER = re.compile(rf"(?:{_CITATION}\s*)+(?=[^\W\d_a-z]|$)")
_CITED_AT_ONCE = re.compile(rf"(?<=[.!?]){_CITATION}+\s+(?=[^\W\d_a-z])")
_IN_A_SENTENCE = re.compile(r"[^\W\d_],?\s*$")
_SPOKEN = 0.2  # least share of the words in blocks like headings, in speech without full stops
# Soft hyphen, word joiner ...
_INVISIBLE = re.compile("[\u00ad\u2060\ufeff]|\u200b(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])")
_FEWEST_WORDS = 4  # in a line without an end mark that counts as part of a sentence
_HEADING_LINES, _HEADING_WORDS = 3, 16  # at most, in a block of headings; words per unit
_LONGEST_HEADING = 24  # words of a single line
_LONG = 8  # fewest words of a sentence below a heading, in a block of both


@dataclass(frozen=True)
class TextUnit:
    """A unit: `document[start:stop]`.

    Attributes:
        text: on one line, without stamps, pauses, references and invisible characters. The first unit of a turn names
            its speaker.
        heading: whether it is a heading, a title or a signature.
        aside: whether it is not a statement, such as a table row.
        speaker: who says it in a dialogue, or "".
        answers: whether it may be chosen without the sentence that it points to, since it answers a question.
        shown: what a summary shows of it, without the speaker and "Okay, so"; "" is all of the text.
        numbered: whether a number in the document, which the text is without, marks it as an item of a list.
    """

    text: str
    start: int
    stop: int
    heading: bool = False
    aside: bool = False
    speaker: str = ""
    answers: bool = False
    shown: str = ""
    numbered: bool = False


def named_text(unit: TextUnit) -> str:
    """Return a unit's text with its speaker, also if it is not the first one of its turn."""
    is_named = not unit.speaker or unit.text.startswith(f"{unit.speaker}:")
    return unit.text if is_named else f"{unit.speaker}: {unit.text}"


def name_before(unit: TextUnit) -> str:
    """Return the speaker and a colon if a unit's text starts with them, or ""."""
    return name if unit.text.startswith(name := f"{unit.speaker}: ") else ""


def as_shown(unit: TextUnit) -> str:
    """Return a unit's text as a summary shows it, with the speaker if the text names one."""
    return name_before(unit) + unit.shown if unit.shown else unit.text


def without_item_mark(text: str) -> str:
    """Return a list item's text without its bullet, bracketed number or box."""
    return text[found.end() :] if (found := _MARK.match(text)) else text


def is_item(unit: TextUnit) -> bool:
    """Check whether a unit has, or had, the mark of a list item: a bullet, a box, "1.", "a)"."""
    return unit.numbered or re.match(rf"{_MARK.pattern}|(?:\d{{1,2}}|[a-z])[.)]\s", unit.text) is not None


def is_ticked(document: str, start: int) -> bool:
    """Check whether the item of a list at an offset has a box that says that it is done: "[x]"."""
    return _TICKED.match(document, start) is not None


def extraction_units(document: str) -> list[TextUnit]:
    """Split a document into non-empty units, in order.

    Together they contain all of its words, except stamps and what speakers said while they paused.
    """
    turns = turns_of(document)
    if not turns:
        return _without_marks(_divided(_units_of_lines(document), document), document)
    if not any(turn.speaker for turn in turns):
        return _units_of_lines(without_stamps(document, turns))
    before = _units_of_lines(document[: turns[0].start])
    said = [unit for turn in turns for unit in _units_of_turn(turn, document)]
    return before + _without_marks(_divided(said, document), document)


def _divided(units: list[TextUnit], document: str) -> list[TextUnit]:
    """Divide the long units of a text without full stops and commas where a clause may begin."""
    language = language_of_unmarked(document)
    return [part for unit in units for part in _pieces(unit, document, language)] if language else units


def _pieces(unit: TextUnit, document: str, language: str) -> list[TextUnit]:
    """Return the pieces of a unit; the head of a turn and blanked sounds may part its words from the document's."""
    words, written = unit.text.split(), [*re.finditer(r"\S+", document[unit.start : unit.stop])]
    begins = [0] if unit.heading or unit.aside else pieces_of(words, language)
    if len(written) < len(words) or any(written[at - len(words)].group() != words[at] for at in begins[1:]):
        return [unit]
    starts = [unit.start, *(unit.start + written[at - len(words)].start() for at in begins[1:])]
    places = zip(begins, [*begins[1:], len(words)], starts, [*starts[1:], unit.stop], strict=True)
    texts = [
        (" ".join(words[first:last]), start, document[start:stop]) for first, last, start, stop in places
    ]
    return [replace(unit, text=text, start=at, stop=at + len(said.rstrip())) for text, at, said in texts]


def _without_marks(units: list[TextUnit], document: str) -> list[TextUnit]:
    """Leave references out of what is written, and pauses and sounds out of what speakers say.

    In a text with speakers, other words may be those of a host without a name, so that openings go, too.
    """
    citations, numbers = Citations.of(document), _numbers(units, document)
    pauses = Pauses.of(document) if any(unit.speaker for unit in units) else None
    found = []
    for before, unit, number in zip([None, *units], units, numbers, strict=False):
        answers = before is not None and before.text.endswith("?")
        named = f"{unit.speaker}:" if unit.speaker and unit.text.startswith(f"{unit.speaker}:") else ""
        if pauses and unit.speaker:
            text = pauses.left_out(unit.text.removeprefix(named).strip(), answers=answers)
        else:
            text = citations.left_out(unit.text[number:])
        shown = pauses.told(text, asked=before.text if before and answers else "") if pauses else ""
        found.append(replace(unit, text=f"{named} {text}".strip(), shown=shown, numbered=number > 0))
    return found


def _numbers(units: Sequence[TextUnit], document: str) -> list[int]:
    """Return the characters of each sentence's number in a list: "1. The quay was closed.", if a 2. or 0. is there.

    The number of a section such as "2.1" goes if another unit has 2.0, 2.2 or 2.
    """
    closed = [unit.text if CLOSED.search(unit.text) and not unit.heading else "" for unit in units]
    sections = [
        _SECTION.match(text) if _starts_line(document, unit.start) else None
        for unit, text in zip(units, closed, strict=True)
    ]
    begun = {section[1] for unit in units if (section := _SECTION.match(unit.text))}
    is_cardinal = language_of(document) in _WITHOUT_ORDINALS  # elsewhere "18. Mai" is a date
    if is_cardinal:
        begun |= {top[1] for unit in units if unit.heading and (top := _TOP.match(unit.text))}
    found = [_NUMBERED.match(text) for text in closed]
    counted = {int(number[1]) for number in found if number}
    return [
        section.end()
        if section and begun & _near(section[1])
        else number.end()
        if is_cardinal and number and counted & {int(number[1]) - 1, int(number[1]) + 1}
        else 0
        for number, section in zip(found, sections, strict=True)
    ]


def _starts_line(document: str, start: int) -> bool:
    """Check whether only a few spaces are between an offset and the beginning of its line."""
    return document[max(start - _INDENT, 0) : start].rstrip(" \t")[-1:] in ("", "\n")


def _near(section: str) -> set[str]:
    """Return the numbers of the section above "2.1", and of those before and after it."""
    above, _, last = section.rpartition(".")
    return {above, f"{above}.{int(last) - 1}", f"{above}.{int(last) + 1}"}


def _units_of_turn(turn: Turn, document: str) -> list[TextUnit]:
    """Return a message as one unit, or a long one as its sentences; the first one names the speaker."""
    if not turn.text:
        return []
    whole = TextUnit(visible(turn.line), turn.start, turn.stop, aside=turn.is_notice, speaker=turn.speaker)
    if turn.is_notice or len(turn.text.split()) <= _LONG_TURN:
        return [whole]
    body = blank_sounds(document[turn.body : turn.stop])
    sentences = split_sentences(body)
    begins = [turn.body + begin for begin in unit_starts(body, sentences)]
    stops = [*(begin + len(document[begin:end].rstrip()) for begin, end in pairwise(begins)), turn.stop]
    units = [
        replace(whole, text=visible(sentence), start=begin, stop=stop)
        for sentence, begin, stop in zip(sentences, begins, stops, strict=True)
    ]
    named = f"{turn.speaker}: {units[0].text}" if turn.speaker else units[0].text
    return [replace(units[0], text=named, start=turn.start), *units[1:]]


def _units_of_lines(document: str) -> list[TextUnit]:
    """Split a text without stamps."""
    speakers = dialogue_speakers(document.split("\n"))
    asides, found = Asides(), list[TextUnit]()
    margin = _margin(document)
    numbers = [int(number) for number in _OPENS.findall(document)]
    parts = {number for number in numbers if {number - 1, number + 1}.intersection(numbers)}
    for block in _BLOCK.finditer(document):
        asides.after(block.group(), is_heading=False)
        units = [
            unit
            for start, text in _runs(block, speakers, margin)
            for unit in _cut(text, start, speakers, asides)
        ]
        if not units:  # invisible characters alone
            continue
        is_title = not found and len(units) == 1 and _COMPANY.fullmatch(units[0].text) is not None
        is_heading = _is_heading(units) or (is_title and block.end() < len(document.rstrip()))
        if asides.is_address([unit.text for unit in units]) and not any(unit.speaker for unit in units):
            found += [replace(unit, aside=True) for unit in units]
            continue
        asides.after(block.group(), is_heading=is_heading)
        titles = range(len(units)) if is_heading else _titles(units, document, parts)
        found += [
            replace(unit, heading=(unit.heading or place in titles) and not asides.is_furniture(unit.text))
            for place, unit in enumerate(units)
        ]
    return [replace(unit, heading=False) for unit in found] if _is_speech(found) else found


def _is_speech(units: list[TextUnit]) -> bool:
    """Check whether blocks without full stops are text, not headings: nothing else is there, or nothing has any."""
    if any(CLOSED.search(unit.text) for unit in units):
        return all(unit.heading for unit in units)
    words = sum(len(unit.text.split()) for unit in units)
    return sum(len(unit.text.split()) for unit in units if unit.heading) >= _SPOKEN * words


def _is_heading(units: list[TextUnit]) -> bool:
    """Check whether a block is a heading, a title or a signature: few words and no sentence end."""
    is_line = len(units) == 1 and not _ITEM.match(units[0].text)
    most = _LONGEST_HEADING if is_line else _HEADING_WORDS
    most_lines = 1 if is_item(units[-1]) else _HEADING_LINES  # more are a list, or its head and an item
    return len(units) <= most_lines and all(
        not (ENDED.search(unit.text) or unit.speaker or len(unit.text.split()) > most)
        and any(map(str.isalnum, unit.text))
        for unit in units
    )


def _titles(units: Sequence[TextUnit], document: str, parts: Collection[int]) -> list[int]:
    """Return the places of lines in a block that are headings: after a sentence, and before a long one.

    "TOP 2: Accounts" is one before any sentence, and "2. Fees" before "2.1 The Client pays", or if it opens the block,
    as "1. Term" does another one. A line with a date may be in between.
    """
    is_dated = bool(units[2:]) and _DATE.fullmatch(units[1].text) is not None
    following = [units[2], *units[2:]] if is_dated else units[1:]
    top = _TOP.match(units[0].text) if units else None
    opens = top is not None and int(top[1]) in parts
    return [
        place
        for place, (before, unit, after) in enumerate(zip([None, *units], units, following, strict=False))
        if _is_heading([unit]) and not after.speaker
        if before is None or (CLOSED.search(before.text) and "\n" in document[before.stop : unit.start])
        if CLOSED.search(after.text)
        or (before is None and opens and _ROW.search(document, after.start, after.stop))
        if _begins_part(unit.text, after.text)
        or (before is None and opens)
        or (
            not (unit.aside or _ITEM.match(unit.text))
            and len(after.text.split()) >= max(_LONG, 2 * len(unit.text.split()))
        )
        if not after.text[0].islower() or unit.text[0].islower() or _CAPITALS.fullmatch(unit.text)
    ]


def _begins_part(line: str, following: str) -> bool:
    top = _TOP.match(line)
    return _PART.match(line) is not None or (top is not None and following.startswith(f"{top[1]}.1"))


def visible(text: str) -> str:
    """Return a text without invisible characters. In Thai and Khmer the space of no width parts words."""
    return _INVISIBLE.sub("", text) if not text.isascii() else text


def _margin(document: str) -> int:
    """Return the width at which most lines of a document were wrapped; a width without effect if there is none."""
    going_on = _going_on(document.split("\n"), _NARROWEST)
    return going_on[int(_USUAL * len(going_on))] if len(going_on) >= _WRAPPED else sys.maxsize


def _going_on(lines: Sequence[str], least: float) -> list[int]:
    """Return the widths, sorted, of the lines at least this wide whose sentence surely continues on the next one."""
    return sorted(
        len(line.rstrip())
        for line, following in pairwise(lines)
        if len(line) >= least and following.lstrip()[:1].islower() and not ENDED.search(line)
    )


def _widest(lines: Sequence[str], margin: int) -> int:
    """Return the width at which the lines of a block were wrapped.

    A line is wider than the document's margin if it had, or has, an address that no program could break. Then its last
    word begins before the margin, or other lines of the block continue at the margin.
    """
    is_wrapped = len(_going_on(lines, _FULL * margin)) >= _FEW_LINES
    return max(
        min(len(line), margin) if is_wrapped or line.rfind(" ") < margin else len(line) for line in lines
    )


def _runs(block: re.Match[str], speakers: frozenset[str], margin: int) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a block that no sentence crosses, with their offsets: lines, wrapped ones together."""
    lines = [*_LINE.finditer(block.group())]
    texts = [line.group().rstrip() for line in lines]
    widest = _widest(texts, margin)
    widest = 0 if _is_listing(texts, widest) else widest
    start = 0
    for line, following in pairwise([*lines, None]):
        if (
            following is not None
            and line is not None
            and speaker_of(following.group()) not in speakers
            and _goes_on(line.group(), following.group(), widest)
        ):
            continue
        end = len(block.group()) if line is None else line.end()
        yield block.start() + start, block.group()[start:end]
        start = end if following is None else following.start()


def _is_listing(lines: Sequence[str], widest: int) -> bool:
    """Check whether lines end before the margin and without a mark, as in a list of medicines without bullets."""
    margin = _FULL * widest
    smalls = [following.lstrip()[:1].islower() for following in lines[1:]]
    wrapped = sum(len(line) >= margin or small for line, small in zip(lines, smalls, strict=False))
    short = sum(
        len(line) < margin and not (small or ENDED.search(line))
        for line, small in zip(lines, smalls, strict=False)
    )
    return short >= max(_FEW_LINES, wrapped)


def _goes_on(line: str, following: str, widest: int) -> bool:
    """Check whether a line was wrapped, so that its sentence may continue on the next one.

    It is about as wide as the widest of its block, and the next one starts neither a turn nor an item. A small letter
    starts neither, unless a sentence ends before it. A line of several words without an end mark was wrapped at any
    width if a small letter follows. Two rows of a table or times were not, and a title in capitals or above its author.
    """
    is_above_small = following != following.upper() and not following.lstrip()[:1].islower()
    is_loud = line.isupper() and 2 * sum(map(str.isupper, line)) > sum(map(str.isalpha, line))
    is_title = is_loud and is_above_small and not line.rstrip().endswith(",")
    is_credited = _AUTHOR.match(following) is not None and len(line.split()) <= _CREDITED
    if is_title or is_credited or _are_rows(line, following):
        return False
    if _was_cut(line, following):
        return True
    if not _NARROWEST <= widest <= _WIDEST or len(line.rstrip()) < _FULL * widest:
        return False
    if following.lstrip()[:1].islower() and not ENDED.search(line):
        return True
    ordinal = _ORDINAL.match(following)  # "ab dem" / "3. März"
    is_item = _ITEM.match(following) and not (ordinal and ordinal[1].lower() in ORDERED)
    return not (NAMED.match(following) or is_item or _AGENDA.match(line))


def _cited(sentences: list[str]) -> list[str]:
    """Return sentences with the citation marks that follow them: "In Dulwich. [17] He" and "In Dulwich.[17] He"."""
    cited: list[str] = []
    for sentence in sentences:
        later = _CITED_LATER.match(sentence) if cited else None
        start = 0
        if later is not None:
            cited[-1] += f" {later.group().rstrip()}"
            start = later.end()
        for mark in _CITED_AT_ONCE.finditer(sentence, start):
            cited.append(sentence[start : mark.end()].rstrip())
            start = mark.end()
        cited += [sentence[start:]] if start < len(sentence) else []
    return cited


def _are_rows(line: str, following: str) -> bool:
    """Check whether two lines are rows of a table, of two columns or of a timetable."""
    first, second = _ROW.search(line), _ROW.search(following)
    if not (first and second) or _LEFT_OPEN.search(line):
        return False
    return "|" in first[0] or abs(first.end() - second.end()) <= _SAME_PLACE


def _was_cut(line: str, following: str) -> bool:
    """Check whether a line break is inside a sentence, whatever the width of the line."""
    return (
        _IN_A_SENTENCE.search(line) is not None
        and following.lstrip()[:1].islower()
        and len(line.split()) >= _FEWEST_WORDS
        and not NAMED.match(following)
        and _indent(line) == _indent(following)
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _cut(text: str, start: int, speakers: frozenset[str], asides: Asides) -> Iterator[TextUnit]:
    """Yield the units of a piece that starts at `start` in the document."""
    words = text.split()
    if not words:
        return
    named = speaker_of(text)
    speaker = named if named in speakers else ""
    is_turn = speaker and len(words) - len(speaker.split()) <= _LONG_TURN
    text = blank_sounds(text) if speaker and not is_turn else text
    sentences = [" ".join(words)] if is_turn else _cited(split_sentences(text))
    is_clause = not speaker and len(sentences) > 1 and not _ITEM.match(sentences[1])
    runs_in = is_clause and _RUN_IN.fullmatch(sentences[0]) is not None
    begins = unit_starts(text, sentences)
    is_aside = not speaker and asides.has(text)
    for sentence, begin, end in zip(sentences, begins, (*begins[1:], len(text)), strict=True):
        shown = visible(sentence)
        unit = TextUnit(shown, start + begin, start + begin + len(text[begin:end].rstrip()), speaker=speaker)
        if shown.strip():
            is_side = is_aside or (not speaker and asides.has_sentence(shown))
            if runs_in and begin == begins[0]:
                yield replace(unit, text=shown.rstrip("."), heading=True)
            else:
                yield replace(unit, aside=is_side)
