"""The least share of content words with which a written sentence stays, learnt from right and wrong sentences.

    python -m benchmarks.writers.threshold --data DIR [--documents 100] [--seed 0] [--most 0.05]
        [--closeness -1]

DIR holds sets of pairs with a dev file. From each of SETS, `--documents` pairs are drawn with the seed; every second
one is for learning, the others for the test. Each gives these sentences, as if a model had written them:

    right       the first sentence of the summary that a person wrote
    name        the same with another document's name in place of one
    number      the same with another number
    negation    the same with "not" put in or left out
    elsewhere   the first sentence of another document's summary

A sentence is kept if `write_or_quote` keeps it: without a mark, and with the share of content or more. The rule: the
least threshold at which at most `--most` of the sentences from elsewhere are kept, by the upper end of the 95%
interval. A lower one keeps more right sentences. No threshold finds planted words, which the marks are for.
`--closeness 0.8` shows what the rule for the small model `writer` would keep of right sentences.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.faithfulness.planted import PLANT, Pair, read_pairs
from precis_text.support.marks import SourceText
from precis_text.support.write_or_quote import write_or_quote
from precis_text.units import extraction_units

SETS = (
    "open_pairs/usgov_posts_cc0",
    "open_pairs/ccby_docs",
    "open_pairs/proposals",
    "open_pairs/optech_talk",
    "scitldr",
)
KINDS = ("right", *PLANT, "elsewhere")
THRESHOLDS = tuple(round(0.3 + 0.05 * step, 2) for step in range(13))
Shares = dict[str, list[float]]
"""Kind -> the share of content of each sentence; -1 for one that is replaced at any threshold."""


def one_sentence(pair: Pair) -> Pair:
    """Return a pair with the first sentence of its summary."""
    return Pair(pair.document, extraction_units(pair.summary)[0].text)


def sentences(pair: Pair, others: Sequence[Pair], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield kind and text of the sentences of a document."""
    yield "right", pair.summary
    for kind, plant in PLANT.items():
        planted = plant(pair, others, rng, inside=False)
        if planted is not None:
            yield kind, planted.text
    yield "elsewhere", rng.choice([other.summary for other in others if other is not pair])


def share(source: SourceText, text: str, closeness: float = -1.0) -> float:
    """Return the share of content with which a sentence stays; -1 if it never does."""
    made = write_or_quote(source, text, least=0.0, closeness=closeness)
    if not made or made[0].reason:
        return -1.0
    return min(source.content_share(each) for each in source.support(text).sentences)


def measured(pairs: Sequence[Pair], rng: random.Random, closeness: float = -1.0) -> tuple[Shares, Shares]:
    """Return the shares of the sentences for learning and for the test."""
    halves: tuple[Shares, Shares] = (defaultdict(list), defaultdict(list))
    for number, pair in enumerate(pairs):
        source = SourceText(pair.document)
        for kind, text in sentences(pair, pairs, rng):
            halves[number % 2][kind].append(share(source, text, closeness))
    return halves


def kept(shares: Sequence[float], threshold: float) -> int:
    """Count the sentences that stay."""
    return sum(each >= threshold for each in shares)


def upper(hits: int, count: int) -> float:
    """Return the upper end of Wilson's 95% interval of a share."""
    z, p = 1.96, hits / count
    middle = p + z * z / (2 * count)
    return (middle + z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))) / (1 + z * z / count)


def table(shares: Shares) -> str:
    """Return the percentages that are kept, for each threshold, as Markdown."""
    kinds = [*shares]
    lines = [f"| threshold | {' | '.join(f'{kind} kept % ({len(shares[kind])})' for kind in kinds)} |"]
    lines += [f"|{' ---: |' * (1 + len(kinds))}"]
    for threshold in THRESHOLDS:
        cells = [f"{100 * kept(shares[kind], threshold) / len(shares[kind]):.0f}" for kind in kinds]
        lines.append(f"| {threshold:.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Print the tables and the choice."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=float, default=0.05)
    parser.add_argument("--closeness", type=float, default=-1.0)
    asked = parser.parse_args()
    learning: Shares = defaultdict(list)
    test: Shares = defaultdict(list)
    for name in SETS:
        pairs = read_pairs(asked.data / name, seed=asked.seed, split="dev")[: asked.documents]
        halves = measured([*map(one_sentence, pairs)], random.Random(asked.seed), asked.closeness)
        for whole, part in zip((learning, test), halves, strict=True):
            for kind in KINDS:
                whole[kind] += part[kind]
        rights = halves[0]["right"] + halves[1]["right"]
        print(f"{name}: {len(pairs)} documents, {100 * kept(rights, 0) / len(rights):.0f}% without a mark")
    others = learning["elsewhere"]
    fit = [each for each in THRESHOLDS if upper(kept(others, each), len(others)) <= asked.most]
    print(f"\nLearning:\n\n{table(learning)}\n\nTest:\n\n{table(test)}\n")
    print(f"chosen: {fit[0] if fit else 'none'} (at most {asked.most:.0%} from elsewhere, upper end of 95%)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
