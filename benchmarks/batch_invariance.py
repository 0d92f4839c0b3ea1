"""Does a summary depend on the other documents of its batch? Counts greedy fp32 summaries that change.

    python -m benchmarks.batch_invariance --model RUN --documents FILE.jsonl [--limit 200] [--batch-size 8] [--seed 0]
    python -m benchmarks.batch_invariance --model writer --documents FILE.jsonl [--limit 200] [--words 40] [--out OUT]

Every document is summarized by itself, in batches sorted by length, and in batches of random order. In random order,
short documents carry much padding. Where a summary differs, the command prints the gap between the two best
log-probabilities at the first differing token. A gap below rounding explains the difference.

A writer (a causal language model, or an endpoint) gets the documents one at a time, together, and in another order.
It keeps each summary in the folder OUT. The same command continues with what is missing there; what is left of a
company is then summarized together.
"""

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from precis.data.pairs.pair_reader import read_pairs
from precis.extract.extractor_opening import passage_choice
from precis.generation.generation_settings import generation_config
from precis.generation.model_location import locate
from precis.generation.summarizer import Summarizer
from precis.generation.writers.writer import Writer
from precis.generation.writers.writer_opening import open_writer


def alone(summarizer: Summarizer, documents: list[str]) -> list[str]:
    """Summarize each document in a batch of its own."""
    return [summarizer.summarize([document], batch_size=1)[0].text for document in documents]


def with_strangers(summarizer: Summarizer, documents: list[str], *, batch_size: int, seed: int) -> list[str]:
    """Summarize the documents in batches of random order, each decoded with one call of `generate`."""
    order = list(range(len(documents)))
    random.Random(seed).shuffle(order)
    texts = [""] * len(documents)
    limit = summarizer.max_source
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        inputs = summarizer.tokenizer(
            [documents[row] for row in rows],
            padding=True,
            truncation=limit is not None,
            max_length=limit,
            return_tensors="pt",
        )
        decoding = generation_config(summarizer.settings, summarizer.model, summarizer.tokenizer)
        written = summarizer.model.generate(**inputs, generation_config=decoding)
        for row, text in zip(
            rows, summarizer.tokenizer.batch_decode(written, skip_special_tokens=True), strict=True
        ):
            texts[row] = text.strip()
    return texts


def kept(file: Path | None) -> dict[int, str]:
    """Return the summaries that `file` holds, by the place of their document."""
    return dict(map(json.loads, file.read_text().splitlines())) if file and file.exists() else {}


def in_company(
    writer: Writer,
    documents: list[str],
    companies: Sequence[Sequence[int]],
    *,
    words: int | None,
    file: Path | None,
) -> list[str]:
    """Summarize each company of documents (places in `documents`) with one call; add each summary to `file` at once."""
    texts = kept(file)
    for company in companies:
        left = [place for place in company if place not in texts]
        for place, summary in zip(
            left, writer.stream([documents[place] for place in left], words=words), strict=True
        ):
            texts[place] = summary.text
            if file:
                with file.open("a") as stream:
                    print(json.dumps([place, summary.text]), file=stream)
    return [texts[place] for place in range(len(documents))]


def told_of_writer(
    writer: Writer, documents: list[str], *, seed: int, words: int | None = None, out: Path | None = None
) -> list[str]:
    """Return a line for each company: how many of a writer's summaries equal the single-document ones."""
    places = list(range(len(documents)))
    shuffled = random.Random(seed).sample(places, len(places))
    companies = {
        "alone": [[place] for place in places],
        "together": [places],
        "together in another order": [shuffled],
    }
    texts = {
        name: in_company(
            writer,
            documents,
            company,
            words=words,
            file=out / f"{name.replace(' ', '_')}.jsonl" if out else None,
        )
        for name, company in companies.items()
    }
    single = texts.pop("alone")
    return [
        f"{name}: {sum(map(str.__eq__, single, found))} of {len(documents)} equal to the single-document summary"
        for name, found in texts.items()
    ]


@torch.no_grad()
def margin(summarizer: Summarizer, document: str, first: str, second: str) -> float:
    """Return the gap between the two best log-probabilities at the first token where two summaries differ."""
    tokenizer = summarizer.tokenizer
    one, two = (tokenizer(text)["input_ids"] for text in (first, second))
    shared = next(
        (i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two))
    )
    inputs = tokenizer([document], truncation=True, max_length=summarizer.max_source, return_tensors="pt")
    logits = summarizer.model(**inputs, decoder_input_ids=torch.tensor([one[:shared]])).logits[0, -1]
    best = logits.log_softmax(-1).topk(2).values
    return float(best[0] - best[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--words", type=int, help="for a writer: at most this many words a summary")
    parser.add_argument("--out", type=Path, help="for a writer: folder that keeps the summaries")
    arguments = parser.parse_args()
    pairs = read_pairs(arguments.documents, need_summary=False, skip_bad=True, limit=arguments.limit)
    documents = [pair.document for pair in pairs]
    if locate(arguments.model).is_writer:
        writer = open_writer(arguments.model, choose=passage_choice())
        if arguments.out:
            arguments.out.mkdir(parents=True, exist_ok=True)
        told = told_of_writer(
            writer, documents, seed=arguments.seed, words=arguments.words, out=arguments.out
        )
        print("\n".join(told))
        return
    summarizer = Summarizer.from_pretrained(arguments.model, dtype=torch.float32)
    summarizer.settings = replace(
        summarizer.settings, beams=1, no_repeat_ngram=0, min_tokens=0, length_penalty=1.0
    )
    single = alone(summarizer, documents)
    groups = {
        f"batches of {arguments.batch_size}, sorted by length": [
            s.text for s in summarizer.summarize(documents, batch_size=arguments.batch_size)
        ],
        f"batches of {arguments.batch_size} strangers": with_strangers(
            summarizer, documents, batch_size=arguments.batch_size, seed=arguments.seed
        ),
    }
    for name, texts in groups.items():
        changed = [row for row in range(len(documents)) if texts[row] != single[row]]
        print(
            f"{name}: {len(documents) - len(changed)} of {len(documents)} equal to the single-document summary"
        )
        for row in changed:
            gap = margin(summarizer, documents[row], single[row], texts[row])
            print(
                f"  document {row + 1}: the best two tokens where they differ are {gap:.1e} apart in log-probability"
            )


if __name__ == "__main__":
    main()
