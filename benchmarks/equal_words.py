"""A model that chooses sentences, compared with other extractive systems at the same number of words.

    python -m benchmarks.default_model --equal-words --data DIR [--model FOLDER] [--limit 80] [--sets NAME ...]
        [--cache FOLDER]

The words of a set are the mean of its references, times 1.15. Every system gets the same units without headings, and
takes them in its own order as long as they fit; lede reads the text itself. LEAD takes the first units. LexRank,
TextRank, Luhn, LSA and SumBasic are sumy's, with its English stop words and stemmer. They are installed with
`pip install --group benchmarks`. Printed are for each set ROUGE-1, ROUGE-2 and ROUGE-Lsum of each system, and the
difference to the best other one of that measure. Intervals: 95%, paired bootstrap over documents, 1,000 samples, seed
0. Then: the share of the words that were used, and for documents of 2,000 words or more the tenth in which each chosen
sentence is. With --cache the texts of the other systems are kept, since they do not depend on the model.
"""

import hashlib
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from precis.evaluation.rouge import Rouge
from precis.extract.extractor import Extractor
from precis.generation.summarizer import Summary
from precis_experiments.open_sets import EXTENSIONS, SETS, OpenSet, pairs_of
from precis_text.errors import UserError
from precis_text.length import cut_at
from precis_text.units import TextUnit, extraction_units
from precis_text.words import length_in_words, unicode_words

ONLY_MEASURED = tuple(
    replace(SETS[0], name=name, place=name, licence="not open")
    for name in ("cnndm", "reuters21578", "sumpubmed", "samsum", "dialogsum")
)
"""Sets on which nothing may be trained."""
GENEROUS = 1.15  # words of a summary, relative to the mean of the references
MEASURES = ("rouge1", "rouge2", "rougeLsum")
ROUGE = Rouge(types=MEASURES)
LONG = 2000  # words of a document whose tenths are counted
SUMY = {
    "LexRank": "lex_rank.LexRankSummarizer",
    "TextRank": "text_rank.TextRankSummarizer",
    "Luhn": "luhn.LuhnSummarizer",
    "LSA": "lsa.LsaSummarizer",
    "SumBasic": "sum_basic.SumBasicSummarizer",
}
System = Callable[[str, int], str]


def difference(ours: ArrayLike, theirs: ArrayLike) -> str:
    """Return the mean difference with its interval."""
    each = np.array(ours) - np.array(theirs)
    rng = np.random.default_rng(0)
    means = each[rng.integers(len(each), size=(1000, len(each)))].mean(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{each.mean():+.1f} ({low:+.1f} to {high:+.1f})"


def statements(document: str) -> list[TextUnit]:
    """Return the units that are not headings, or all if there are only headings."""
    units = extraction_units(document)
    return [unit for unit in units if not unit.heading] or units


def fitting(units: Sequence[TextUnit], order: Sequence[int], words: int) -> str:
    """Return the units that fit, in the document's order; the beginning of the first one if it is too long."""
    chosen: list[int] = []
    left = words
    for place in order:
        if (size := length_in_words(units[place].text)) <= left:
            chosen.append(place)
            left -= size
    if not chosen:
        return cut_at(units[order[0]].text, words)
    return "\n".join(units[place].text for place in sorted(chosen))


def lead(document: str, words: int) -> str:
    """Return the first units, until one does not fit."""
    units = statements(document)
    sizes = np.cumsum([length_in_words(unit.text) for unit in units])
    fits = max(1, int((sizes <= words).sum()))
    return cut_at("\n".join(unit.text for unit in units[:fits]), words)


@dataclass(frozen=True)
class _Words:
    """The part of a tokenizer that sumy uses."""

    def to_words(self, text: str) -> tuple[str, ...]:
        return tuple(unicode_words(text))


def of_sumy(kind: str) -> System:
    """Build one of sumy's systems, on our units."""
    module, name = SUMY[kind].split(".")
    dom: Any = import_module("sumy.models.dom")
    summarizer = getattr(import_module(f"sumy.summarizers.{module}"), name)(
        import_module("sumy.nlp.stemmers").Stemmer("english")
    )
    summarizer.stop_words = import_module("sumy.utils").get_stop_words("english")

    def summarize(document: str, words: int) -> str:
        units = statements(document)
        text = dom.ObjectDocumentModel([dom.Paragraph([dom.Sentence(unit.text, _Words()) for unit in units])])
        order: list[int] = []

        def take(ranked: Sequence[Any]) -> Sequence[Any]:
            order.extend(each.order for each in ranked)
            return ranked

        try:
            summarizer(text, take)
        except np.linalg.LinAlgError as error:  # LSA's decomposition may not converge
            print(f"{kind}: {error}; the document's own order counts", file=sys.stderr)
        return fitting(units, order or [*range(len(units))], words)

    return summarize


def of_lede(document: str, words: int) -> str:
    """Return the longest text that lede gives within the words."""
    lede: Any = import_module("lede")
    for characters in range(9 * words, 3 * words, -max(1, words // 4)):
        text = str(lede.summarize(document, characters).summary)
        if length_in_words(text) <= words:
            return text
    return cut_at(text, words)


def systems() -> dict[str, System]:
    """Return all other systems.

    Raises:
        UserError: sumy or lede is not installed.
    """
    try:
        import_module("lede")
        return {"LEAD": lead, **{kind: of_sumy(kind) for kind in SUMY}, "lede": of_lede}
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: run `pip install --group benchmarks`") from error


def cached(name: str, system: System, folder: Path) -> System:
    """Return a system whose texts are kept in a file, by a digest of the document, its units and the words."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    known: dict[str, str] = dict(map(json.loads, lines))

    def summarize(document: str, words: int) -> str:
        read = json.dumps([document, [unit.text for unit in statements(document)], words])
        key = hashlib.sha256(read.encode()).hexdigest()
        if key not in known:
            known[key] = system(document, words)
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps([key, known[key]]) + "\n")
        return known[key]

    return summarize


def tenths(documents: Sequence[str], summaries: Sequence[Summary]) -> list[float]:
    """Return the percent of the chosen units in each tenth of their documents, for long documents."""
    counts = np.zeros(10)
    for document, summary in zip(documents, summaries, strict=True):
        if length_in_words(document) >= LONG:
            for start, _ in summary.places:
                counts[min(9, 10 * start // max(len(document), 1))] += 1
    return [float(share) for share in 100 * counts / max(counts.sum(), 1)]


def measure(
    chosen: OpenSet, extractor: Extractor, others: dict[str, System], data: Path, limit: int
) -> tuple[str, str]:
    """Return a row of the table of scores, and one of the table of lengths and places."""
    rows = list(pairs_of(chosen, data / chosen.place, "dev"))
    random.Random(0).shuffle(rows)
    documents = [str(row["document"]) for row in rows[:limit]]
    references = [row["summaries"] for row in rows[:limit]]
    words = round(GENEROUS * float(np.mean([length_in_words(text) for own in references for text in own])))
    ours = extractor.summarize(documents, words=words, short="write")
    texts = {"ours": [summary.text for summary in ours]}
    texts |= {name: [system(document, words) for document in documents] for name, system in others.items()}
    scores = {name: ROUGE.score(found, references) for name, found in texts.items()}
    cells = ["/".join(f"{found[kind].mean():.1f}" for kind in MEASURES) for found in scores.values()]
    for kind in MEASURES:
        best = max(others, key=lambda name: float(scores[name][kind].mean()))
        cells.append(f"{difference(scores['ours'][kind], scores[best][kind])} {best}")
    rooms = [min(words, length_in_words(document)) for document in documents]
    used = np.mean([length_in_words(each.text) / room for each, room in zip(ours, rooms, strict=True)])
    places = " ".join(f"{share:.0f}" for share in tenths(documents, ours))
    scored = " | ".join([chosen.name, str(len(documents)), str(words), *cells])
    return f"| {scored} |", f"| {chosen.name} | {100 * used:.0f}% | {places} |"


def tables(
    extractor: Extractor,
    data: Path,
    *,
    limit: int,
    only: Sequence[str] = (),
    others: dict[str, System] | None = None,
) -> str:
    """Return the two tables of all sets that are there.

    Args:
        limit: most documents of a set.
        only: names of sets; if empty, all.
        others: the systems to compare with; if None, those of `systems`.
    """
    compared = systems() if others is None else others
    heads = ["set", "documents", "words", "ours", *compared, *(f"{kind} over the best" for kind in MEASURES)]
    scored = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    placed = ["| set | words used | percent of the sentences by tenth |", "| --- | --- | --- |"]
    for chosen in (*SETS, *EXTENSIONS, *ONLY_MEASURED):
        if only and chosen.name not in only:
            continue
        if not (data / chosen.place).is_dir():
            print(f"{chosen.name}: {data / chosen.place} is missing, skipped", file=sys.stderr)
            continue
        row, places = measure(chosen, extractor, compared, data, limit)
        scored.append(row)
        placed.append(places)
        print(row, places, sep="\n", file=sys.stderr, flush=True)
    return "\n".join([*scored, "", *placed])
