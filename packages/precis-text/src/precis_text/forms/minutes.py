"""The minutes of a meeting: topics, decisions, actions and open questions, each with its place.

`minutes.toml` lists the words by which each language says them. Every line is a sentence of the meeting; an owner or a
date is named only if the meeting names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

from precis_text.forms.assents import Assent, assents_of
from precis_text.forms.form import Form, FormLine, FormType, ScoredText
from precis_text.forms.meeting_cues import Cues, cues
from precis_text.forms.outline import section_line, sections_of
from precis_text.forms.statements import Statement, plain, reply_to, statements_of
from precis_text.language import language_of
from precis_text.length import Length

PARTS = ("topics", "decisions", "actions", "questions")
_WORTH = {"decisions": 3.0, "actions": 3.0, "questions": 2.0, "topics": 1.0}
_DEFAULT = "en"
_MOST_TOPICS = 6  # without headings and without words that open a topic
_FEWEST_WORDS = 3
_LETTERS = 4000  # characters by which the language is detected
_NO_OWNERS = frozenset([
    "it", "that", "this", "there", "what", "who", "we", "they", "he", "she", "you", "i", "everyone", "nobody",
    "somebody", "someone", "anybody", "anyone", "one",
])  # fmt: skip


@final
@dataclass(frozen=True, kw_only=True)
class Minutes(Form):
    """Topics, decisions, actions and open questions, each with its time, or else its turn."""

    name: ClassVar[FormType] = "minutes"

    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return the lines of each part, in the order of the document."""
        known = _language(source)
        said = statements_of(source)
        replies = _accepting(said, known)
        assents = assents_of(said, known, taken={*replies, *replies.values()})
        places = [place for place in range(len(said)) if place not in replies.values()]
        found = [
            line
            for place in places
            if (
                line := _line(said, place, source, known, replies)
                or _agreed(said, place, source, known, assents)
            )
        ]
        return sorted([*_topics(said, source, known), *found], key=lambda line: PARTS.index(line.part))

    def render(self, lines: Sequence[FormLine], source: ScoredText) -> str:
        """Return the parts under their labels; a part without lines is left out."""
        labels = _language(source).labels
        parts = []
        for part in PARTS:
            own = [f"- {line.shown}" for line in lines if line.part == part]
            if own:
                parts.append("\n".join([labels[part], *own]))
        return "\n\n".join(parts)


def _language(source: ScoredText) -> Cues:
    return cues().get(language_of(source.document[:_LETTERS]) or _DEFAULT, cues()[_DEFAULT])


def _accepting(said: Sequence[Statement], known: Cues) -> dict[int, int]:
    """Return the index of each accepted request, with that of the reply that accepts it."""
    found = {}
    for place, statement in enumerate(said):
        text = plain(statement)
        if known.requests.search(text) and not known.idle.search(text):
            reply = reply_to(said, place)
            if reply is not None and known.accepts.search(plain(said[reply])):
                found[place] = reply
    return found


def _line(
    said: Sequence[Statement], place: int, source: ScoredText, known: Cues, replies: Mapping[int, int]
) -> FormLine | None:
    """Return a statement as a line of decisions, actions or questions; None for any other statement.

    Args:
        replies: see `_accepting`.
    """
    statement = plain(said[place])
    if len(statement.split()) < _FEWEST_WORDS or known.is_hollow(statement):
        return None
    if known.open.search(statement) or _stays_open(said, place, known):
        return _shown(said[place], "questions", source)
    owner = said[replies[place]].speaker if place in replies else _owner(said[place], known)
    if owner is not None:
        answer = plain(said[replies[place]]) if place in replies else ""
        return _shown(said[place], "actions", source, owner=owner, due=_due(statement, answer, known))
    if known.decisions.search(statement) and not known.undecided.search(statement):
        return _shown(said[place], "decisions", source)
    return None


def _agreed(
    said: Sequence[Statement], place: int, source: ScoredText, known: Cues, assents: Mapping[int, Assent]
) -> FormLine | None:
    """Return a proposal as a decision, or a task as an action, if an answer without content agrees to it."""
    assent = assents.get(place)
    if assent is None:
        return None
    answer = said[assent.answer]
    if assent.part == "decisions":
        return _shown(said[place], "decisions", source, agreed=answer.speaker)
    return _shown(
        said[place],
        "actions",
        source,
        owner=answer.speaker,
        due=_due(plain(said[place]), plain(answer), known),
    )


def _due(request: str, answer: str, known: Cues) -> str:
    """Return the date that a request or its answer names, "" without one."""
    dates = (each.search(text) for text in (request, answer) for each in known.due)
    return next((found["due"] for found in dates if found), "")


def _owner(statement: Statement, known: Cues) -> str | None:
    """Return who does what a statement promises or assigns, "" if that is unknown; None if it does neither."""
    text = plain(statement)
    if text.endswith("?"):
        return None
    if known.promises.search(text) and not known.idle.search(text):
        return statement.speaker
    for pattern in known.assigned:
        found = pattern.search(text)
        owner = (found["owner"] or "") if found else ""
        if found and owner.lower() not in _NO_OWNERS and not known.undecided.search(text):
            return owner
    return None


def _stays_open(said: Sequence[Statement], place: int, known: Cues) -> bool:
    """Check whether a statement is a question whose reply leaves it open."""
    if not plain(said[place]).endswith("?"):
        return False
    reply = reply_to(said, place)
    return reply is not None and known.unknown.search(plain(said[reply])) is not None


def _topics(said: Sequence[Statement], source: ScoredText, known: Cues) -> list[FormLine]:
    """Return the topics: the headings, else the statements that open one, else the best unit of each topic."""
    sections = sections_of(source)
    if any(section.heading for section in sections):
        lines = [section_line(source, section) for section in sections if section.heading]
        return [_topic(line, line.heading) for line in lines if line is not None and (line.worth or not said)]
    opened = [each for each in said if known.topics.search(plain(each))]
    if opened:
        return [_shown(statement, "topics", source) for statement in opened]
    found = [line for line in (section_line(source, section) for section in sections) if line is not None]
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
    where = statement.time or (f"turn {statement.turn}" if statement.turn else "")
    who = f"{statement.speaker}: " if statement.speaker else ""
    told = (owner and f"owner: {owner}", due and f"due: {due}", agreed and f"agreed: {agreed}")
    facts = [fact for fact in told if fact]
    stamp, known = f"[{where}] " if where else "", f" ({'; '.join(facts)})" if facts else ""
    return FormLine(
        f"{stamp}{who}{statement.text}{known}",
        statement.start,
        statement.stop,
        part=part,
        time=statement.time,
        speaker=statement.speaker,
        turn=statement.turn,
        owner=owner,
        due=due,
        worth=_WORTH[part] + min(source.scores[statement.unit], 0.9),
    )
