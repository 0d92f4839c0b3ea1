"""What an adapter changes: summaries by the adapted writer, by the same writer without it, and the extract.

    python -m experiments.scripts.adapted_writer --pairs PAIRS --out OUT [--adapter RUN] [--model writer]
        [--documents 20] [--context 400] [--sets NAME ...] [--systems extract writer adapted]
        [--report [--closeness 0.8]]

PAIRS is a folder of `experiments.scripts.writer_pairs`. Without `--adapter`, the adapted writer is `--model` as users
have it: with the adapter that comes with it, where precis applies that. A set has one cap in words for all systems: the
mean of its references, rounded up to ten. Both writers read the same best passages and are checked strictly. Each
summary is kept in OUT and not made again, so the command can be stopped and repeated, also with other systems at the
same time.
`--report` prints, over the documents that all systems have summarized: ROUGE-1/2/L, the paired differences of the
adapted writer with 95% intervals (bootstrap over documents, seed 0), and the shares of sentences in the
model's own words, and of those that the check replaced. With `--closeness`, it first checks the recorded summaries of
both writers again with that least closeness (`precis_text.support.write_or_quote`), without a model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.scripts.writer_pairs import NAMES
from faults.report import header
from precis.data.pairs.pair import Pair
from precis.data.pairs.pair_reader import read_pairs
from precis.data.text.prompts import Message
from precis.evaluation.rouge import Rouge
from precis.evaluation.significance import Bootstrap
from precis.extract.extractor_opening import open_extractor, passage_choice
from precis.generation.model_location import locate
from precis.generation.model_metadata import NO_ADAPTER
from precis.generation.writers.chat import OnTokens, Reply
from precis.generation.writers.writer import Writer
from precis.generation.writers.writer_opening import open_writer
from precis_text.words import length_in_words

SYSTEMS = ("extract", "writer", "adapted")
KINDS = ("rouge1", "rouge2", "rougeL")
Summarize = Callable[[str, int], dict[str, Any]]
Records = dict[tuple[str, int], dict[str, Any]]


@dataclass(frozen=True)
class Scored:
    """A document of a set, with the cap of the set in words."""

    name: str
    number: int
    pair: Pair
    words: int


def documents(pairs: Path, count: int, sets: Sequence[str] = NAMES) -> list[Scored]:
    """The first documents of every set, then the second ones, and so on."""
    found = []
    for name in sets:
        rows = list(read_pairs(pairs / f"{name}.jsonl", limit=count))
        mean = np.mean([length_in_words(row.summary) for row in rows])
        words = int(-(-mean // 10) * 10)
        found += [Scored(name, number, row, words) for number, row in enumerate(rows)]
    return sorted(found, key=lambda each: each.number)


def summarizer(system: str, asked: argparse.Namespace) -> Summarize:
    """A function from a document and a cap to a record of its summary."""
    if system == "extract":
        extractor = open_extractor("default")

        def extract(text: str, words: int) -> dict[str, Any]:
            (found,) = extractor.summarize([text], words=words, short="write")
            return {"text": found.text, "sentences": len(found.places), "written": 0, "replaced": 0}

        return extract
    model = locate(asked.model, asked.adapter if system == "adapted" else NO_ADAPTER)
    writer = open_writer(model, choose=passage_choice(), context=asked.context)
    return lambda text, words: written_record(writer, text, words)


def written_record(writer: Writer, text: str, words: int) -> dict[str, Any]:
    """The record of a writer's summary."""
    (found,) = writer.summarize([text], words=words, short="write")
    kinds = [(each.origin, bool(each.reason)) for each in found.sentences]
    counts = {"written": kinds.count(("written", False)), "replaced": kinds.count(("quoted", True))}
    return {"text": found.text, "sentences": len(kinds), **counts}


@dataclass
class Recorded:
    """A chat model that repeats a recorded summary."""

    text: str = ""
    context: int = 1_000_000
    context_is_assumed: bool = False
    control: Sequence[str] = field(default_factory=tuple)
    parts: Any = None
    tokenizer: Any = None

    def count(self, text: str) -> int:
        """The words of a text."""
        return length_in_words(text)

    def size(self, messages: Sequence[Message], answer: str) -> int:
        """The words of a prompt."""
        return sum(self.count(message.content) for message in messages)

    def reply(self, messages: list[Message], answer: str, *, most: int, on_tokens: OnTokens | None) -> Reply:
        """The recorded summary."""
        return Reply(self.text, self.count(self.text), True)


def checked_again(records: Records, rows: Sequence[Scored], closeness: float) -> Records:
    """The records of summaries whose sentences are checked again."""
    chat, found = Recorded(), {}
    writer = Writer(chat, choose=passage_choice(), closeness=closeness)
    for row in rows:
        chat.text = records[row.name, row.number]["text"]
        found[row.name, row.number] = written_record(writer, row.pair.document, row.words)
    return found


def make(system: str, rows: Sequence[Scored], asked: argparse.Namespace) -> None:
    """Write the summaries that are missing."""
    file = asked.out / f"{system}.jsonl"
    done = {(each["set"], each["number"]) for each in kept(file)}
    missing = [row for row in rows if (row.name, row.number) not in done]
    summarize = summarizer(system, asked) if missing else None
    for row in missing:
        assert summarize is not None
        record = {"set": row.name, "number": row.number, **summarize(row.pair.document, row.words)}
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
        print(f"{system}: {row.name} {row.number}", flush=True)


def kept(file: Path) -> Iterator[dict[str, Any]]:
    """The records of a file, without a last line that was cut."""
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True) if file.is_file() else ():
        if line.endswith("\n"):
            yield json.loads(line)


def report(rows: Sequence[Scored], asked: argparse.Namespace) -> None:
    """Print the tables."""
    found = {
        system: {(r["set"], r["number"]): r for r in kept(asked.out / f"{system}.jsonl")}
        for system in SYSTEMS
    }
    shared = [row for row in rows if all((row.name, row.number) in each for each in found.values())]
    if asked.closeness is not None:
        for system in SYSTEMS[1:]:
            found[system] = checked_again(found[system], shared, asked.closeness)
    for name in (*NAMES, "all"):
        chosen = [row for row in shared if name in (row.name, "all")]
        if not chosen:
            continue
        references = [row.pair.all_references for row in chosen]
        scores = {}
        print(f"\n{name}: {len(chosen)} documents")
        for system, records in found.items():
            mine = [records[row.name, row.number] for row in chosen]
            scores[system] = Rouge(types=KINDS).score([each["text"] for each in mine], references)
            means = "/".join(f"{scores[system][kind].mean():.1f}" for kind in KINDS)
            sentences = max(1, sum(each["sentences"] for each in mine))
            own, replaced = (sum(each[name] for each in mine) / sentences for name in ("written", "replaced"))
            words = np.mean([length_in_words(each["text"]) for each in mine])
            print(f"  {system:8} {means}  {words:.0f} words, {own:.0%} in own words, {replaced:.0%} replaced")
        for other in SYSTEMS[:2]:
            paired = [
                f"{kind} {Bootstrap().paired(scores['adapted'][kind], scores[other][kind]).difference}"
                for kind in KINDS
            ]
            print(f"  adapted - {other}: {', '.join(paired)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("pairs", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--adapter", type=Path)
    parser.add_argument("--sets", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--model", default="writer")
    for name, value in (("documents", 20), ("context", 400)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--closeness", type=float)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    rows = documents(asked.pairs, asked.documents, asked.sets)
    if asked.report:
        adapter = "its own adapter" if asked.adapter is None else f"adapter {asked.adapter.name}"
        header(f"{asked.model} with {adapter}, context of {asked.context} tokens", seed=0)
        report(rows, asked)
        return
    for system in asked.systems:
        make(system, rows, asked)


if __name__ == "__main__":
    main()
