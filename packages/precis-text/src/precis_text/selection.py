"""Chooses the units of an extract by their scores, without a model or torch."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Protocol

from precis_text.back_references import has_back_reference
from precis_text.cohesion import formalities, goes_on, halves, is_part, needs_next
from precis_text.decided_items import decided_words
from precis_text.exchanges import is_courtesy, only_asks
from precis_text.length import Cap, Length, Sentences, Tokens, Words
from precis_text.partners import Partners
from precis_text.sentences import split_sentences
from precis_text.standalone import Readability
from precis_text.unit_worth import read_worth, worths
from precis_text.units import ENDED, TextUnit, as_shown, named_text, without_item_mark
from precis_text.words import length_in_words, unicode_words

_SAME = 0.3  # largest share of a unit's word pairs that chosen units may contain
_SAME_MOTION = 0.8  # the same for motions
_HALF = 0.5  # least worth that may fill the remaining room, relative to the unit that did not fit or the best
_USED = 0.85  # least share of a cap in words or tokens that is used, if the document has it
# Words and tokens of a cap below which a poor unit costs more than room that stays unused; in talks
_SMALL, _SMALL_SPOKEN = (40, 56), (20, 28)
_NEARLY = 0.7  # least worth that may replace the best unit, relative to it, if that one does not fit
_JUNK = 0.05  # least worth that fills a cap with messages of a conversation, relative to the best
_AGAIN = 64  # best groups that are read again after each choice
_FEWEST, _FRAGMENT = 3, 5  # fewest words of a unit that is not alone, and of a fragment that fills a cap
_IN_TURN = 1.5  # factor on the score of a unit next to a chosen one of the same speaker
_PAIRED = 0.8  # factor on the score of a sentence that is chosen together with the one that it points to
_ALONE = 0.79  # the same for one that answers a question, without that other one
TOGETHER = 8192  # maximum tokens of an input; more would cost too much memory for the scores of global layers
WINDOW = 1024  # units scored together
# Factor on the expected words: a mean of logs is below the log of the mean, and too long costs less than too short.
_GENEROUS = 1.25
_LONGEST = 400  # maximum words of an extract without a requested length


class Units(Protocol):
    """A document's units and the number of tokens in each."""

    @property
    def units(self) -> Sequence[TextUnit]: ...

    @property
    def tokens(self) -> Sequence[int]: ...


def expected_words(logs: Sequence[float]) -> float:
    """Return the words of an extract without a limit, from the scorer's log of the words for each window."""
    return min(_LONGEST, _GENEROUS * math.exp(max(logs)))


def most_words(units: Sequence[TextUnit], words: float) -> float:
    """Return the words of an extract without a limit: at most half of a conversation; its turns may lack full stops."""
    sizes = [(length_in_words(unit.text), bool(unit.speaker)) for unit in units]
    half = sum(size for size, _ in sizes) / 2
    return min(words, half) if sum(size for size, is_said in sizes if is_said) > half else words


def inputs_of(rows: Sequence[Sequence[int]], room: int) -> Iterator[list[Sequence[int]]]:
    """Yield the units in inputs of at most `room` tokens; truncate longer units."""
    piece: list[Sequence[int]] = []
    for row in rows:
        if piece and sum(map(len, piece)) + len(row) > room:
            yield piece
            piece = []
        piece.append(row[:room])
    if piece:
        yield piece


def choose(read: Units, scores: Sequence[float], length: Length, *, words: float) -> list[int]:
    """Return the indices of the units of highest worth that fit, in order; at least one.

    `Dependencies` says what is never chosen, and what only after a neighbour or together with it. A unit is worth the
    more, the more readers understand it after the chosen units before it (`standalone`). A decision that answers is
    chosen together with its question, a turn that ends with a question with its short answer, and a motion with the
    vote on it (`partners`). A unit is skipped if many of its word pairs are chosen already (a motion: most), if it has
    only one or two words, or if it does not fit. Units with at least half the worth may replace it (0.7 of it while
    nothing is chosen). Beyond `words`, units with at least half the worth of the best fill a cap. A cap of at least 40
    words or 56 tokens, or half of that in talks, is then filled with the best of the others until 85% of it are used,
    if the document has that many. Messages with less than 5% of the best worth stay out, and fragments of fewer than
    five words. If no unit fits, the best one is chosen and the caller truncates it.

    Args:
        scores: one for each unit, 0 to 1.
        words: the length of the extract without a cap.
    """
    partners = Partners.of(read.units)
    sizes = [length_in_words(named_text(replace(unit, text=as_shown(unit)))) for unit in read.units]
    costs = _costs(read, sizes, length.cap)
    words += decided_words(read.units, sizes)
    limit = words if length.cap is None else length.cap.count
    worth = worths(read.units, scores, sizes, partners, longer=sum(costs) / limit)
    waiting = _Waiting(read.units, worth, partners, asked_words=limit * sum(sizes) / sum(costs))
    extract = _Extract(read.units, sizes, costs, partners)
    passed: dict[int, float] = {}
    least = 0.0
    for value, group in waiting:
        place, new = group[-1], extract.without_chosen(group)
        over = extract.spent + extract.cost(new) - limit
        if not new or extract.repeats(place) or (extract.chosen and extract.size(place) < _FEWEST):
            continue
        if len(new) > 1 and ((over > 0 and (length.cap or extract.chosen)) or value < least):
            continue
        if value < least or (length.cap is not None and over > 0):
            passed[place] = max(value, passed.get(place, 0.0))
            least = max(least, value * (_HALF if extract.chosen else _NEARLY))  # for its replacement
        elif extract.chosen and over > limit - extract.spent and extract.written >= length.min_words:
            break  # with it, the length would be farther from the target
        else:
            waiting.choose(extract.add(new))
            if _may_end(length, extract.written, extract.spent, words):
                least = max(least, _HALF * waiting.most)
    is_spoken = any(unit.speaker for unit in read.units)
    if extract.chosen and _is_filled(length.cap, is_spoken=is_spoken):
        waiting.put_back(passed)
        _fill(extract, waiting, limit, least=_JUNK * waiting.most if is_spoken else 0.0)
    return sorted(extract.chosen or [waiting.best])


def _is_filled(cap: Cap | None, *, is_spoken: bool) -> bool:
    """Return whether poorer units fill what is left of a cap: one in words or tokens that is not small."""
    words, tokens = _SMALL_SPOKEN if is_spoken else _SMALL
    if isinstance(cap, Words):
        return cap.count >= words
    return isinstance(cap, Tokens) and cap.count >= tokens


class _Extract:
    """The units chosen so far, with what they cost and say."""

    def __init__(
        self, units: Sequence[TextUnit], sizes: Sequence[int], costs: Sequence[int], partners: Partners
    ) -> None:
        self.chosen: list[int] = []
        self.spent = self.written = 0
        self._units, self._sizes, self._costs, self._partners = units, sizes, costs, partners
        self._seen: set[tuple[str, str]] = set()

    def repeats(self, place: int) -> bool:
        """Return whether many word pairs of a unit are chosen already; most pairs, if it is a motion like others."""
        pairs, is_motion = self._pairs(place), place in self._partners.votes
        return len(pairs & self._seen) > (_SAME_MOTION if is_motion else _SAME) * len(pairs)

    def may_fill(self, place: int) -> bool:
        unit = self._units[place]
        return self.size(place) >= (_FEWEST if unit.speaker or ENDED.search(unit.text) else _FRAGMENT)

    def size(self, place: int) -> int:
        """Return the words of a unit with its partners."""
        return sum(self._sizes[each] for each in self._with_partners([place]))

    def cost(self, group: Sequence[int]) -> int:
        """Return what the units of a group cost, with their partners."""
        return sum(self._costs[place] for place in self._with_partners(group))

    def without_chosen(self, group: Sequence[int]) -> list[int]:
        """Return the units of a group that are not chosen yet."""
        return [place for place in group if place not in self.chosen]

    def add(self, group: Sequence[int]) -> list[int]:
        """Choose a group with its partners, and return all of them."""
        added = self.without_chosen(self._with_partners(group))
        for place in added:
            self.chosen.append(place)
            self.spent += self._costs[place]
            self.written += self._sizes[place]
            self._seen |= self._pairs(place)
        return added

    def _with_partners(self, group: Sequence[int]) -> list[int]:
        return [*dict.fromkeys([*group, *self.without_chosen(self._partners.of_group(group))])]

    def _pairs(self, place: int) -> set[tuple[str, str]]:
        return set(pairwise(unicode_words(self._units[place].text)))


def _fill(extract: _Extract, waiting: _Waiting, limit: float, *, least: float) -> None:
    """Add the best units that fit, until enough of a cap is used or no unit has the least worth."""
    for value, group in waiting:
        if extract.spent >= _USED * limit or value < least:
            return
        place, new = group[-1], extract.without_chosen(group)
        fits = extract.spent + extract.cost(new) <= limit
        if new and fits and extract.may_fill(place) and not extract.repeats(place):
            waiting.choose(extract.add(new))


def _may_end(length: Length, written: int, spent: int, words: float) -> bool:
    """Return whether an extract is long enough: it has the expected words and half of the cap.

    A cap in sentences is always filled.
    """
    if not isinstance(length.cap, Words | Tokens):
        return False
    return written >= max(words, length.min_words) and 2 * spent >= length.cap.count


@dataclass(frozen=True)
class Dependencies:
    """The units of a document that may be chosen, and the neighbours that they need.

    Attributes:
        free: the places of units that need no other one; at least one.
        answers: those of units that answer a question, and so may be chosen without what they need.
        needs: for each unit, the neighbour without which it says nothing. Its own place says that it comes only
            together with the unit before it or never, None that it needs none or is never chosen.
    """

    free: frozenset[int]
    answers: frozenset[int]
    needs: Sequence[int | None]

    @classmethod
    def of(cls, units: Sequence[TextUnit], partners: Partners) -> Dependencies:
        """Return the dependencies in a document.

        Headings, asides, courtesies, formalities, halves and parts of units are never chosen while it has others.
        """
        small, formal, asked = halves(units), formalities(units), {*partners.questions.values()}
        follows = [False, *(goes_on(before, unit) for before, unit in pairwise(units))]
        is_out = [
            unit.heading or unit.aside or is_part(unit) or formal[place] or (small[place] and not follows[place])
            or is_courtesy(unit) or (place in asked and only_asks(unit))
            for place, unit in enumerate(units)
        ]  # fmt: skip
        is_written = any(ENDED.search(unit.text) for unit in units)  # speech has no full stops
        refers = [
            place > 0 and (has_back_reference(unit.text) or (is_written and follows[place]))
            for place, unit in enumerate(units)
        ]
        cut = [is_written and half and on for half, on in zip(small, follows, strict=True)]
        is_open = [on or needs_next(unit) for on, unit in zip([*cut[1:], False], units, strict=True)]
        needs = [None if out else _needed(place, refers, is_open, is_out) for place, out in enumerate(is_out)]
        answers = frozenset(place for place, unit in enumerate(units) if unit.answers and not is_out[place])
        free = [place for place, need in enumerate(needs) if need is None and not is_out[place]]
        if not free:  # then all units that say something, or all except headings, or all
            needs = [None] * len(units)
            untitled = [place for place, unit in enumerate(units) if not unit.heading]
            told = [place for place in untitled if not units[place].aside]
            free = told or untitled or [*range(len(units))]
        return cls(frozenset(free), answers, needs)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The units that refer back, each behind the one before it, which may be chosen."""
        return [
            (before, place)
            for before, place in pairwise(range(len(self.needs)))
            if self.needs[place] == before and (before in self.free or self.needs[before] == before)
        ]


def _needed(
    place: int, refers: Sequence[bool], is_open: Sequence[bool], is_out: Sequence[bool]
) -> int | None:
    """Return the neighbour without which a unit says nothing, or None; see `Dependencies.needs`.

    Args:
        refers: for each unit, whether it refers to the one before it.
        is_open: for each unit, whether the next one continues what it announces or begins.
        is_out: for each unit, whether it is never chosen.
    """
    if not is_open[place]:
        return place - 1 if refers[place] else None
    following = place + 1
    is_last = following == len(is_out) or is_out[following] or refers[following]
    return place if is_last or refers[place] else following


class _Waiting:
    """Queue of candidate groups of units, best first.

    A group is a unit, or a unit that points back with the one before it. A unit that depends on a neighbour joins
    as a group of its own once that is chosen. What the summary has so far changes the worth of the groups.

    Args:
        worth: the worth of each unit to a person who knows the document.
        asked_words: the length of the summary in words.
    """

    def __init__(
        self, units: Sequence[TextUnit], worth: Sequence[float], partners: Partners, *, asked_words: float
    ) -> None:
        self._worth, self._partners, self._asked_words = worth, partners, asked_words
        self._speakers = [unit.speaker for unit in units]
        self._readability = Readability(units)
        self._chosen: list[int] = []
        self._depends = depends = Dependencies.of(units, partners)
        self._unread: dict[tuple[int, ...], float] = {
            **{(place,): _ALONE * worth[place] for place in depends.answers},
            **{(place,): worth[place] for place in depends.free},
            **{(before, place): _PAIRED * worth[place] for before, place in depends.pairs},
        }
        self._heap = self._valued([*self._unread])
        self._best = sorted((value, group[0]) for value, group in self._heap if group[0] in depends.free)
        self.most = -self._best[0][0]
        heapify(self._heap)

    def __iter__(self) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Yield the worth and the places of each group, best first, and remove it."""
        while self._heap:
            value, group = heappop(self._heap)
            yield -value, group

    @property
    def best(self) -> int:
        """The place of the best unit, of one without a vote that belongs to it if there is one."""
        alone = (place for _, place in self._best if place not in self._partners.votes)
        return next(alone, self._best[0][1])

    def put_back(self, passed: Mapping[int, float]) -> None:
        """Let units wait again, with their worth, that were removed and not chosen.

        The second unit of a pair may be one of them only behind a chosen first one: then `choose` released it.
        """
        for place, value in passed.items():
            heappush(self._heap, (-value, (place,)))

    def choose(self, group: Sequence[int]) -> None:
        """Record that units were chosen, release their neighbours that depend on them, and read the best groups again.

        A neighbour of the same speaker waits with a higher worth: a turn says more than its pieces.
        """
        again = {heappop(self._heap)[1] for _ in range(min(_AGAIN, len(self._heap)))}
        for place in group:
            insort(self._chosen, place)
            for neighbour in (place - 1, place + 1):
                if not 0 <= neighbour < len(self._worth):
                    continue
                in_turn = self._speakers[neighbour] == self._speakers[place] != ""
                if self._depends.needs[neighbour] == place:
                    self._unread[neighbour,] = self._worth[neighbour]
                elif neighbour not in self._depends.free:
                    continue
                elif in_turn:
                    self._unread[neighbour,] = _IN_TURN * self._worth[neighbour]
                again.add((neighbour,))
        for entry in self._valued(sorted(again)):
            heappush(self._heap, entry)

    def _valued(self, groups: Sequence[tuple[int, ...]]) -> list[tuple[float, tuple[int, ...]]]:
        """Return entries of the queue: a group is read as well as its unit that fewest readers understand."""
        asked = [
            (place, (*group, self._partners.questions.get(place, place)))
            for group in groups
            for place in group
        ]
        shares = iter(self._readability.shares(asked, self._chosen))
        return [(-self._read_worth(group, min(next(shares) for _ in group)), group) for group in groups]

    def _read_worth(self, group: tuple[int, ...], share: float) -> float:
        is_spoken = bool(self._speakers[group[0]])
        if self._depends.answers.intersection(group):
            share = 1.0  # the question says what it speaks of
        return read_worth(self._unread[group], share, asked_words=self._asked_words, is_spoken=is_spoken)


def _costs(read: Units, words: Sequence[int], cap: Cap | None) -> Sequence[int]:
    """Return each unit's cost in the cap's measure."""
    if isinstance(cap, Sentences):
        return [len(split_sentences(as_shown(unit))) for unit in read.units]
    return read.tokens if isinstance(cap, Tokens) else words


def join_units(document: str, units: Sequence[TextUnit]) -> str:
    """Return units as one text: a line break between different lines, else the document's white space.

    The first sentence from a speaker's turn names the speaker.
    """
    text = ""
    for before, unit, shown in zip([None, *units[:-1]], units, shown_texts(units), strict=True):
        if before is None:
            between = ""
        elif "\n" in document[before.stop : unit.start]:
            between = "\n"
        elif before.text[-1:].isalnum() and document[before.stop : unit.start].strip():
            between = "\n"  # pieces of speech without full stops, with others left out between them
        else:  # Chinese and Japanese have no spaces between sentences; elsewhere one may be missing
            is_apart = document[unit.start - 1].isspace() or before.text.endswith((".", "!", "?"))
            between = " " if is_apart else ""
        text += between + shown
    return text


def shown_texts(units: Sequence[TextUnit]) -> list[str]:
    """Return the text of each unit as a summary shows it.

    It has the speaker, if the unit before it has another one, and not what only opens it. An item of a list has its
    mark only next to another item.
    """
    units = [replace(unit, text=as_shown(unit)) for unit in units]
    bare = [without_item_mark(unit.text) for unit in units]
    items = [False, *(text != unit.text for text, unit in zip(bare, units, strict=True)), False]
    texts = []
    for place, (unit, speaker) in enumerate(
        zip(units, ["", *(unit.speaker for unit in units)], strict=False)
    ):
        if unit.speaker != speaker:
            texts.append(named_text(unit))
        else:
            texts.append(unit.text if items[place] or items[place + 2] else bare[place])
    return texts
