"""The project's own small corpus: short reports and dialogues in plain English, each with a faithful summary.

A *scenario* (a road accident, a postponed dinner) draws its facts and states them in varying order and wording. It
mixes in side remarks with similar names and numbers. The summary is written only from the facts, often in other words
than the document. Its wording depends on the opening of the text. So a model has to find the facts, copy unseen names
and numbers, rephrase, and omit the rest. When plans change, it has to keep the final one. Scenarios are data: the files
in ``scenarios/`` define the stories in the language of ``grammar``, and ``words`` makes the names. To add a story,
write a section next to similar ones.

The corpus is fiction: people, places, companies and events are invented. It is far simpler than human text. A score on
it shows that a model learns, not that it summarizes well.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

from precis.data.pairs.pair import Pair
from precis.data.synthetic.grammar import Frame, Scenario, ScenarioFile, Story, read_scenarios
from precis.data.synthetic.names_and_numbers import choose
from precis_text.errors import UserError

Kind = Literal["mixed", "report", "dialogue"]

Told = Sequence[tuple[Scenario, Sequence[Frame]]]
"""Scenarios, each with general side remarks that fit it in addition to its own."""


@cache
def reports() -> Told:
    """Return all scenarios of reports."""
    shared = read_scenarios("reports")
    news = read_scenarios("news", shared)
    return _told(
        news,
        read_scenarios("incidents", news),
        read_scenarios("notices", shared),
        read_scenarios("notes", shared),
    )


@cache
def dialogues() -> Told:
    """Return all scenarios of dialogues."""
    plans = read_scenarios("plans")
    return _told(plans, read_scenarios("chats", plans), read_scenarios("errands", plans))


def _told(*files: ScenarioFile) -> Told:
    return [(each, file.remarks) for file in files for each in file.scenarios]


OPTIONAL_FACT_RATE = 0.5
REPLACED_FACT_RATE = 0.5
HOOK_RATE = 0.5  # share of reports that open off topic
CLOSE_RATE = 0.4
ASIDE_COUNTS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 8)  # side remarks of a report; all entries are equally likely
DIGRESSION_COUNTS = (0, 0, 1, 1, 1, 2)  # side remarks of a dialogue
GENERAL_REMARK_RATE = 0.35  # share of side remarks that are not the scenario's own
DISORDER = 2.5  # most places that a fact may move from its order in the scenario
MOST_TURNS = 14


def make_pairs(count: int, *, seed: int, kind: Kind = "mixed") -> Iterator[Pair]:
    """Make the first ``count`` pairs of the corpus ``seed``; pair i is the same for any count.

    "mixed" alternates reports and dialogues.

    Raises:
        UserError: the count is negative or the kind is unknown.
    """
    if count < 0:
        raise UserError(f"count={count} pairs cannot be made; use 0 or more")
    if kind not in ("mixed", "report", "dialogue"):
        raise UserError(f"kind={kind!r} is unknown; use 'mixed', 'report' or 'dialogue'")
    return (make_pair(index, seed=seed, kind=kind) for index in range(count))


def make_pair(index: int, *, seed: int, kind: Kind = "mixed") -> Pair:
    """Make pair ``index`` of the corpus ``seed``, as a pure function of the arguments."""
    rng = random.Random(f"{seed}:{index}")
    chosen = ("report", "dialogue")[index % 2] if kind == "mixed" else kind
    scenarios, notify = (reports(), tell_report) if chosen == "report" else (dialogues(), tell_dialogue)
    scenario, remarks = choose(rng, scenarios)
    story, leads = Story(scenario, rng), scenario.frames["lead"]
    variant = int(rng.random() * len(leads))
    _choose_facts(scenario, story, told=leads[variant].tells)
    document = notify(scenario, story, leads[variant], remarks)
    story.complete()
    summaries = scenario.frames["summary"]
    summary = polish(story.write(summaries[variant % len(summaries)]))
    return Pair(document=document, summary=summary, id=f"{chosen}-{index:06d}")


def tell_report(scenario: Scenario, story: Story, lead: Frame, remarks: Sequence[Frame]) -> str:
    """Write a report in one paragraph."""
    rng, frames = story.rng, scenario.frames
    facts = [fact for fact in scenario.facts if fact in story.facts and fact not in lead.tells]
    places = [place + DISORDER * rng.random() for place in range(len(facts))]
    body = [story.write(choose(rng, frames[fact])) for _, fact in sorted(zip(places, facts, strict=True))]
    opening = [story.write(lead)]
    if rng.random() < HOOK_RATE:
        opening.insert(0, story.write(choose(rng, frames["hook"])))
    for remark in _remarks(rng, frames["aside"], remarks, ASIDE_COUNTS):
        body.insert(int(rng.random() * (len(body) + 1)), story.write(remark))
    if rng.random() < CLOSE_RATE:
        body.append(story.write(choose(rng, frames["close"])))
    return polish(" ".join([*opening, *body]))


def tell_dialogue(scenario: Scenario, story: Story, lead: Frame, remarks: Sequence[Frame]) -> str:
    """Write a dialogue, one turn per line."""
    rng, frames = story.rng, scenario.frames
    beats = [lead, *(choose(rng, frames[fact]) for fact in scenario.facts if fact in story.facts)]
    turns = [story.write(beat).split("\n") for beat in beats]
    for remark in _remarks(rng, frames["aside"], remarks, DIGRESSION_COUNTS):
        digression = story.write(remark).split("\n")
        if sum(map(len, turns)) + len(digression) <= MOST_TURNS:
            turns.insert(1 + int(rng.random() * len(turns)), digression)
    if rng.random() < CLOSE_RATE and sum(map(len, turns)) + 2 <= MOST_TURNS:
        turns.append(story.write(choose(rng, frames["close"])).split("\n"))
    hasty: dict[str, bool] = {}
    return "\n".join(_turn(line, story, hasty) for beat in turns for line in beat)


def _choose_facts(scenario: Scenario, story: Story, *, told: Sequence[str]) -> None:
    chance = story.rng.random
    for fact in scenario.facts:
        replaced = scenario.instead.get(fact)
        needed = scenario.optional.get(fact)
        if replaced is not None:
            if replaced not in told and chance() < REPLACED_FACT_RATE:
                story.facts.remove(replaced)
                story.facts.add(fact)
        elif (
            needed is None or fact in told or (chance() < OPTIONAL_FACT_RATE and needed in ("", *story.facts))
        ):
            story.facts.add(fact)


def _remarks(
    rng: random.Random, own: Sequence[Frame], general: Sequence[Frame], counts: Sequence[int]
) -> list[Frame]:
    """Choose different side remarks: most from the scenario's own, some from the general ones."""
    count = choose(rng, counts)
    foreign = min(len(general), sum(rng.random() < GENERAL_REMARK_RATE for _ in range(count)))
    return rng.sample(own, min(len(own), count - foreign)) + rng.sample(general, foreign)


_ARTICLE = re.compile(r"\b([Aa])n? (?=(\"?[\w]+))")
_VOWEL_SOUND = re.compile(
    r"\"?(?:(?!uni|use|usu|eu|one\b|once)[aeiou]|hour|honest|8|11\b|18\b)", re.IGNORECASE
)
_SENTENCE_START = re.compile(r"(?:^|(?<=[.!?] ))[a-z]")
_SPACES = re.compile(r"  +| (?=[.,;!?](?:\s|$))")


def polish(text: str) -> str:
    """Choose "a" or "an" by the next word, remove extra spaces, and capitalize sentence starts."""
    text = _SPACES.sub(lambda match: " " if len(match.group()) > 1 else "", text)
    text = _ARTICLE.sub(_article, text)
    return _SENTENCE_START.sub(lambda match: match.group().upper(), text.strip())


def _article(match: re.Match[str]) -> str:
    return match.group(1) + ("n " if _VOWEL_SOUND.match(match.group(2)) else " ")


HASTY: Mapping[str, str] = {
    "want to": "wanna", "thanks": "thx", "please": "pls", "tomorrow": "tmrw", "because": "cos",
    "yes": "yep", "okay": "ok", "you": "u", "you're": "ur", "really": "rly", "about": "abt", "don't": "dont",
    "can't": "cant", "haven't": "havent", "thank you": "thx", "great": "gr8", "your": "ur", "sorry": "sry",
}  # fmt: skip
"""Spellings of speakers who type fast."""

HASTY_RATE = 0.2
_HASTY_WORDS = re.compile(rf"\b(?:{'|'.join(sorted(HASTY, key=len, reverse=True))})\b", re.IGNORECASE)
_FIRST_WORD = re.compile(r"\w+")


def _turn(line: str, story: Story, hasty: dict[str, bool]) -> str:
    """Write one turn in its speaker's style, which is chosen at the speaker's first turn."""
    name, _, said = line.partition(": ")
    if name not in hasty:
        hasty[name] = story.rng.random() < HASTY_RATE
    said = polish(said)
    if not hasty[name]:
        return f"{name}: {said}"
    first = _FIRST_WORD.match(said)
    if first is not None and not story.names(first.group()):
        said = said[0].lower() + said[1:]
    said = _HASTY_WORDS.sub(lambda match: HASTY[match.group().lower()], said)
    return f"{name}: {said if said.endswith('..') else said.removesuffix('.')}"
