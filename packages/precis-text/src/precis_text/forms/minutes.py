"""The minutes of a meeting: topics, decisions, actions, open questions and the next date, each with its place.

`minutes.toml` lists the words by which each language says them. Every line is a sentence of the meeting; an owner or a
date is named only if the meeting names it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import ClassVar, final

from precis_text.cohesion import announces
from precis_text.forms.assents import Assent, assents_of
from precis_text.forms.form import Form, FormLine, FormType, ScoredText
from precis_text.forms.meeting_cues import Cues, cues_of
from precis_text.forms.outline import section_line, sections_of
from precis_text.forms.short_forms import line_of
from precis_text.forms.statements import Statement, plain, replies_to, statements_of, with_question
from precis_text.length import Length
from precis_text.motions import votes_of
from precis_text.sentences import split_sentences
from precis_text.units import BOX, is_ticked
from precis_text.words import unicode_words

PARTS = ("topics", "decisions", "actions", "questions", "next")
_WORTH = {"decisions": 3.0, "actions": 3.0, "questions": 2.0, "next": 2.0, "topics": 1.0}
_MOST_TOPICS = 6  # without headings and without words that open a topic
_FEWEST_WORDS, _TOPIC_WORDS = 2, 5  # of a line, and of a topic by its best sentence
_ITEM = re.compile(rf"^\s*(?:[-*•–+]|{BOX}|\(?(?:\d{{1,2}}[.)]|[a-z]\)))\s")
_LEADING = re.compile(r"@?(?P<owner>[^–—:.,(]{2,40}?)(?: [–—-] |: )")
_NAME = re.compile(r"\b[^\W\d_a-zß-ÿ]\w+")
_COUNTED = re.compile(r"(\d{1,2})[.)]\s")
_ROW = re.compile(r"^[^\n]* \| [^\n]*", re.MULTILINE)  # of a table, with its cells
_SHORT_QUESTION = 15  # words of a question in notes without turns
_RELATED = 5  # least letters of a word by which a later statement answers a question
_NEAR = 12  # statements after a request that names somebody among which the answer is looked for
_LATER = 6  # statements after the reply that may do so
_ASSENT = 3  # most words beside the date in an answer that gives nothing else


@final
@dataclass(frozen=True, kw_only=True)
class Minutes(Form):
    """Topics, decisions, actions and open questions, each with its time, or else its turn."""

    name: ClassVar[FormType] = "minutes"

    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return the lines of each part, in the order of the document."""
        known = cues_of(source.document)
        listed = _listed(source, known)
        rows = _rows(source, known, listed)
        every = statements_of(source, listed)
        said = [each for each in every if each.unit not in listed or not _is_row(source.document, each.start)]
        replies = _accepting(said, known)
        votes = _votes(said, source, known)
        assents = assents_of(said, known, taken={*replies, *replies.values(), *votes})
        told = {*replies.values(), *(assent.answer for assent in assents.values())}
        told |= {motion for vote, motions in votes.items() if vote not in told for motion in motions}
        starts = [source.units[each.unit].start for each in said]
        done = {place for place, start in enumerate(starts) if is_ticked(source.document, start)}
        places = [place for place in range(len(said)) if place not in told | done]
        made = (
            _as_listed(said, place, source, known, listed)
            or _line(said, place, source, known, replies, votes)
            or _agreed(said, place, source, known, assents)
            for place in places
        )
        found = sorted([*rows, *(line for line in made if line)], key=lambda line: line.start)
        spans = {(line.start, line.stop) for line in found}
        topics = [line for line in _topics(said, source, known) if not _is_left_out(line, spans, known)]
        return sorted([*topics, *found], key=lambda line: PARTS.index(line.part))

    def render(self, lines: Sequence[FormLine], source: ScoredText) -> str:
        """Return the parts under their labels; a part without lines is left out."""
        labels = cues_of(source.document).labels
        shown = {part: [f"- {line.shown}" for line in lines if line.part == part] for part in PARTS}
        return "\n\n".join("\n".join([labels[part], *own]) for part, own in shown.items() if own)


def _is_left_out(topic: FormLine, told: Collection[tuple[int, int]], known: Cues) -> bool:
    """Check whether a topic is the heading of another part, or lacks one and holds a line of it or a greeting."""
    if topic.heading:
        return any(head.fullmatch(topic.heading) for head in known.heads.values())
    holds = any(topic.start < stop and start < topic.stop for start, stop in told)
    text = topic.shown.rpartition(": ")[2]
    return holds or any(pattern.search(text) for pattern in (known.greets, known.unknown))


def _listed(source: ScoredText, known: Cues) -> dict[int, str]:
    """Return the part of each unit below a heading such as "Action items", up to the next heading.

    A line such as "Actions:" that is not a heading has only the items of the list below it.
    """
    found: dict[int, str] = {}
    part, above, is_section, last, item = "", "", False, 0, 0
    for place, unit in enumerate(source.units):
        heads = {name for name, head in known.heads.items() if not unit.speaker and head.fullmatch(unit.text)}
        if not heads and announces(unit) and known.decides(unit.text.rstrip(" :")):
            heads = {"decisions"}
        is_other = unit.heading and not unit.aside and source.passages.at(unit.start).heading != above
        number = int(counted[1]) if unit.heading and (counted := _COUNTED.match(unit.text)) else 0
        goes_on = number == last + 1 > 1 and number != item + 1  # "2. Money", after a list below "1. Hall"
        is_next = unit.heading and (goes_on or _ITEM.match(above) is not None)
        is_item = (unit.numbered or _ITEM.match(unit.text)) and not is_next
        item, last = number * bool(is_item), number if number and not (part and is_item) else last
        if heads:
            part, above, is_section = heads.pop(), unit.text, unit.heading
        elif not (is_item or _is_row(source.document, unit.start)) and (is_other or not is_section):
            part = ""
        elif part:
            found[place] = part
        # "Date of next meeting: 1 May"
        is_free = unit.aside if place not in found else not is_item and found[place] != "questions"
        if is_free and known.next.search(unit.text):
            found[place] = "next"
    return found


def _is_row(document: str, start: int) -> bool:
    """Check whether an offset is in a row of a table."""
    return _ROW.match(document, document.rfind("\n", 0, start) + 1) is not None


def _rows(source: ScoredText, known: Cues, listed: Mapping[int, str]) -> list[FormLine]:
    """Return the rows of tables as lines, below the heading of a part or if their first row names its columns."""
    starts = [unit.start for unit in source.units]
    found, columns, end, part = [], [""], -2, ""
    for row in _ROW.finditer(source.document):
        cells = [cell.strip() for cell in row.group().split(" | ")]
        unit = max(bisect_right(starts, row.start()) - 1, 0)
        if row.start() > end + 1:
            columns = [
                next((name for name, head in known.columns.items() if head.fullmatch(c)), "") for c in cells
            ]
            heads = (name for name, head in known.heads.items() for cell in cells if head.fullmatch(cell))
            part = listed.get(unit) or (next(heads, "") if "what" in columns else "")
        if part and not (row.start() > end + 1 and any(columns)):
            told = {name: cell for name, cell in zip(columns, cells, strict=False) if name}
            text = told.get("what") or max(cells, key=len)
            if part != "actions" or not known.done.fullmatch(told.get("status", "").strip("[]")):
                row_of = Statement(text, row.start(), row.end(), unit, "", "", 0)
                facts = {name: told.get(name, "") for name in ("owner", "due")} if part == "actions" else {}
                found.append(_shown(row_of, part, source, **facts))
        end = row.end()
    return found


def _accepting(said: Sequence[Statement], known: Cues) -> dict[int, int]:
    """Return the index of each accepted request, with that of the reply that accepts it."""
    found = {}
    for place, statement in enumerate(said):
        text = plain(statement)
        if known.requests.search(text) and not known.idle.search(text):
            later = range(len(said))[place + 1 : place + _NEAR]  # a thread may be between
            named = [reply for reply in later if _is_asked(said, place, reply)]
            for reply in [*replies_to(said, place)[:1], *named]:
                answer = plain(said[reply])
                if known.accepts.search(answer) and not known.declines.search(answer):
                    found[place] = reply
                if place in found or known.declines.search(answer):
                    break
    return found


def _is_asked(said: Sequence[Statement], place: int, reply: int) -> bool:
    """Check whether a statement begins a turn of another speaker, whom a request names."""
    name = said[reply].speaker
    begins = said[reply].turn != said[reply - 1].turn and name not in ("", said[place].speaker)
    return begins and re.search(rf"\b{re.escape(name.split()[0])}\b", said[place].text) is not None


def _as_listed(
    said: Sequence[Statement], place: int, source: ScoredText, known: Cues, listed: Mapping[int, str]
) -> FormLine | None:
    """Return a statement as a line of the part whose heading it is below; None without one."""
    part = listed.get(said[place].unit)
    statement = replace(said[place], text=_ITEM.sub("", said[place].text, count=1))
    if part == "next" and known.greets.search(statement.text):  # "The meeting closed at noon"
        return None
    if part != "actions":
        return _shown(statement, part, source) if part else None
    text, found = plain(statement), _LEADING.match(statement.text)
    named = {*_NAME.findall(found["owner"])} if found else set()
    present = (unit.text for unit in source.units if known.greets.search(unit.text))
    is_known = named and named <= {name for text in present for name in _NAME.findall(text.partition(":")[2])}
    owner = found["owner"] if found and is_known else _owner([statement], 0, known) or ""
    return _shown(statement, part, source, owner=owner, due=_due(text, "", known))


def _line(
    said: Sequence[Statement],
    place: int,
    source: ScoredText,
    known: Cues,
    replies: Mapping[int, int],
    votes: Mapping[int, Sequence[int]],
) -> FormLine | None:
    """Return a statement as a line of decisions, actions or questions; None for any other statement.

    Args:
        replies, votes: see `_accepting` and `_votes`.
    """  # fmt: skip
    statement = plain(said[place])
    if place in votes:
        motions = [said[motion] for motion in votes[place]]
        motion = replace(motions[0], text=" ".join(each.text for each in motions))
        is_past = known.moved.past.search(motion.text)
        return None if is_past else _shown(replace(said[place], asked=motion), "decisions", source)
    if len(statement.split()) < _FEWEST_WORDS or known.is_hollow(statement):
        return None
    told = with_question(said, place, lambda at: at in replies or _stays_open(said, at, source, known))
    if known.next.search(_headed(said, place, source)) and not statement.endswith("?"):
        return _shown(told, "next", source)
    if _stays_open(said, place, source, known):
        return _shown(said[place], "questions", source)
    shared = known.shared.search(statement)
    answers = said[replies[place]].speaker if place in replies else _owner(said, place, known)
    owner = shared["owner"] if shared else answers
    if owner is not None:
        answer = _dated_answer(said, replies[place], known) if place in replies else ""
        due = "" if answer is None else _due(statement, answer, known)
        return _shown(told, "actions", source, owner=owner, due=due)
    if known.decides(statement) and not _is_objected(said, place, known):
        return _shown(told, "decisions", source)
    return None


def _votes(said: Sequence[Statement], source: ScoredText, known: Cues) -> dict[int, list[int]]:
    """Return the votes with their motions; in a conversation without those that only agree, as assents do."""
    above = [source.units[said[place - 1].unit : said[place].unit] for place in range(len(said))]
    begins = [place for place, units in enumerate(above) if any(unit.heading for unit in units)]
    texts, units = [plain(each) for each in said], [source.units[each.unit] for each in said]
    return {
        place: motions
        for place, motions in votes_of(units, texts, begins, known.moved).items()
        if not (said[place].speaker and known.is_hollow(texts[place]))
        if not said[place].speaker or known.moved.moves(texts[motions[0]])
    }


def _agreed(
    said: Sequence[Statement], place: int, source: ScoredText, known: Cues, assents: Mapping[int, Assent]
) -> FormLine | None:
    """Return a proposal as a decision, or a task as an action, if an answer without content agrees to it."""
    assent = assents.get(place)
    if assent is None:
        return None
    answer = said[assent.answer]
    after = said[min(assent.answer + 1, len(said) - 1)]
    if assent.part == "decisions" and after.turn == answer.turn and known.concludes.search(plain(after)):
        told = replace(after, asked=said[place])
        return None if known.decides(plain(after)) else _shown(told, "decisions", source)
    if assent.part == "decisions":
        return _shown(said[place], "decisions", source, agreed=answer.speaker)
    due = _due(plain(said[place]), plain(answer), known)
    return _shown(said[place], "actions", source, owner=answer.speaker, due=due)


def _due(request: str, answer: str, known: Cues) -> str:
    """Return the date that the answer to a request names, or else the request; "" without one, or with several."""
    read = ((each, text) for text in (answer, request) for each in known.due)
    dates = ([found["due"] for found in each.finditer(text)] for each, text in read)
    named = next(filter(None, dates), [""])
    return named[0] if len({*map(str.lower, named)}) == 1 else ""


def _dated_answer(said: Sequence[Statement], place: int, known: Cues) -> str | None:
    """Return the sentences of an accepting turn whose dates are those of the task; None if that is not sure.

    "Yes, a draft by noon." and "I'll do it by noon." have such dates, "I was away today." has none.
    """
    taken = []
    for each in takewhile(lambda each: each.turn == said[place].turn, said[place : place + _LATER]):
        text = plain(each)
        bare, is_elsewhen = known.undated(text), known.elsewhen.search(text) is not None
        promises = known.promises.search(text) is not None
        is_short = len(unicode_words(bare)) <= _ASSENT and each is said[place]
        if (promises or is_short or known.is_hollow(bare)) and not is_elsewhen:
            taken.append(text)
        elif bare != text and (promises or (each is said[place] and not is_elsewhen)):
            return None
    return " ".join(taken)


def _headed(said: Sequence[Statement], place: int, source: ScoredText) -> str:
    """Return a statement after the heading above it, which says what "22 March, 10:00" is."""
    above = source.units[said[place].unit - 1] if said[place].unit else None
    return f"{above.text}: {plain(said[place])}" if above and above.heading else plain(said[place])


def _owner(said: Sequence[Statement], place: int, known: Cues) -> str | None:
    """Return who does what a statement promises or assigns, "" if that is unknown; None if it does neither."""
    text = plain(said[place])
    if text.endswith("?"):
        return None
    if known.promises.search(text) and not known.idle.search(text):
        return said[place].speaker
    clauses = [clause for clause in text.split("; ") if not known.undecided.search(clause)]
    for found in (pattern.search(clause) for pattern in known.assigned for clause in clauses):
        owner = (found["owner"] or "") if found else ""
        if found and owner.lower() not in known.nobody:
            return _speaker(owner, said)
    return None


def _speaker(owner: str, said: Sequence[Statement]) -> str:
    """Return the speaker that an owner names by a part of the name, else the owner."""
    names = {each.speaker for each in said if owner and owner.split()[-1] in each.speaker.split()}
    return names.pop() if len(names) == 1 else owner


def _is_objected(said: Sequence[Statement], place: int, known: Cues) -> bool:
    """Check whether the reply to a proposal objects to it."""
    replies = replies_to(said, place)
    is_proposal = known.proposals.search(plain(said[place])) is not None
    return is_proposal and bool(replies) and known.objects.search(plain(said[replies[0]])) is not None


def _stays_open(said: Sequence[Statement], place: int, source: ScoredText, known: Cues) -> bool:
    """Check whether a statement says so, or is a question that its reply leaves open, or that gets no answer."""
    text, turn = plain(said[place]), said[place].turn
    if known.open.search(known.hours.sub("", text)):
        return True
    is_question = text.endswith("?") or ("? " in text and known.asks.search(text))  # a chat may lack capitals
    if not is_question or known.idle.search(text):
        return False
    if not turn:  # notes: a line that is a question has no answer on it
        ends_line = source.document[said[place].stop : said[place].stop + 1] in ("", "\n")
        heading = source.passages.at(said[place].start).heading  # of a page of questions and answers
        return ends_line and text not in split_sentences(heading) and len(text.split()) <= _SHORT_QUESTION
    after = next((at for at in range(place, len(said)) if said[at].turn != turn), place)
    own = said[after].speaker == said[place].speaker  # "And drinks?", "Anybody?"
    replies = replies_to(said, after if own else place)
    if any(known.unknown.search(plain(said[reply])) for reply in replies):
        return True
    if not known.asks.search(text) or (place + 1 < len(said) and not replies):
        return False
    return not replies or _changes_subject(said, place, replies[0], known)


def _changes_subject(said: Sequence[Statement], place: int, reply: int, known: Cues) -> bool:
    """Check whether the reply to a question is another question, and no later statement has a word of the first."""
    text = plain(said[reply])
    evades = (known.asks, known.requests, known.topics, known.next)
    if not any(pattern.search(text) for pattern in evades):
        return False
    words = {word for word in unicode_words(plain(said[place])) if len(word) >= _RELATED}
    later = said[reply : reply + _LATER]
    return not any(words & {*unicode_words(plain(each))} for each in later if not plain(each).endswith("?"))


def _topics(said: Sequence[Statement], source: ScoredText, known: Cues) -> list[FormLine]:
    """Return the topics: the headings, else the statements that open one, else the best unit of each topic."""
    sections = sections_of(source)
    if any(section.heading for section in sections):
        lines = [section_line(source, section) for section in sections if section.heading]
        return [_topic(line, line.heading) for line in lines if line is not None and (line.worth or not said)]
    labelled = [unit for unit in source.units if unit.aside and known.topics.search(unit.text)]
    if labelled:
        return [_topic(line_of(source, unit, shown=unit.text, worth=0.5), unit.text) for unit in labelled]
    opened = [each for each in said if known.topics.search(plain(each))]
    if opened:
        return [_shown(statement, "topics", source) for statement in opened]
    every = (section_line(source, section) for section in sections)
    found = [line for line in every if line and len(line.shown.rpartition(": ")[2].split()) >= _TOPIC_WORDS]
    best = sorted(found, key=lambda line: -line.worth)[:_MOST_TOPICS]
    timed = [replace(line, time=source.passages.at(line.start).time) for line in found if line in best]
    return [_topic(line, line.shown) for line in timed]


def _topic(line: FormLine, text: str) -> FormLine:
    shown = f"[{line.time}] {text}" if line.time else text
    return FormLine(
        shown, line.start, line.stop, part="topics", heading=line.heading, time=line.time,
        speaker=line.speaker, worth=_WORTH["topics"] + min(line.worth, 0.9),
    )  # fmt: skip


def _shown(
    statement: Statement, part: str, source: ScoredText, *, owner: str = "", due: str = "", agreed: str = ""
) -> FormLine:
    """Return a statement as a line: time or turn, speaker, and who agreed, or the owner and date of an action."""
    labels = cues_of(source.document).labels
    where = statement.time or (f"{labels['turn']} {statement.turn}" if statement.turn else "")
    who, asked = f"{statement.speaker}: " if statement.speaker else "", statement.asked
    told = {"owner": owner, "due": due, "agreed": agreed}
    facts = [f"{labels[name]}: {value}" for name, value in told.items() if value]
    stamp, known = f"[{where}] " if where else "", f" ({'; '.join(facts)})" if facts else ""
    stamp += "" if not asked else f"{asked.speaker}: {asked.text} – " if asked.speaker else f"{asked.text} "
    return FormLine(
        f"{stamp}{who}{statement.text}{known}", (asked or statement).start, statement.stop, part=part,
        time=statement.time, speaker=statement.speaker, turn=statement.turn, owner=owner, due=due,
        worth=_WORTH[part] + min(source.scores[statement.unit], 0.9),
    )  # fmt: skip
