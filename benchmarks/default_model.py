"""ROUGE of a model that chooses sentences, and of LEAD-1, LEAD-3 and LONGEST-3, on eight sets of pairs.

    python -m benchmarks.default_model --data DIR [--model FOLDER] [--limit 300] [--out FILE] [--write N]
    python -m benchmarks.default_model --equal-words --data DIR [--model FOLDER] [--limit 80] [--sets NAME ...]
        [--cache FOLDER]

DIR holds the sets as `precis_experiments.open_sets` reads them, and samsum and dialogsum, on which nothing was trained.
The first table has for each set ROUGE-1 and ROUGE-L of each system, and the difference to the better baseline with a
95% interval (paired bootstrap over documents, 1,000 samples, seed 0). It also has words, and sentences that are not in
the document verbatim. The second counts the documents of 300 in which a cap of 20, 40 and 80 words is kept. The last
has the percentage of summaries with a name, a number or a negation marked as absent from the document. Its rows are
extracts, the references that people wrote, and, with --write N, summaries that the same model writes of N documents of
each set.

With --equal-words it is compared with LEAD, LexRank, TextRank, Luhn, LSA, SumBasic and lede: `benchmarks.equal_words`
explains how.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.equal_words import cached, difference, statements, systems, tables
from precis.evaluation.rouge import Rouge
from precis.evaluation.significance import Bootstrap
from precis.evaluation.support_scores import faithful_scores
from precis.extract.extractor import Extractor
from precis.extract.extractor_opening import open_extractor
from precis.generation.model_loader import load_model
from precis.generation.model_location import default_model
from precis.generation.summarizer import Summarizer
from precis_experiments.open_sets import SETS, OpenSet, pairs_of
from precis_text.errors import UserError
from precis_text.support.marks import KINDS
from precis_text.units import extraction_units
from precis_text.words import length_in_words

MEASURED = ("openstax", "usgov_posts", "ccby_docs", "scitldr", "qmsum", "mts_dialog")
ONLY_MEASURED = tuple(
    replace(SETS[0], name=name, place=name, licence="CC BY-NC-ND 4.0") for name in ("samsum", "dialogsum")
)
ROUGE = Rouge(types=("rouge1", "rougeL"))
CAPS = (20, 40, 80)


def lead(document: str, count: int) -> str:
    """Return the first units that are not headings."""
    return "\n".join(unit.text for unit in statements(document)[:count])


def longest(document: str, count: int) -> str:
    """Return the longest units, in their order."""
    units = extraction_units(document)
    chosen = sorted(sorted(range(len(units)), key=lambda place: -len(units[place].text))[:count])
    return "\n".join(units[place].text for place in chosen)


def marked(name: str, mode: str, documents: Sequence[str], summaries: Sequence[str]) -> str:
    """Return a row of the table of marks: percent of the summaries that have one, by kind, with intervals."""
    scores = faithful_scores({mode: summaries}, documents, [()] * len(documents))[mode]
    cells = []
    for kind in KINDS:
        found = Bootstrap().interval(100.0 * np.asarray(scores.columns[f"{kind}s"] > 0, dtype=np.float64))
        cells.append(f"{found.mean:.0f} ({found.low:.0f} to {found.high:.0f})")
    return f"| {' | '.join([name, mode, str(len(summaries)), *cells])} |"


def measure(
    chosen: OpenSet, extractor: Extractor, writer: Summarizer | None, data: Path, limit: int, written: int
) -> tuple[str, list[str], list[str]]:
    """Return a row of the table, rows of the table of marks, and the documents."""
    rows = list(pairs_of(chosen, data / chosen.place, "dev"))
    random.Random(0).shuffle(rows)
    rows = rows[:limit]
    documents = [str(row["document"]) for row in rows]
    references = [row["summaries"] for row in rows]
    ours = extractor.summarize(documents, short="write")
    texts = {
        "ours": [summary.text for summary in ours],
        "LEAD-1": [lead(document, 1) for document in documents],
        "LEAD-3": [lead(document, 3) for document in documents],
        "LONGEST-3": [longest(document, 3) for document in documents],
    }
    scores = {name: ROUGE.score(found, references) for name, found in texts.items()}
    cells = [f"{s['rouge1'].mean():.1f}/{s['rougeL'].mean():.1f}" for s in scores.values()]
    differences = [
        difference(scores["ours"][kind], max((scores[n][kind] for n in ("LEAD-1", "LEAD-3")), key=np.mean))
        for kind in ("rouge1", "rougeL")
    ]
    flat = [" ".join(document.split()) for document in documents]
    foreign = sum(
        " ".join(document[a:b].split()) not in whole
        for summary, document, whole in zip(ours, documents, flat, strict=True)
        for a, b in summary.places
    )
    words = np.mean([length_in_words(text) for text in texts["ours"]])
    row = " | ".join([chosen.name, str(len(rows)), *cells, *differences, f"{words:.0f}", str(foreign)])
    marks = [
        marked(chosen.name, "extract", documents, texts["ours"]),
        marked(chosen.name, "reference", documents, [first for first, *_ in references]),
    ]
    if writer is not None:
        said = writer.summarize(documents[:written], short="write")
        marks.append(marked(chosen.name, "abstract", documents[:written], [summary.text for summary in said]))
    return f"| {row} |", marks, documents


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--equal-words", action="store_true")
    parser.add_argument("--sets", nargs="*", default=(), metavar="NAME")
    parser.add_argument("--cache", type=Path, help="folder for the texts of the other systems")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--write", type=int, default=0, metavar="N")
    asked = parser.parse_args()
    extractor = open_extractor(asked.model or default_model())
    if asked.equal_words:
        try:
            others = systems()
            if asked.cache is not None:
                others = {name: cached(name, system, asked.cache) for name, system in others.items()}
            text = tables(extractor, asked.data, limit=asked.limit or 80, only=asked.sets, others=others)
        except UserError as error:
            parser.error(str(error))
        print(text)
        if asked.out is not None:
            asked.out.write_text(text + "\n")
        return 0
    limit = asked.limit or 300
    names = "set, documents, ours, LEAD-1, LEAD-3, LONGEST-3, R-1 over LEAD, R-L over LEAD, words, not in the document"
    heads = names.split(", ")
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    documents: list[str] = []
    marks: list[str] = []
    writer = Summarizer.of(load_model(asked.model or default_model())) if asked.write else None
    for chosen in (*(each for each in SETS if each.name in MEASURED), *ONLY_MEASURED):
        row, of_set, found = measure(chosen, extractor, writer, asked.data, limit, asked.write)
        lines.append(row)
        documents += found
        marks += of_set
        print(row, *of_set, sep="\n", file=sys.stderr, flush=True)
    random.Random(0).shuffle(documents)
    lines.append("")
    for cap in CAPS:
        kept = sum(length_in_words(s.text) <= cap for s in extractor.summarize(documents[:300], words=cap))
        lines.append(f"at most {cap} words: kept in {kept} of {len(documents[:300])} documents")
    heads = ["set", "mode", "summaries", *(f"with a {kind} marked %" for kind in KINDS)]
    lines += ["", f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *marks]
    text = "\n".join(lines)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
