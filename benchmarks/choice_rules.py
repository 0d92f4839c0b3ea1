"""Rules that choose the second and later sentences in other ways, compared with the rule of `precis_text.selection`.

    python -m benchmarks.choice_rules --data DIR --cache FOLDER [--model FOLDER] [--limit 60] [--sets NAME ...]

Units and scores are computed once and kept in FOLDER (`benchmarks.scored_units`). The words of a set are those of
`benchmarks.equal_words`. The measure is the mean of ROUGE-1, ROUGE-2 and ROUGE-Lsum. The command prints three tables:

- the words used, and how often the first sentence of LEAD is chosen;
- each rule compared with the current one, over the documents of all sets;
- each domain left out: the rule that is best on the other domains, compared with the current one and the better of LEAD
  and LexRank.

Closed sets are never used to find a rule. Intervals: paired bootstrap over documents, 1,000 samples, seed 0. The scorer
is not trained again without the domain.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.equal_words import MEASURES, ONLY_MEASURED, ROUGE, difference, fitting, lead, statements
from benchmarks.scored_units import Scored, ScoredSet, fill, load
from precis.extract.extractor_opening import open_extractor
from precis.generation.model_location import default_model
from precis_text.central_choice import content_words
from precis_text.centrality import TermCounts, cosines, in_windows, lex_rank
from precis_text.length import make_length, trim
from precis_text.partners import Partners
from precis_text.selection import Dependencies, choose, join_units
from precis_text.unit_worth import worths
from precis_text.units import named_text
from precis_text.words import length_in_words, unicode_words

Floats = NDArray[np.float64]
DOMAINS = {
    "textbooks": "openstax carpentries_keypoints",
    "government": "usgov_posts crs_reports",
    "documentation": "ccby_docs gnome_help gnome_help_de_es_fr_ru govulndb proposals",
    "science": "scitldr science_abstract science_lay open_papers sumpubmed",
    "meetings": "qmsum ami_minutes ethereum_minutes optech_talk",
    "visits": "mts_dialog clinical_talk",
    "mail": "convosumm_email",
    "news": "optech_news optech_news_de_fr_cs monero_posts web_posts opensuse_news cnndm reuters21578",
    "encyclopedia": "klexikon_de dewiki_lead",
    "mixed": "gum",
    "chats": "samsum dialogsum",
}
CLOSED = {each.name for each in ONLY_MEASURED}
SMALL = 40  # words below which a poor unit is not added
FEWEST = 3  # words of a unit after the first
SAME = 0.5  # share of word pairs that may be chosen already


def domain_of(name: str) -> str:
    return next(domain for domain, names in DOMAINS.items() if name in names.split())


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The weights of reasons next to a score in logits, and the share of the word limit to fill.

    Attributes:
        first: weight of LexRank, relative to the highest one, in the choice of the first unit.
        later: the same for all other units.
        early: weight of 1 / sqrt(1 + units before), for the other units.
        covered: weight of the words that a unit adds, each by the log of its number of units.
        redundant: weight of the highest cosine to a chosen unit, subtracted.
        beside: weight of following a chosen unit.
        filled: share of the words after which nothing is added.
        poorest: logits below the first unit that an added one may have, under 40 words.
        prose: whether the weights are 0 in a dialogue.
    """

    first: float = 0.0
    later: float = 0.0
    early: float = 0.0
    covered: float = 0.0
    redundant: float = 0.0
    beside: float = 0.0
    filled: float = 1.0
    poorest: float = 2.0
    prose: bool = False


RULES: dict[str, Rule] = {
    "filled to 100%": Rule(),
    "filled to 85%": Rule(filled=0.85),
    "small limits filled too": Rule(poorest=np.inf),
    "first by LexRank too": Rule(first=1.0),
    "later by LexRank, 0.5": Rule(later=0.5),
    "later by LexRank, 1": Rule(later=1.0),
    "later by LexRank, 2": Rule(later=2.0),
    "later by place, 1": Rule(early=1.0),
    "later by LexRank and place": Rule(later=1.0, early=1.0),
    "coverage, 0.3": Rule(covered=0.3),
    "coverage, 1": Rule(covered=1.0),
    "redundancy, 0.5": Rule(redundant=0.5),
    "redundancy, 1": Rule(redundant=1.0),
    "coverage and redundancy": Rule(covered=0.3, redundant=0.5),
    "beside, 0.3": Rule(beside=0.3),
    "first by LexRank, redundancy": Rule(first=1.0, redundant=0.5),
    "both by LexRank, redundancy": Rule(first=1.0, later=0.5, redundant=0.5),
    "first by LexRank, redundancy, prose": Rule(first=1.0, redundant=0.5, prose=True),
    "both by LexRank, redundancy, prose": Rule(first=1.0, later=0.5, redundant=0.5, prose=True),
    "all": Rule(first=1.0, later=0.5, early=0.5, covered=0.3, redundant=0.5),
}


@dataclass(frozen=True)
class Known:
    """A document with what the rules read of its units."""

    row: Scored
    budget: int
    scored: dict[tuple[int, ...], Floats] = field(default_factory=dict)

    @cached_property
    def partners(self) -> Partners:
        return Partners.of(self.row.units)

    @cached_property
    def sizes(self) -> list[int]:
        return [length_in_words(named_text(unit)) for unit in self.row.units]

    @cached_property
    def costs(self) -> Floats:
        sizes = [
            size + sum(self.sizes[partner] for partner in self.partners.of_group([place]))
            for place, size in enumerate(self.sizes)
        ]
        return np.array(sizes, dtype=np.float64)

    @cached_property
    def worth(self) -> list[float]:
        return worths(
            self.row.units, self.row.scores, self.sizes, self.partners, longer=sum(self.sizes) / self.budget
        )

    @cached_property
    def logits(self) -> Floats:
        worth = np.clip(self.worth, 1e-5, 1 - 1e-5)
        return np.asarray(np.log(worth / (1 - worth)))

    @cached_property
    def depends(self) -> Dependencies:
        return Dependencies.of(self.row.units, self.partners)

    @cached_property
    def told(self) -> list[int]:
        return [place for place, unit in enumerate(self.row.units) if not (unit.heading or unit.aside)]

    @cached_property
    def words(self) -> list[list[str]]:
        found = content_words(self.row.units)
        return [found[place] if place in set(self.told) else [] for place in range(len(found))]

    @cached_property
    def central(self) -> Floats:
        """LexRank, relative to the highest one."""
        found = np.zeros(len(self.row.units))
        found[self.told] = in_windows(lex_rank, [self.words[place] for place in self.told])
        return found / max(float(found.max()), 1e-12)

    @cached_property
    def early(self) -> Floats:
        found = np.zeros(len(self.row.units))
        found[self.told] = 1 / np.sqrt(1 + np.arange(len(self.told)))
        return found

    @cached_property
    def terms(self) -> Floats:
        """(units, terms of several units): the log of 1 + the term's units, relative to the sum over terms."""
        counts = Counter(word for words in self.words for word in set(words))
        column = {word: place for place, word in enumerate(w for w, count in counts.items() if count > 1)}
        found = np.zeros((len(self.words), len(column)))
        for place, words in enumerate(self.words):
            for word in column.keys() & set(words):
                found[place, column[word]] = np.log1p(counts[word])
        return found / max(sum(np.log1p(counts[word]) for word in column), 1.0)

    @cached_property
    def alike(self) -> Floats:
        return cosines(TermCounts.of(self.words))

    @cached_property
    def pairs(self) -> list[set[tuple[str, str]]]:
        words = [unicode_words(unit.text) for unit in self.row.units]
        return [{*pairwise(found)} for found in words]

    def text(self, places: Sequence[int]) -> str:
        cap = make_length(words=self.budget).cap
        return trim(join_units(self.row.document, [self.row.units[p] for p in places]), cap, ended=True).text

    def rouge(self, text: str) -> Floats:
        scores = ROUGE.score([text], [self.row.references])
        return np.array([float(scores[kind][0]) for kind in MEASURES])

    def score(self, places: Sequence[int]) -> Floats:
        """Return the three measures of an extract."""
        key = tuple(places)
        if key not in self.scored:
            self.scored[key] = self.rouge(self.text(places))
        return self.scored[key]


def today(known: Known) -> list[int]:
    """Return the choice of `precis_text.selection`."""
    length = make_length(words=known.budget, short="write")
    return choose(known.row, known.row.scores, length, words=known.row.words)


class _Growing:
    """An extract that grows by a rule."""

    def __init__(self, known: Known, rule: Rule) -> None:
        off = rule.prose and any(unit.speaker for unit in known.row.units)
        self.known, self.rule = known, Rule(filled=rule.filled, poorest=rule.poorest) if off else rule
        self.needs, self.open = known.depends.needs, {*known.depends.free, *known.depends.answers}
        self.chosen: list[int] = []
        self.left = float(known.budget)
        self.seen: set[tuple[str, str]] = set()
        self.alike = np.zeros(len(self.needs))
        self.beside = np.zeros(len(self.needs))
        self.unsaid = np.ones(known.terms.shape[1])
        self.fixed = known.logits + self.rule.later * known.central + self.rule.early * known.early

    def add(self, place: int) -> None:
        known = self.known
        self.chosen.append(place)
        self.left -= known.costs[place]
        self.seen |= known.pairs[place]
        self.open.discard(place)
        for neighbour in (place - 1, place + 1):
            if 0 <= neighbour < len(self.needs) and self.needs[neighbour] == place:
                self.open.add(neighbour)
        self.alike = np.maximum(self.alike, known.alike[place])
        self.unsaid = self.unsaid * (known.terms[place] == 0)
        self.beside[place + 1 : place + 2] = 1

    def first(self) -> int:
        """Return the best unit that fits, or the best one if all that fit are much worse."""
        worth = self.known.logits + self.rule.first * self.known.central
        best = max(self.open, key=lambda place: worth[place])
        fits = [place for place in self.open if self.known.costs[place] <= self.left]
        other = max(fits, key=lambda place: worth[place], default=best)
        return other if worth[other] >= worth[best] + np.log(0.7) else best

    def following(self) -> int | None:
        """Return the next unit, or None if nothing is to be added."""
        known, rule = self.known, self.rule
        if known.budget - self.left >= rule.filled * known.budget:
            return None
        value = self.fixed - rule.redundant * self.alike + rule.beside * self.beside
        if rule.covered:
            value = value + 10 * rule.covered * known.terms @ self.unsaid
        least = known.logits[self.chosen[0]] - (rule.poorest if known.budget < SMALL else np.inf)
        for place in sorted(self.open, key=lambda place: -value[place]):
            if known.costs[place] <= self.left and known.sizes[place] >= FEWEST and not self._is_said(place):
                return place if known.logits[place] >= least else None
        return None

    def _is_said(self, place: int) -> bool:
        pairs = self.known.pairs[place]
        return bool(pairs) and len(pairs & self.seen) > SAME * len(pairs)


def choice(known: Known, rule: Rule) -> list[int]:
    """Return the units that a rule chooses, in order."""
    growing = _Growing(known, rule)
    place: int | None = growing.first()
    while place is not None:
        growing.add(place)
        place = growing.following()
    asked = {known.partners.questions[place] for place in growing.chosen if place in known.partners.questions}
    return sorted({*growing.chosen, *asked})


def by_lex_rank(document: str, words: int) -> str:
    """Return the most central units that fit, without headings."""
    units = statements(document)
    ranks = in_windows(lex_rank, content_words(units))
    return fitting(units, [int(place) for place in np.argsort(-ranks, kind="stable")], words)


def scores_of(
    sets: Mapping[str, Sequence[Known]], chosen: Callable[[Known], Sequence[int]]
) -> dict[str, Floats]:
    """Return (documents, 3) scores of each set."""
    return {name: np.array([known.score(chosen(known)) for known in rows]) for name, rows in sets.items()}


def used(sets: Mapping[str, Sequence[Known]]) -> list[str]:
    """Return the table of words used."""
    lines = [
        "| set | documents | words | today uses | LEAD uses | has LEAD's first sentence |",
        "|" + " --- |" * 6,
    ]
    for name, rows in sets.items():
        ours = [known.text(today(known)) for known in rows]
        firsts = [lead(known.row.document, known.budget) for known in rows]
        rooms = np.array([min(known.budget, length_in_words(known.row.document)) for known in rows])
        shares = [np.mean([length_in_words(text) for text in texts] / rooms) for texts in (ours, firsts)]
        opens = [
            first.split("\n")[0] in text.replace("\n", " ") for first, text in zip(firsts, ours, strict=True)
        ]
        cells = [name, str(len(rows)), str(rows[0].budget), *(f"{100 * share:.0f}%" for share in shares)]
        lines.append(f"| {' | '.join([*cells, f'{100 * np.mean(opens):.0f}%'])} |")
    return lines


def each_rule(now: dict[str, Floats], found: dict[str, dict[str, Floats]]) -> list[str]:
    """Return the table of rules compared with the current one."""
    lines = ["| rule | over today | sets above | sets below |", "|" + " --- |" * 4]
    for name, scores in found.items():
        gains = {key: (scores[key] - now[key]).mean(1) for key in now}
        pooled = np.concatenate([*gains.values()])
        above, below = (sum(sign * own.mean() > 0.05 for own in gains.values()) for sign in (1, -1))
        lines.append(f"| {name} | {difference(pooled, np.zeros_like(pooled))} | {above} | {below} |")
    return lines


def left_out(
    now: dict[str, Floats], found: dict[str, dict[str, Floats]], simple: dict[str, dict[str, Floats]]
) -> list[str]:
    """Return the table of the rules that are found on the other domains."""
    lines = [
        "| set | rule found on other domains | over today | over the better simple choice |",
        "|" + " --- |" * 4,
    ]
    gains, margins = [], []
    for name in now:
        others = [key for key in now if domain_of(key) != domain_of(name) and key not in CLOSED]

        def gain(rule: str, others: Sequence[str] = tuple(others)) -> float:
            return float(np.concatenate([(found[rule][key] - now[key]).mean(1) for key in others]).mean())

        best = max(found, key=gain)
        rival = max(simple, key=lambda each, name=name: float(simple[each][name].mean()))  # type: ignore[misc]
        own, theirs = found[best][name].mean(1), simple[rival][name].mean(1)
        gains.append(own - now[name].mean(1))
        margins.append(own - theirs)
        cells = [name, best, difference(own, now[name].mean(1)), f"{difference(own, theirs)} {rival}"]
        lines.append(f"| {' | '.join(cells)} |")
    pooled = [difference(each := np.concatenate(all_), np.zeros_like(each)) for all_ in (gains, margins)]
    return [*lines, f"| all | | {pooled[0]} | {pooled[1]} |"]


def known_sets(sets: Sequence[ScoredSet]) -> dict[str, list[Known]]:
    return {each.name: [Known(row, each.budget) for row in each.rows] for each in sets}


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--sets", nargs="*", default=(), metavar="NAME")
    asked = parser.parse_args()
    extractor = open_extractor(asked.model or default_model())
    fill(asked.cache, asked.data, extractor, limit=asked.limit, only=asked.sets)
    sets = known_sets(load(asked.cache, asked.sets))
    now = scores_of(sets, today)
    found = {
        name: scores_of(sets, lambda known, rule=rule: choice(known, rule))  # type: ignore[misc]
        for name, rule in RULES.items()
    }
    simple = {
        name: {
            key: np.array([k.rouge(system(k.row.document, k.budget)) for k in rows])
            for key, rows in sets.items()
        }
        for name, system in (("LEAD", lead), ("LexRank", by_lex_rank))
    }
    for table in (used(sets), each_rule(now, found), left_out(now, found, simple)):
        print(*table, "", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
