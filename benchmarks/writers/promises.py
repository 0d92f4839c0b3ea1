"""The promises of a writer on development documents, next to the model in the box.

    python -m benchmarks.writers.promises --data DIR --out OUT [--model writer] [--documents 100] [--words 40]
        [--again]

DIR holds sets of pairs with a dev file; the documents come from SETS in turn, up to `--most-words` words each. `precis
compare` summarizes them with the default model and the writer in strict mode. The table has for each set: names and
numbers without support, summaries over the cap, and written sentences. It also has ROUGE-L of the writer minus that of
the extract, with its 95% bootstrap interval. More documents continue the same OUT. `--again` runs no model: it checks
the summaries of OUT again with the present rules for the model `writer`. It also counts the sentences of the documents
that look like instructions to a model, which the writer does not read.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faithfulness.planted import read_pairs
from experiments.scripts.adapted_writer import Recorded
from precis.evaluation.predictions import Prediction, read_predictions
from precis.evaluation.rouge import Rouge
from precis.evaluation.significance import Bootstrap
from precis.extract.extractor_opening import passage_choice
from precis.generation.writers.writer import Writer
from precis_text.support.injections import speaks_to_a_model
from precis_text.support.marks import SourceText
from precis_text.support.write_or_quote import SMALL_CLOSENESS
from precis_text.units import extraction_units
from precis_text.words import length_in_words

SETS = (
    "open_pairs/usgov_posts_cc0",
    "open_pairs/ccby_docs",
    "open_pairs/proposals",
    "open_pairs/optech_talk",
    "scitldr",
)
Row = dict[str, Any]


def drawn(
    data: Path, count: int, *, seed: int, most_words: int | None = None, sets: Sequence[str] = SETS
) -> list[Row]:
    """Return rows of all sets in turn; a larger count only adds rows."""
    chosen = []
    for name in sets:
        pairs = read_pairs(data / name, seed=seed, split="dev")
        fit = [pair for pair in pairs if most_words is None or len(pair.document.split()) <= most_words]
        random.Random(seed).shuffle(fit)
        rows = [{"document": pair.document, "summary": pair.summary} for pair in fit]
        chosen.append([{"id": f"{Path(name).name} {n}", **row} for n, row in enumerate(rows, start=1)])
    turns = itertools.chain.from_iterable(itertools.zip_longest(*chosen))
    return [row for row in turns if row is not None][:count]


def counted(rows: Sequence[Row], texts: Sequence[str], *, words: int) -> dict[str, int]:
    """Return how often a summary breaks a promise."""
    supports = [SourceText(row["document"]).support(text) for row, text in zip(rows, texts, strict=True)]
    return {
        "without a summary": sum(not text.strip() for text in texts),
        f"over {words} words": sum(length_in_words(text) > words for text in texts),
        "names without support": sum(support.count("name") for support in supports),
        "numbers without support": sum(support.count("number") for support in supports),
    }


def written_share(found: Sequence[Prediction]) -> str:
    """Return how many sentences are written, of all."""
    origins = [each["origin"] for one in found for each in one.details.get("sentences", ())]
    return f"{origins.count('written')}/{len(origins)}"


def difference(rows: Sequence[Row], ours: Sequence[str], extract: Sequence[str]) -> str:
    """Return ROUGE-L of one minus the other, with its interval."""
    references = [[row["summary"]] for row in rows]
    rouge = Rouge(types=("rougeL",))
    one, other = (np.asarray(rouge.score(texts, references)["rougeL"]) for texts in (ours, extract))
    found = Bootstrap().paired(one, other).difference
    return f"{other.mean():.1f} {found.mean:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"


def table(rows: Sequence[Row], found: Sequence[Prediction], extract: Sequence[str], *, words: int) -> str:
    """Return the figures of each set and of all, as Markdown."""
    names = [row["id"].rpartition(" ")[0] for row in rows]
    lines = []
    for name in (*dict.fromkeys(names), "all"):
        places = [place for place, each in enumerate(names) if name in (each, "all")]
        part = [rows[place] for place in places]
        texts = [found[place].prediction for place in places]
        counts = counted(part, texts, words=words)
        others = [extract[place] for place in places]
        share = written_share([found[place] for place in places])
        cells = [name, len(part), *counts.values(), share, difference(part, texts, others)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    heads = ["set", "documents", *counts, "sentences written", "ROUGE-L of the extract, writer's difference"]
    return "\n".join([f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}", *lines])


def checked_again(rows: Sequence[Row], found: Sequence[Prediction], *, words: int) -> list[Prediction]:
    """Return recorded summaries as the check leaves them now."""
    chat = Recorded()
    writer = Writer(chat, choose=passage_choice(), closeness=SMALL_CLOSENESS)
    made = []
    for row, recorded in zip(rows, found, strict=True):
        chat.text = recorded.prediction
        (summary,) = writer.summarize([row["document"]], words=words)
        details = {"sentences": [each.to_dict() for each in summary.sentences]}
        made.append(replace(recorded, prediction=summary.text, details=details))
    return made


def main() -> int:
    """Run the comparison and print the table; 1 if a promise is broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="writer")
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--words", type=int, default=40)
    parser.add_argument("--most-words", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    rows = drawn(asked.data, asked.documents, seed=asked.seed, most_words=asked.most_words)
    asked.out.mkdir(parents=True, exist_ok=True)
    file, out = asked.out / "rows.jsonl", asked.out / "compared"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = ("--model", "default", "--model", asked.model)
    options = ("--words", str(asked.words), "--threads", str(asked.threads), "--out", str(out))
    if not asked.again:
        subprocess.run([sys.executable, "-m", "precis", "compare", str(file), *models, *options], check=True)
    extract = [each.prediction for each in read_predictions(out / "predictions" / "default.jsonl")]
    (other,) = [each for each in (out / "predictions").glob("*.jsonl") if each.stem != "default"]
    found = read_predictions(other)
    if asked.again:
        found = checked_again(rows, found, words=asked.words)
        units = [unit.text for row in rows for unit in extraction_units(row["document"])]
        print(
            f"{sum(map(speaks_to_a_model, units))} of {len(units):,} sentences look like instructions to a model\n"
        )
    else:
        print((out / "table.md").read_text().partition("\n\n## Summaries")[0])
    print(table(rows, found, extract, words=asked.words))
    broken = counted(rows, [each.prediction for each in found], words=asked.words)
    return int(any(broken.values()))


if __name__ == "__main__":
    sys.exit(main())
