"""Sixty documents with four extracts of the same number of words each, read by one who does not know which is which.

    pip install --group benchmarks
    python -m benchmarks.sixty_read --data DIR --former FOLDER --out PAGES [--seed 31] [--kind talk]
    python -m benchmarks.sixty_read

The first command writes a page a document, with the extracts as A to D in an order of its own, and `key.json`. FOLDER
is the former model. Twenty documents have more than 8,192 tokens; twenty are meetings, chats and threads; twenty are
others. They are drawn from dev sets. The second command counts what readers wrote down in `sixty_read.toml`, a table
[[read]] a page, with the letters replaced by the systems of the key: `seed`; `kind`; `main`, for
each system "full", "part" or "none"; `dangling` and `remnants`, lists of systems; `order`, a list of lists of systems,
the most useful first. In a pair, a better place in the reader's order wins; equal places are ties. The
intervals of the shares are exact (Clopper-Pearson), 95%.
"""

import argparse
import json
import random
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.equal_words import GENEROUS, ONLY_MEASURED, of_sumy
from precis.extract.extractor import Extractor
from precis.extract.extractor_opening import open_extractor
from precis.generation.model_location import default_model
from precis_experiments.open_sets import EXTENSIONS, SETS, OpenSet, pairs_of
from precis_text.words import length_in_words

SEED = 31
LONG = 8192  # tokens; a long document has more
LONGEST = 16_000  # words of a document that a person can read
WORDS = (30, 200)  # an extract has at least and at most these, if the mean reference asks for others
SYSTEMS = ("new", "former", "TextRank", "LexRank")
LETTERS = "ABCD"
KINDS = {
    "long": {
        "science_abstract": 6, "science_lay": 2, "sumpubmed": 2, "qmsum_meetings": 6, "ethereum_minutes": 1,
        "crs_reports": 1, "open_papers": 1, "squality": 1,
    },
    "talk": {
        "samsum": 4, "dialogsum": 3, "convosumm_email": 4, "mts_dialog": 2, "optech_talk": 3, "qmsum": 3,
        "monero_posts": 1,
    },
    "other": {
        "usgov_posts": 3, "web_posts": 3, "ccby_docs": 3, "openstax": 2, "proposals": 2, "opensuse_news": 2,
        "carpentries_keypoints": 2, "cnndm": 2, "gum": 1,
    },
}  # fmt: skip
FAULTS = ("dangling", "remnants")
FOUND = Path(__file__).with_suffix(".toml")


def _meeting(row: Any) -> Iterator[dict[str, Any]]:
    """Yield a whole meeting."""
    yield {"document": row["document"], "summaries": [row["summary"]]}


MEETINGS = OpenSet(
    name="qmsum_meetings", place="qmsum", licence="MIT, CC BY 4.0", credit="QMSum", pairs=_meeting
)


@dataclass(frozen=True)
class Page:
    """A document, and the words that its extracts may have."""

    kind: str
    source: str
    document: str
    words: int


def drawn(data: Path, extractor: Extractor, *, seed: int, kinds: Sequence[str]) -> Iterator[Page]:
    """Yield the documents, with a set's documents of the kind's length in an order of the seed."""
    known = {each.name: each for each in (*SETS, *EXTENSIONS, *ONLY_MEASURED, MEETINGS)}
    for kind in kinds:
        for name, count in KINDS[kind].items():
            rows = list(pairs_of(known[name], data / known[name].place, "dev"))
            lengths = [length_in_words(text) for row in rows for text in row["summaries"]]
            words = round(min(max(GENEROUS * float(np.mean(lengths)), WORDS[0]), WORDS[1]))
            random.Random(seed).shuffle(rows)
            texts = [str(row["document"]) for row in rows if length_in_words(row["document"]) <= LONGEST]
            fitting = (
                text for text in texts if (extractor.tokens.counts(text)[0] > LONG) == (kind == "long")
            )
            for text, _ in zip(fitting, range(count), strict=False):
                yield Page(kind, name, text, words)


def write_pages(data: Path, former: Path, out: Path, *, seed: int, kinds: Sequence[str]) -> None:
    """Write a page for each document, and which extract is which."""
    ours, before = open_extractor(default_model()), open_extractor(former)
    others = {name: of_sumy(name) for name in ("TextRank", "LexRank")}
    out.mkdir(parents=True)
    key = []
    for number, page in enumerate(drawn(data, ours, seed=seed, kinds=kinds), start=1):
        texts = {
            name: extractor.summarize([page.document], words=page.words, short="write")[0].text
            for name, extractor in (("new", ours), ("former", before))
        } | {name: system(page.document, page.words) for name, system in others.items()}
        order = list(SYSTEMS)
        random.Random(f"{seed} {number}").shuffle(order)
        extracts = "".join(
            f"## {letter}\n\n{texts[name]}\n\n" for letter, name in zip(LETTERS, order, strict=True)
        )
        (out / f"{number:02}.md").write_text(
            f"{extracts}## The document\n\n{page.document}\n", encoding="utf-8"
        )
        key.append(
            {"number": number, "kind": page.kind, "set": page.source, "words": page.words, "order": order}
        )
        print(number, page.kind, page.source, page.words, file=sys.stderr, flush=True)
    (out / "key.json").write_text(json.dumps(key, indent=1) + "\n", encoding="utf-8")


def share(won: int, lost: int) -> str:
    """Return the share of decided pairs that were won, with its interval."""
    from scipy.stats import binomtest

    if not won + lost:
        return "none decided"
    found = binomtest(won, won + lost).proportion_ci(method="exact")
    return f"{100 * won / (won + lost):.0f}% ({100 * found.low:.0f} to {100 * found.high:.0f})"


def counted(read: Sequence[dict[str, Any]]) -> str:
    """Return two tables: what readers found in each system's extracts, and the pairs with the new one."""
    kinds = [*dict.fromkeys(row["kind"] for row in read)]
    lines = [
        "| system | documents | main point missing | part of it missing | dangling | remnants, fillers |"
    ]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for name in SYSTEMS:
        for kind in (*kinds, "all"):
            rows = [row for row in read if kind in (row["kind"], "all")]
            points = Counter(row["main"][name] for row in rows)
            cells = [
                points["none"],
                points["part"],
                *(sum(name in row[what] for row in rows) for what in FAULTS),
            ]
            lines.append(f"| {name} | {kind}, {len(rows)} | {' | '.join(map(str, cells))} |")
    lines += ["", "| new against | documents | better | equal | worse | of those decided |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for name in SYSTEMS[1:]:
        for kind in (*kinds, "all"):
            rows = [row for row in read if kind in (row["kind"], "all")]
            places = [({each: at for at, tied in enumerate(row["order"]) for each in tied}) for row in rows]
            won = sum(place["new"] < place[name] for place in places)
            lost = sum(place["new"] > place[name] for place in places)
            pairs = f"{won} | {len(rows) - won - lost} | {lost} | {share(won, lost)}"
            lines.append(f"| {name} | {kind}, {len(rows)} | {pairs} |")
    return "\n".join(lines)


def main() -> None:
    """Write the pages, or print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--former", type=Path, help="folder of the former model")
    parser.add_argument("--out", type=Path, help="folder for the pages")
    parser.add_argument("--seed", type=int, default=SEED, help="of the documents, and of the order on a page")
    parser.add_argument(
        "--kind", choices=[*KINDS], action="append", help="one kind of documents; default: all"
    )
    asked = parser.parse_args()
    if asked.out is None:
        if not FOUND.is_file():
            parser.error(f"no verdicts in {FOUND.name}: write the pages with --out, and have them read")
        read = tomllib.loads(FOUND.read_text(encoding="utf-8"))["read"]
        for seed in dict.fromkeys(row["seed"] for row in read):
            rows = [row for row in read if row["seed"] == seed]
            print(f"\nseed {seed}\n\n{counted(rows)}")
            unseen = [row for row in rows if not row.get("seen")]
            if len(unseen) < len(rows):
                print(f"\nseed {seed}, unseen documents\n\n{counted(unseen)}")
        return
    if asked.data is None or asked.former is None:
        parser.error("--out needs --data and --former")
    write_pages(asked.data, asked.former, asked.out, seed=asked.seed, kinds=asked.kind or [*KINDS])


if __name__ == "__main__":
    main()
