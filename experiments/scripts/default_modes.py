"""Whether the model in the box should write or choose sentences: three ways to summarize with one model, on eight sets.

    python -m experiments.scripts.default_modes --data DIR --model FOLDER [--extractor FOLDER] [--limit 50] [--out FILE]

FOLDER is a model that was taught to write (`precis reproduce default-model --mode abstract`). The ways are

    as trained    beam search with four beams, nothing else
    constrained   no trigram twice; a bonus for tokens of the document; the beam that the document supports best
    extract       sentences of the document, chosen by the same model's encoder, or by that of --extractor

Printed are ROUGE-1 and ROUGE-L, the difference of extract to each in ROUGE-L with a 95% interval (paired bootstrap over
documents, 1,000 samples, seed 0), words, and how many percent of the summaries have a name, number or negation that is
marked as absent from the document. Documents are cut at 768 tokens where the model writes.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList

from benchmarks.default_model import MEASURED, ONLY_MEASURED, ROUGE, difference  # type: ignore[attr-defined]
from faults.report import header
from precis.extract.extractor_opening import open_extractor
from precis.generation.input_plan import DocumentEncoder
from precis.generation.model_loader import LoadedModel, load_model
from precis_experiments.open_sets import SETS, pairs_of
from precis_text.support.marks import SourceText
from precis_text.words import length_in_words

LONGEST_INPUT, LONGEST_SUMMARY, BEAMS, BONUS = 768, 100, 4, 2.0
HEADS = ("set", "documents", "way", "ROUGE-1/L", "extract over it, L", "words", "with a mark %")


class CopyBonus(LogitsProcessor):
    """Raises the log-probability of tokens that are in the document, and of the end mark, by `BONUS`."""

    def __init__(self, source: Sequence[int], end: int) -> None:
        self._raised = torch.tensor(sorted({*source, end}))

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores = scores.clone()
        scores[:, self._raised] += BONUS
        return scores


@dataclass(frozen=True)
class Writer:
    """Writes with a model, in one of two ways."""

    loaded: LoadedModel
    constrained: bool

    def __call__(self, document: str) -> str:
        tokenizer = self.loaded.tokenizer
        encoded = DocumentEncoder(tokenizer, self.loaded.use.instruction)(document)
        ids = encoded.part(0, encoded.room(LONGEST_INPUT)).ids
        changes: dict[str, Any] = {"no_repeat_ngram_size": 0}
        if self.constrained:
            bonus = CopyBonus(ids, cast(int, tokenizer.eos_token_id))
            changes = {"no_repeat_ngram_size": 3, "num_return_sequences": BEAMS}
            changes["logits_processor"] = LogitsProcessorList([bonus])
        rows = cast(Any, self.loaded.model).generate(
            input_ids=torch.tensor([ids]), num_beams=BEAMS, max_new_tokens=LONGEST_SUMMARY, **changes
        )
        texts = tokenizer.batch_decode(rows, skip_special_tokens=True)
        return best_supported(document, texts) if self.constrained else texts[0]


def best_supported(document: str, texts: Sequence[str]) -> str:
    """The text with the fewest marks, and of those with the most pairs of words that the document has."""
    source = SourceText(document)

    def worth(text: str) -> tuple[float, float]:
        found = source.support(text)
        pairs = [share for sentence in found.sentences if (share := sentence.ngrams[1]) is not None]
        return -float(len(found.marks)), float(np.mean(pairs)) if pairs else 0.0

    return max(texts, key=worth)


def rows_of(data: Path, limit: int) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Name, documents and references of each set."""
    for chosen in (*(each for each in SETS if each.name in MEASURED), *ONLY_MEASURED):
        rows = list(pairs_of(chosen, data / chosen.place, "dev"))
        random.Random(0).shuffle(rows)
        yield (
            chosen.name,
            [str(row["document"]) for row in rows[:limit]],
            [row["summaries"] for row in rows[:limit]],
        )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--extractor", type=Path)
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    header("three ways to summarize with one model")
    extractor = open_extractor(asked.extractor or asked.model)
    loaded = load_model(asked.model, device="cpu")
    ways = {"as trained": Writer(loaded, constrained=False), "constrained": Writer(loaded, constrained=True)}
    lines = [f"| {' | '.join(HEADS)} |", "|" + " --- |" * len(HEADS)]
    for name, documents, references in rows_of(asked.data, asked.limit):
        texts = {"extract": [each.text for each in extractor.summarize(documents, short="write")]}
        texts |= {way: [write(document) for document in documents] for way, write in ways.items()}
        scores = {way: ROUGE.score(found, references) for way, found in texts.items()}
        for way, found in texts.items():
            marked = np.mean(
                [bool(SourceText(d).support(t).marks) for d, t in zip(documents, found, strict=True)]
            )
            over = "" if way == "extract" else difference(scores["extract"]["rougeL"], scores[way]["rougeL"])
            worth = f"{scores[way]['rouge1'].mean():.1f}/{scores[way]['rougeL'].mean():.1f}"
            words = f"{np.mean([length_in_words(text) for text in found]):.0f}"
            lines.append(
                f"| {' | '.join([name, str(len(found)), way, worth, over, words, f'{100 * marked:.0f}'])} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    print("\n".join(lines))
    if asked.out is not None:
        asked.out.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
