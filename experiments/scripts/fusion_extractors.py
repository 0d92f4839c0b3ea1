"""Fusion-in-encoder against dense, truncated and local-only encoders, as extractors at equal time (Z-Code++ 2.3).

    python -m experiments.scripts.fusion_extractors --data DATA --start MODEL --out runs/fusion [--seconds 120]

MODEL is a small pre-trained Z-Code++. Each variant trains its encoder with a linear head that scores sentences, for
the same processor time. The head sees one sentence at a time and no features, so context comes from the encoder alone.
The target sentences are those of `precis extractor` (`best_units`). docs/experiments/long-documents.md has the design.
A second call with the same folder does the missing runs, and prints the tables of all.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.equal_words import MEASURES, ROUGE, fitting
from precis.cli.framework.console import note
from precis.cli.framework.options import begin
from precis.data.batches.unit_batches import filled
from precis.evaluation.baselines import best_units
from precis.evaluation.significance import OVER_RUNS
from precis.extract.unit_encoder import around, unit_tokenizer
from precis.extract.unit_tokens import UnitTokens
from precis.generation.model_loader import load_model
from precis.nn.layer_plan import LayerPlan, dense_plan, fusion_plan
from precis.recipes.run_plan import native_precision
from precis.storage.atomic import write_file
from precis.training.optimizer import build_optimizer, set_learning_rate
from precis.training.training_settings import TrainSettings
from precis_experiments.experiment import markdown
from precis_experiments.open_sets import EXTENSIONS, SETS, pairs_of
from precis_text.control_characters import main_part, remove_marks

NAMES = ("science_abstract", "openstax", "optech_talk")
MOST = 4096  # tokens that are read of a document
TRUNCATED = 1024  # the same of the truncated variant
CAP = 500  # documents of a set's split
BATCH = 4096  # padded tokens of a batch, unless one document has more
RATE = 1e-3
WARMUP = 0.1  # share of the time


@dataclass(frozen=True)
class Variant:
    """How an encoder reads.

    Attributes:
        chunk: tokens of a local layer's chunk; 0 if all layers are global.
        global_layers: how many of the layers are global.
        global_first: whether these are the first layers, and not the last ones.
        most: tokens that are read of a document.
    """

    chunk: int
    global_layers: int = 1
    global_first: bool = False
    most: int = MOST

    def plan(self, layers: int) -> LayerPlan:
        """Return the layer plan of an encoder with this many layers."""
        if not self.chunk:
            return dense_plan(layers)
        plan = fusion_plan(layers, chunk_length=self.chunk, global_layers=self.global_layers)
        return plan[::-1] if self.global_first else plan


FUSION = "fusion 256"
VARIANTS: Mapping[str, Variant] = {
    FUSION: Variant(256),
    "dense": Variant(0),
    "truncated": Variant(0, most=TRUNCATED),
    "local only 256": Variant(256, global_layers=0),
    "fusion 128": Variant(128),
    "fusion 512": Variant(512),
    "first layer global": Variant(256, global_first=True),
    "two global layers": Variant(256, global_layers=2),
}


@dataclass(frozen=True)
class Document:
    """A document's units as tokens, the places of the best ones, and its references."""

    name: str
    tokens: UnitTokens
    best: frozenset[int]
    references: tuple[str, ...]

    def ids(self, most: int) -> list[Sequence[int]]:
        """Return the ids of the first units with at most that many tokens together, at least of one."""
        ends = accumulate(map(len, self.tokens.ids))
        return [self.tokens.ids[0][:most]] + [
            row for row, end in list(zip(self.tokens.ids, ends, strict=True))[1:] if end <= most
        ]


@dataclass(frozen=True)
class Documents:
    """What all runs read: training and dev documents, and the words of a summary of each set."""

    train: Sequence[Document]
    dev: Sequence[Document]
    words: Mapping[str, int]


def read_sets(data: Path, tokenizer: Any, cap: int) -> Documents:
    """Read, tokenize and mark the documents of all sets."""
    known = {each.name: each for each in (*SETS, *EXTENSIONS)}
    units = unit_tokenizer(tokenizer, most=MOST)
    parts: dict[str, list[Document]] = {"train": [], "dev": []}
    words = {}
    for name in NAMES:
        for split, found in parts.items():
            rows = list(pairs_of(known[name], data / known[name].place, split))
            random.Random(0).shuffle(rows)
            rows = rows[:cap]
            if split == "train":
                sizes = [len(text.split()) for row in rows for text in row["summaries"]]
                words[name] = round(float(np.mean(sizes)))
            texts = [remove_marks(main_part(str(row["document"]))) for row in rows]
            for row, tokens in zip(rows, units.tokenize(texts), strict=True):
                if tokens is not None:
                    found.append(marked(name, tokens, row["summaries"]))
        note(f"{name}: read")
    return Documents(parts["train"], parts["dev"], words)


def marked(name: str, tokens: UnitTokens, references: Sequence[str]) -> Document:
    """Return a document with the places of the units that the greedy search finds best; never a heading."""
    places = [place for place, unit in enumerate(tokens.units) if not unit.heading]
    best = best_units([tokens.units[place].text for place in places], references, rouge=ROUGE)
    return Document(name, tokens, frozenset(places[each] for each in best), tuple(references))


class Extractor(nn.Module):
    """An encoder and a linear head on the mean and the last hidden state of each unit."""

    def __init__(self, encoder: nn.Module, width: int, edges: tuple[list[int], list[int]], pad: int) -> None:
        super().__init__()
        self.encoder, self._edges, self._pad = encoder, edges, pad
        self.head = nn.Sequential(nn.LayerNorm(2 * width), nn.Linear(2 * width, 1))

    def forward(self, documents: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return the logits of each document's units, from the ids of these units."""
        before, after = self._edges
        rows = [[*before, *(token for unit in units for token in unit), *after] for units in documents]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [self._pad] * (longest - len(row)) for row in rows])
        valid = torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]
        states = self.encoder(ids, attention_mask=valid.long()).last_hidden_state.float()
        return [
            self.head(unit_states(row[len(before) :], [*map(len, units)]))[:, 0]
            for row, units in zip(states, documents, strict=True)
        ]


def unit_states(states: Tensor, lengths: Sequence[int]) -> Tensor:
    """Return the mean and the last state of each unit (u 2d), from the states of their tokens, one after the other."""
    sizes = torch.tensor(lengths)
    owners = torch.repeat_interleave(torch.arange(len(lengths)), sizes)
    sums = states.new_zeros(len(lengths), states.shape[1]).index_add(0, owners, states[: len(owners)])
    return torch.cat([sums / sizes[:, None], states[sizes.cumsum(0) - 1]], dim=1)


def loss_of(logits: Tensor, document: Document) -> Tensor:
    """Return the cross-entropy of a document's units, their sum divided by the root of their number."""
    wanted = torch.tensor([float(place in document.best) for place in range(len(logits))])
    total: Tensor = binary_cross_entropy_with_logits(logits, wanted, reduction="sum")
    return total / len(logits) ** 0.5


def batches(documents: Sequence[Document], most: int, seed: int) -> Iterator[list[Document]]:
    """Yield batches of documents of similar lengths for ever, in another order in each pass."""
    sizes = [sum(map(len, each.ids(most))) for each in documents]
    groups = filled(sizes, BATCH)
    rng = np.random.default_rng(seed)
    while True:
        for place in rng.permutation(len(groups)):
            yield [documents[each] for each in groups[place]]


def open_extractor(start: Path, variant: Variant, seed: int) -> Extractor:
    """Return an extractor with the encoder of `start`, and a new head."""
    loaded = load_model(str(start), device="cpu")
    encoder = loaded.model.get_encoder()
    encoder.stack.plan = variant.plan(len(encoder.stack.layers))
    torch.manual_seed(seed)
    tokenizer = loaded.tokenizer
    return Extractor(encoder, loaded.model.config.hidden_size, around(tokenizer), int(tokenizer.pad_token_id))


def train(model: Extractor, documents: Sequence[Document], most: int, *, seed: int, seconds: float) -> Any:
    """Train for some processor time; the rate rises and falls with the share of it that is spent."""
    optimizer = build_optimizer(model, TrainSettings(steps=1, learning_rate=RATE, weight_decay=0.01))
    model.train()
    began = time.process_time()
    steps = tokens = 0
    for batch in batches(documents, most, seed):
        share = (time.process_time() - began) / seconds
        if share >= 1:
            break
        set_learning_rate(optimizer, RATE * min(share / WARMUP + 0.01, (1 - share) / (1 - WARMUP)))
        ids = [each.ids(most) for each in batch]
        with torch.autocast("cpu", torch.bfloat16, enabled=native_precision() == "bf16"):
            found = model(ids)
        pairs = zip(found, batch, strict=True)
        loss = torch.stack([loss_of(logits, each) for logits, each in pairs]).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps, tokens = steps + 1, tokens + sum(len(row) for rows in ids for row in rows)
    return {"steps": steps, "tokens": tokens, "seconds": time.process_time() - began}


def extract(document: Document, logits: Sequence[float], words: int) -> str:
    """Return the units of highest score that fit into the words, in the document's order; never a heading."""
    units = document.tokens.units
    order = [place for place in np.argsort([-logit for logit in logits]) if not units[place].heading]
    return fitting(units, order or [0], words)


@torch.inference_mode()
def score(model: Extractor, documents: Documents, most: int) -> dict[str, Any]:
    """Return the loss and ROUGE of each dev document, and the processor time of reading them."""
    model.eval()
    texts, losses, spent = [], [], 0.0
    for each in documents.dev:
        began = time.process_time()
        with torch.autocast("cpu", torch.bfloat16, enabled=native_precision() == "bf16"):
            (logits,) = model([each.ids(most)])
        spent += time.process_time() - began
        losses.append(round(float(loss_of(logits, each)), 4))
        texts.append(extract(each, logits.tolist(), documents.words[each.name]))
    return {**rouge_of(texts, documents), "losses": losses, "reading": spent}


def rouge_of(texts: Sequence[str], documents: Documents) -> dict[str, list[float]]:
    """Return ROUGE of a text for each dev document."""
    found = ROUGE.score(texts, [each.references for each in documents.dev])
    return {measure: [round(float(value), 3) for value in found[measure]] for measure in MEASURES}


def lead(documents: Documents) -> dict[str, list[float]]:
    """Return ROUGE of the first units that fit."""
    texts = [
        extract(each, [-float(place) for place in range(len(each.tokens.units))], documents.words[each.name])
        for each in documents.dev
    ]
    return rouge_of(texts, documents)


Found = Mapping[str, Mapping[int, Mapping[str, Any]]]
"""The results of the runs, by variant and seed."""


def tables(found: Found, first: Mapping[str, list[float]], sets: Sequence[str]) -> str:
    """Return a table of the scores, and one of the differences of fusion to each other variant."""
    rows = [["LEAD", "", "", *(f"{np.mean(first[measure]):.1f}" for measure in MEASURES), "", ""]]
    for name, runs in found.items():
        trained = [run["trained"] for run in runs.values()]
        steps, tokens = (
            round(float(np.mean([run[what] for run in trained]))) for what in ("steps", "tokens")
        )
        cells = [str(OVER_RUNS.runs_interval(_values(runs, measure))) for measure in MEASURES]
        loss = f"{_values(runs, 'losses').mean():.3f}"
        reading = f"{np.mean([run['reading'] for run in runs.values()]):.1f}"
        rows.append([name, f"{steps:,}", f"{tokens:,}", *cells, loss, reading])
    header = "variant | steps | tokens | " + " | ".join(MEASURES) + " | dev loss | seconds to read dev"
    return "\n".join([*markdown(header, rows), *markdown(_header(sets), difference_rows(found, first, sets))])


def _header(sets: Sequence[str]) -> str:
    return " | ".join(
        ["fusion 256 less", "seeds", *MEASURES, *(f"rouge1, {name}" for name in dict.fromkeys(sets))]
    )


def difference_rows(found: Found, first: Mapping[str, list[float]], sets: Sequence[str]) -> list[list[str]]:
    """Return the differences of fusion to the others, paired by seed and document, on all sets and on each."""
    rows = []
    ours = found.get(FUSION, {})
    for name, runs in {**found, "LEAD": dict.fromkeys(ours, first)}.items():
        common = [seed for seed in ours if seed in runs]
        if name == FUSION or not common:
            continue
        gaps = {
            measure: np.array(
                [np.array(ours[seed][measure]) - np.array(runs[seed][measure]) for seed in common]
            )
            for measure in MEASURES
        }
        cells = [_signed(gaps[measure]) for measure in MEASURES]
        own = [_signed(gaps["rouge1"][:, np.array(sets) == each]) for each in dict.fromkeys(sets)]
        rows.append([name, str(len(common)), *cells, *own])
    return rows


def _values(runs: Mapping[int, Mapping[str, Any]], what: str) -> np.ndarray:
    return np.array([run[what] for run in runs.values()])


def _signed(gaps: np.ndarray) -> str:
    found = OVER_RUNS.runs_interval(gaps)
    return f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def main() -> None:
    """Do the missing runs, seed by seed, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder with a folder for each set")
    parser.add_argument("--start", type=Path, required=True, help="the pre-trained model")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=120, help="processor time of each training")
    parser.add_argument("--documents", type=int, default=CAP, help="most documents of a set and split")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=[*VARIANTS][:4])
    asked = parser.parse_args()
    begin(1)
    tokenizer = load_model(str(asked.start), device="cpu").tokenizer
    asked.out.mkdir(parents=True, exist_ok=True)
    documents = read_sets(asked.data, tokenizer, asked.documents)
    for seed in asked.seeds:
        for name in asked.variants:
            place = asked.out / f"{name.replace(' ', '-')}-{seed}.json"
            if not place.exists():
                note(f"{name}, seed {seed}")
                variant = VARIANTS[name]
                model = open_extractor(asked.start, variant, seed)
                done = train(model, documents.train, variant.most, seed=seed, seconds=asked.seconds)
                write_file(place, json.dumps({"trained": done, **score(model, documents, variant.most)}))
    found = {
        name: {
            int(place.stem.rpartition("-")[2]): json.loads(place.read_text())
            for place in sorted(asked.out.glob(f"{name.replace(' ', '-')}-*.json"))
        }
        for name in VARIANTS
    }
    runs = {name: each for name, each in found.items() if each}
    print(tables(runs, lead(documents), [each.name for each in documents.dev]))


if __name__ == "__main__":
    main()
