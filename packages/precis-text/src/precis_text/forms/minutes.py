"""The minutes of a meeting: topics, decisions, actions, open questions and the next date, each with its place.

`minutes.toml` lists the words by which each language says them. Every line is a sentence of the meeting; an owner or a
date is named only if the meeting names it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import ClassVar, final

from precis_text.cohesion import announces
from precis_text.forms.assents import assents_of
from precis_text.forms.form import Form, FormLine, FormType, ScoredText
from precis_text.forms.meeting_cues import Cues, cues_of
from precis_text.forms.outline import section_line, sections_of
from precis_text.forms.short_forms import line_of
from precis_text.forms.statements import POINTING, Statement, plain, replies_to, statements_of, with_question
from precis_text.length import Length
from precis_text.motions import votes_of
from precis_text.sentences import split_sentences
from precis_text.units import BOX, is_item, is_ticked
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
_NAMES = 2  # most words of one owner's name: "Ann and Ben" are two persons
_GROUP = 3  # least speakers of a talk in which a dated request asks all of them
_ASSENT = 3  # most words beside the date in an answer that gives nothing else


@final
@dataclass(frozen=True, kw_only=True)
class Minutes(Form):
    """Topics, decisions, actions and open questions, each with its time, or else its turn."""

    name: ClassVar[FormType] = "minutes"

    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return the lines of each part, in the order of the document."""
        meeting = _Meeting(source, cues_of(source.document))
        found = sorted([*meeting.rows(), *meeting.lines()], key=lambda line: line.start)
        spans = {(line.start, line.stop) for line in found}
        topics = [line for line in meeting.topics() if not _is_left_out(line, spans, meeting.known)]
        return sorted([*topics, *found], key=lambda line: PARTS.index(line.part))

    def render(self, lines: Sequence[FormLine], source: ScoredText) -> str:
        """Return the parts under their labels; a part without lines is left out."""
        labels = cues_of(source.document).labels
        shown = {part: [f"- {line.shown}" for line in lines if line.part == part] for part in PARTS}
        return "\n\n".join("\n".join([labels[part], *own]) for part, own in shown.items() if own)


def _is_another(asked: str, promised: str) -> bool:
    """Check whether a promise is of another task than the one asked for: no word of it, and none that points to it."""
    words = [{word[:5] for word in unicode_words(text) if len(word) > 3} for text in (asked, promised)]
    return words[0].isdisjoint(words[1]) and POINTING.isdisjoint(unicode_words(promised))


def _is_left_out(topic: FormLine, told: Collection[tuple[int, int]], known: Cues) -> bool:
    """Check whether a topic is the heading of another part, or lacks one and holds a line of it or a greeting."""
    if topic.heading:
        return any(head.fullmatch(topic.heading) for head in known.heads.values())
    holds = any(topic.start < stop and start < topic.stop for start, stop in told)
    text = topic.shown.rpartition(": ")[2]
    return holds or any(pattern.search(text) for pattern in (known.greets, known.unknown))


class _Meeting:
    """A document read as a meeting, and what each of its statements is. A place is an index of `said`.

    Attributes:
        said, texts: the statements but for the rows of tables, which `rows` returns, and the plain text of each.
        accepted: the place of each accepted request, with that of the reply that accepts it.
        present: the names in the lists of those who are there.
    """  # fmt: skip

    def __init__(self, source: ScoredText, known: Cues) -> None:
        self.source, self.known = source, known
        self.listed = self._listed()
        every = statements_of(source, self.listed)
        self.said = [each for each in every if each.unit not in self.listed or not self._is_row(each.start)]
        self.texts = [plain(each) for each in self.said]
        self.accepted, self.votes = self._accepted(), self._votes()
        taken = {*self.accepted, *self.accepted.values(), *self.votes}
        self.assents = assents_of(self.said, known, taken=taken)
        lists = [unit.text.partition(":")[2] for unit in source.units if known.greets.search(unit.text)]
        self.present = {name for text in lists for name in _NAME.findall(text)}
        is_written = not any(each.turn for each in self.said)
        is_letter = is_written and known.letters.search(source.document) is not None
        self.asks_all = is_letter or len({each.speaker for each in self.said} - {""}) >= _GROUP

    def _listed(self) -> dict[int, str]:
        """Return the part of each unit below a heading such as "Action items", up to the next heading.

        A line such as "Actions:" that is not a heading has only the items of the list below it.
        """
        found: dict[int, str] = {}
        part, above, is_section, last, item = "", "", False, 0, 0
        known, place_at = self.known, self.source.passages.at
        for place, unit in enumerate(self.source.units):
            text = "" if unit.speaker else unit.text
            heads = {name for name, head in known.heads.items() if head.fullmatch(text)}
            if not heads and announces(unit) and known.decides(unit.text.rstrip(" :")):
                heads = {"decisions"}
            is_other = unit.heading and not unit.aside and place_at(unit.start).heading != above
            number = int(counted[1]) if unit.heading and (counted := _COUNTED.match(unit.text)) else 0
            goes_on = number == last + 1 > 1 and number != item + 1  # "2. Money", below a list of "1. Hall"
            is_next = unit.heading and (goes_on or _ITEM.match(above) is not None)
            is_item = (unit.numbered or _ITEM.match(unit.text)) and not is_next
            item, last = number * bool(is_item), number if number and not (part and is_item) else last
            if heads:
                part, above, is_section = heads.pop(), unit.text, unit.heading
            elif not (is_item or self._is_row(unit.start)) and (is_other or not is_section):
                part = ""
            elif part:
                found[place] = part
            # "Date of next meeting: 1 May"
            is_free = unit.aside if place not in found else not is_item and found[place] != "questions"
            if is_free and known.next.search(unit.text):
                found[place] = "next"
        return found

    def _accepted(self) -> dict[int, int]:
        found = {}
        for place, text in enumerate(self.texts):
            if self.known.requests.search(text) and not self.known.idle.search(text):
                later = range(len(self.said))[place + 1 : place + _NEAR]  # a thread may be between
                named = [reply for reply in later if self._is_asked(place, reply)]
                for reply in [*replies_to(self.said, place)[:1], *named]:
                    is_declined = self.known.declines.search(self.texts[reply]) is not None
                    if self.known.accepts.search(self.texts[reply]) and not is_declined:
                        found[place] = reply
                    if place in found or is_declined:
                        break
        return found

    def _votes(self) -> dict[int, list[int]]:
        """Return the votes with their motions; in a conversation without those that only agree, as assents do."""
        said, texts = self.said, self.texts
        above = [self.source.units[said[place - 1].unit : said[place].unit] for place in range(len(said))]
        begins = [place for place, units in enumerate(above) if any(unit.heading for unit in units)]
        units = [self.source.units[each.unit] for each in said]
        return {
            place: motions
            for place, motions in votes_of(units, texts, begins, self.known.moved).items()
            if not (said[place].speaker and self.known.is_hollow(texts[place]))
            if not said[place].speaker or self.known.moved.moves(texts[motions[0]])
        }

    def lines(self) -> list[FormLine]:
        """Return the statements as lines, but for those that another line has, and items that are ticked."""
        told = {*self.accepted.values(), *(assent.answer for assent in self.assents.values())}
        told |= {motion for vote, motions in self.votes.items() if vote not in told for motion in motions}
        starts = [self.source.units[each.unit].start for each in self.said]
        told |= {place for place, start in enumerate(starts) if is_ticked(self.source.document, start)}
        made = (self._line(place) for place in range(len(starts)) if place not in told)
        return [line for line in made if line is not None]

    def _line(self, place: int) -> FormLine | None:
        """Return a statement as a line of the first kind that it is of; None if it is of no kind."""
        # The heading above tells most, and a vote is nothing else. Then its own words count: "Still open: Ann will
        # pay" is a question, and "Agreed, Ann will pay" a task. Without content it has only what answers agree to.
        text = self.texts[place]
        is_empty = len(text.split()) < _FEWEST_WORDS or self.known.is_hollow(text)
        own = [] if is_empty else [self._next, self._question, self._action, self._decision]
        kinds = [self._as_listed, *([self._vote] if place in self.votes else own), self._agreed]
        return next((line for kind in kinds if (line := kind(place))), None)

    def _as_listed(self, place: int) -> FormLine | None:
        """Return a statement as a line of the part whose heading it is below; None without one."""
        part = self.listed.get(self.said[place].unit)
        statement = replace(self.said[place], text=_ITEM.sub("", self.said[place].text, count=1))
        if part == "next" and self.known.greets.search(statement.text):  # "The meeting closed at noon"
            return None
        if part != "actions":
            return self._shown(statement, part) if part else None
        leading = found["owner"] if (found := _LEADING.match(statement.text)) else ""
        named = {*_NAME.findall(leading)}
        owner = leading if named and named <= self.present else self._owner(statement) or ""
        return self._shown(statement, part, owner=owner, due=self._due(plain(statement)))

    def _vote(self, place: int) -> FormLine | None:
        """Return a vote with its motions as a decision; None if it was long ago."""
        motions = [self.said[motion] for motion in self.votes[place]]
        motion = replace(motions[0], text=" ".join(each.text for each in motions))
        is_past = self.known.moved.past.search(motion.text)
        return None if is_past else self._shown(replace(self.said[place], asked=motion), "decisions")

    def _next(self, place: int) -> FormLine | None:
        """Return the date of the next meeting; the heading above may say what "22 March, 10:00" is."""
        unit, text = self.said[place].unit, self.texts[place]
        above = self.source.units[unit - 1] if unit else None
        headed = f"{above.text}: {text}" if above and above.heading else text
        is_told = self.known.next.search(headed) and not text.endswith("?")
        return self._shown(self._asked(place), "next") if is_told else None

    def _question(self, place: int) -> FormLine | None:
        return self._shown(self.said[place], "questions") if self._stays_open(place) else None

    def _action(self, place: int) -> FormLine | None:
        """Return a task: what a person promises, accepts or is to do, or what a letter asks for until a date."""
        text, reply = self.texts[place], self.accepted.get(place)
        shared = self.known.shared.search(text)
        answers = self._owner(self.said[place]) if reply is None else self.said[reply].speaker
        is_declined = any(
            self.known.declines.search(self.texts[at]) for at in replies_to(self.said, place)[:1]
        )
        owner = shared["owner"] if shared and not is_declined else answers
        if owner is None:
            is_spoken_question = text.endswith("?") and self.said[place].turn > 0
            is_asked = self.asks_all and not (is_declined or is_spoken_question or place in self.assents)
            is_wish = is_asked and self.known.wishes.search(text) and (due := self._due(text))
            return self._shown(self._with_items(place), "actions", due=due) if is_wish else None
        last = owner.split()[-1] if 0 < len(owner.split()) <= _NAMES else None
        named = {each.speaker for each in self.said if last in each.speaker.split()}
        owner = named.pop() if len(named) == 1 else owner  # "Okafor" is "Mr Okafor", who speaks
        answer = "" if reply is None else self._dated_answer(reply)
        due = "" if answer is None else self._due(text, answer)
        undated = self.known.undated(answer or "")
        if undated and self.known.promises.search(undated) and _is_another(text, undated):
            due = self._due(text) or due  # "I'll buy the ink tomorrow" is another task
        return self._shown(self._asked(place), "actions", owner=owner, due=due)

    def _decision(self, place: int) -> FormLine | None:
        is_decision = self.known.decides(self.texts[place]) and not self._is_objected(place)
        return self._shown(self._asked(place), "decisions") if is_decision else None

    def _agreed(self, place: int) -> FormLine | None:
        """Return a proposal as a decision, or a task as an action, if an answer without content agrees to it."""
        assent = self.assents.get(place)
        if assent is None:
            return None
        next_place = min(assent.answer + 1, len(self.said) - 1)
        answer, after, text = self.said[assent.answer], self.said[next_place], self.texts[next_place]
        if assent.part == "decisions" and after.turn == answer.turn and self.known.concludes.search(text):
            told = replace(after, asked=self.said[place])
            return None if self.known.decides(text) else self._shown(told, "decisions")
        if assent.part == "decisions":
            return self._shown(self.said[place], "decisions", agreed=answer.speaker)
        due = self._due(self.texts[place], self.texts[assent.answer])
        return self._shown(self.said[place], "actions", owner=answer.speaker, due=due)

    def _asked(self, place: int) -> Statement:
        """Return a statement with the question that it answers, if it says little without that."""
        return with_question(self.said, place, lambda at: at in self.accepted or self._stays_open(at))

    def _with_items(self, place: int) -> Statement:
        """Return a statement with the items of the list below it, if it ends in a colon."""
        said, told = self.said[place], self.said[place + 1 :] if self.texts[place].endswith(":") else []
        items = [*takewhile(lambda each: is_item(self.source.units[each.unit]), told)]
        text = f"{said.text} {'; '.join(each.text for each in items)}".rstrip()
        return replace(said, text=text, stop=[said, *items][-1].stop)

    def _due(self, request: str, answer: str = "") -> str:
        """Return the date that the answer to a request names, or else the request; "" without one, or with several."""
        read = ((each, text) for text in (answer, request) for each in self.known.due)
        dates = ([found["due"] for found in each.finditer(text)] for each, text in read)
        named = next(filter(None, dates), [""])
        return named[0] if len({*map(str.lower, named)}) == 1 else ""

    def _dated_answer(self, place: int) -> str | None:
        """Return the sentences of an accepting turn whose dates are those of the task; None if that is not sure.

        "Yes, a draft by noon." and "I'll do it by noon." have such dates, "I was away today." has none.
        """
        taken = []
        turn = takewhile(lambda each: each.turn == self.said[place].turn, self.said[place : place + _LATER])
        for each, text in zip(turn, self.texts[place : place + _LATER], strict=False):
            bare, is_elsewhen = self.known.undated(text), self.known.elsewhen.search(text) is not None
            promises = self.known.promises.search(text) is not None
            is_short = len(unicode_words(bare)) <= _ASSENT and each is self.said[place]
            if (promises or is_short or self.known.is_hollow(bare)) and not is_elsewhen:
                taken.append(text)
            elif bare != text and (promises or (each is self.said[place] and not is_elsewhen)):
                return None
        return " ".join(taken)

    def _owner(self, statement: Statement) -> str | None:
        """Return who does what a statement promises or assigns, "" if that is unknown; None if it does neither."""
        text, known = plain(statement), self.known
        if text.endswith("?"):
            return None
        if known.promises.search(text) and not known.idle.search(text):
            return statement.speaker
        clauses = [clause for clause in text.split("; ") if not known.undecided.search(clause)]
        found = (pattern.search(clause) for pattern in known.assigned for clause in clauses)
        owners = ((each["owner"] or "") for each in found if each)
        return next((owner for owner in owners if owner.lower() not in known.nobody), None)

    def _is_row(self, start: int) -> bool:
        """Check whether an offset is in a row of a table."""
        document = self.source.document
        return _ROW.match(document, document.rfind("\n", 0, start) + 1) is not None

    def _is_asked(self, place: int, reply: int) -> bool:
        """Check whether a statement begins a turn of another speaker, whom a request names."""
        asked, before, answer = self.said[place], self.said[reply - 1], self.said[reply]
        begins = answer.turn != before.turn and answer.speaker not in ("", asked.speaker)
        return begins and re.search(rf"\b{re.escape(answer.speaker.split()[0])}\b", asked.text) is not None

    def _is_objected(self, place: int) -> bool:
        """Check whether the reply to a proposal objects to it."""
        replies = replies_to(self.said, place)
        is_proposal = self.known.proposals.search(self.texts[place]) is not None
        return is_proposal and bool(replies) and self.known.objects.search(self.texts[replies[0]]) is not None

    def _stays_open(self, place: int) -> bool:
        """Check whether a statement says so, or is a question that its reply leaves open, or that gets no answer."""
        said, text, turn = self.said, self.texts[place], self.said[place].turn
        if self.known.open.search(self.known.hours.sub("", text)):
            return True
        # a chat may lack capitals
        is_question = text.endswith("?") or ("? " in text and self.known.asks.search(text))
        if not is_question or self.known.idle.search(text):
            return False
        if not turn:  # notes: a line that is a question has no answer on it
            ends_line = self.source.document[said[place].stop : said[place].stop + 1] in ("", "\n")
            heading = self.source.passages.at(said[place].start).heading  # of a page of questions and answers
            return ends_line and text not in split_sentences(heading) and len(text.split()) <= _SHORT_QUESTION
        after = next((at for at in range(place, len(said)) if said[at].turn != turn), place)
        own = said[after].speaker == said[place].speaker  # "And drinks?", "Anybody?"
        replies = replies_to(said, after if own else place)
        unknown = [self.known.unknown.search(self.texts[reply]) is not None for reply in replies]
        is_told = unknown and not unknown[0] and self.known.accepts.search(self.texts[replies[0]])
        if any(unknown) and not (is_told and not self.known.asks.search(text)):
            return True
        if not self.known.asks.search(text) or (place + 1 < len(said) and not replies):
            return False
        return not replies or self._changes_subject(place, replies[0])

    def _changes_subject(self, place: int, reply: int) -> bool:
        """Check whether the reply to a question is another question, and no later statement has a word of the first."""
        evades = (self.known.asks, self.known.requests, self.known.topics, self.known.next)
        if not any(pattern.search(self.texts[reply]) for pattern in evades):
            return False
        words = {word for word in unicode_words(self.texts[place]) if len(word) >= _RELATED}
        later = self.texts[reply : reply + _LATER]
        return not any(words & {*unicode_words(text)} for text in later if not text.endswith("?"))

    def rows(self) -> list[FormLine]:
        """Return the rows of tables as lines, below the heading of a part or if their first row names its columns."""
        starts = [unit.start for unit in self.source.units]
        found, columns, end, part = [], [""], -2, ""
        for row in _ROW.finditer(self.source.document):
            cells = [cell.strip() for cell in row.group().split(" | ")]
            unit = max(bisect_right(starts, row.start()) - 1, 0)
            if row.start() > end + 1:
                named = self.known.columns.items()
                columns = [next((name for name, head in named if head.fullmatch(cell)), "") for cell in cells]
                heads = (name for name, head in self.known.heads.items() if any(map(head.fullmatch, cells)))
                part = self.listed.get(unit) or (next(heads, "") if "what" in columns else "")
            if part and not (row.start() > end + 1 and any(columns)):
                told = {name: cell for name, cell in zip(columns, cells, strict=False) if name}
                text = told.get("what") or max(cells, key=len)
                if part != "actions" or not self.known.done.fullmatch(told.get("status", "").strip("[]")):
                    row_of = Statement(text, row.start(), row.end(), unit, "", "", 0)
                    facts = {name: told.get(name, "") for name in ("owner", "due") if part == "actions"}
                    found.append(self._shown(row_of, part, **facts))
            end = row.end()
        return found

    def topics(self) -> list[FormLine]:
        """Return the topics: the headings, else the statements that open one, else the best unit of each topic."""
        source, opens = self.source, self.known.topics.search
        sections = sections_of(source)
        if any(section.heading for section in sections):
            lines = [section_line(source, section) for section in sections if section.heading]
            return [_topic(line, line.heading) for line in lines if line and (line.worth or not self.said)]
        labelled = [unit for unit in source.units if unit.aside and opens(unit.text)]
        if labelled:
            return [_topic(line_of(source, unit, shown=unit.text, worth=0.5), unit.text) for unit in labelled]
        opened = [each for each, text in zip(self.said, self.texts, strict=True) if opens(text)]
        if opened:
            return [self._shown(statement, "topics") for statement in opened]
        every = filter(None, (section_line(source, section) for section in sections))
        found = [line for line in every if len(line.shown.rpartition(": ")[2].split()) >= _TOPIC_WORDS]
        best = sorted(found, key=lambda line: -line.worth)[:_MOST_TOPICS]
        timed = [replace(line, time=source.passages.at(line.start).time) for line in found if line in best]
        return [_topic(line, line.shown) for line in timed]

    def _shown(
        self, statement: Statement, part: str, *, owner: str = "", due: str = "", agreed: str = ""
    ) -> FormLine:
        """Return a statement as a line: time or turn, speaker, and who agreed, or the owner and date of an action."""
        labels = self.known.labels
        where = statement.time or (f"{labels['turn']} {statement.turn}" if statement.turn else "")
        who, asked = f"{statement.speaker}: " if statement.speaker else "", statement.asked
        told = {"owner": owner, "due": due, "agreed": agreed}
        facts = [f"{labels[name]}: {value}" for name, value in told.items() if value]
        stamp, known = f"[{where}] " if where else "", f" ({'; '.join(facts)})" if facts else ""
        before = asked and (f"{asked.speaker}: {asked.text} – " if asked.speaker else f"{asked.text} ")
        return FormLine(
            f"{stamp}{before or ''}{who}{statement.text}{known}", (asked or statement).start, statement.stop, part=part,
            time=statement.time, speaker=statement.speaker, turn=statement.turn, owner=owner, due=due,
            worth=_WORTH[part] + min(self.source.scores[statement.unit], 0.9),
        )  # fmt: skip


def _topic(line: FormLine, text: str) -> FormLine:
    shown = f"[{line.time}] {text}" if line.time else text
    return FormLine(
        shown, line.start, line.stop, part="topics", heading=line.heading, time=line.time,
        speaker=line.speaker, worth=_WORTH["topics"] + min(line.worth, 0.9),
    )  # fmt: skip
