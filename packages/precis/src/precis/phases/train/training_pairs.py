"""The training and validation pairs of a run: read, sampled at random, and tokenized."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.rows.hub import PREFIX
from precis.data.text.segments import UnitSegmenter
from precis.messages import Notify
from precis.phases.data.run_pairs import PairReader, PairSources, hold_out, percent, sample
from precis.phases.folder_check import SETTINGS_FILE
from precis.recipes.run_plan import RunPlan
from precis_text.bounded_io import read_json
from precis_text.control_characters import main_part
from precis_text.errors import UserError

_LOOKED_THROUGH = 200_000  # training pairs


@dataclass
class TrainingPairs:
    """Training pairs, streamed at each reading unless sampled, and validation pairs."""

    train: Iterable[Pair]
    dev: list[Pair]
    readers: list[PairReader]
    notes: list[str]
    skip_bad: bool

    def draw(self, examples: int, *, seed: int) -> None:
        """Keep `examples` of the training pairs, drawn at random.

        Raises:
            UserError: there are fewer.
        """
        self.train = sample(self.train, examples, seed=seed)
        self.notes.append(f"few-shot: {examples} training pairs drawn at random (seed {seed})")

    def tell_about(self, notify: Notify) -> None:
        """Log what was read."""
        for role, reader in zip(("train", "dev"), self.readers, strict=False):
            notify(f"{role}: {reader.told()}")
        for note in self.notes:
            notify(note)


def read_pairs_of(sources: PairSources, *, seed: int) -> TrainingPairs:
    """Open the sources; without a dev set, hold out a part of the training pairs, which `seed` determines.

    Raises:
        UserError: the sources cannot be read.
    """
    reader = PairReader(sources.train, skip_bad=sources.skip_bad)
    if sources.dev is not None:
        other = PairReader(sources.dev, skip_bad=sources.skip_bad)
        return TrainingPairs(reader, list(other), [reader, other], [], sources.skip_bad)
    train, dev = hold_out(reader, seed=seed)
    note = f"no dev set was given: {len(dev)} of the training pairs are held out for validation"
    return TrainingPairs(train, dev, [reader], [note], sources.skip_bad)


class ReadsPairs(Protocol):
    """A model that turns pairs into token ids; see `TrainableModel.ids_of`."""

    def ids_of(
        self,
        pairs: Iterable[Pair],
        plan: RunPlan,
        *,
        instruction: str = "",
        segmenter: UnitSegmenter | None = None,
        skip: Callable[[int, str], None] | None = None,
    ) -> TokenizedPairs: ...


def tokenize_pairs(
    plan: RunPlan,
    pairs: TrainingPairs,
    trainable: ReadsPairs,
    instruction: str,
    *,
    segmenter: UnitSegmenter | None = None,
    read: Callable[[Pair], Pair] = lambda pair: pair,
) -> tuple[TokenizedPairs, TokenizedPairs, int]:
    """Tokenize training and validation pairs, with segments if there is a segmenter.

    `read` maps every training pair and then every validation pair to the model's input. If bad pairs are skipped,
    those without ids are also removed from `pairs.dev`. The last value is the number of validation pairs with the
    document of a training pair.
    """

    def encode(rows: Iterable[Pair], reader: PairReader, skipped: set[int]) -> TokenizedPairs:
        def skip(index: int, message: str) -> None:
            reader.count_as_skipped(message)
            skipped.add(index)

        return trainable.ids_of(
            map(read, rows),
            plan,
            instruction=instruction,
            segmenter=segmenter,
            skip=skip if pairs.skip_bad else None,
        )

    leaks = Leaks(pairs.dev)
    train = encode(leaks.watch(pairs.train), pairs.readers[0], set())
    without_tokens: set[int] = set()
    dev = encode(pairs.dev, pairs.readers[-1], without_tokens)
    pairs.dev = [pair for index, pair in enumerate(pairs.dev) if index not in without_tokens]
    return train, dev, leaks.count


def tell_cut(rows: TokenizedPairs, plan: RunPlan, role: str, notify: Notify) -> None:
    """Report how many texts are longer than the model reads or writes, if any; `role` as in "dev documents"."""
    for what, cut, limit, option in (
        ("documents", rows.truncated_sources, plan.max_source, "--max-source"),
        ("summaries", rows.truncated_targets, plan.max_target, "--max-target"),
    ):
        if cut:
            where = f"{percent(cut, len(rows))} of the {role}{what} ({cut:,})"
            notify(f"{where} are longer than {limit} tokens and are truncated: raise {option}")


class Leaks:
    """A detector of validation documents among the training pairs: scores on them reward memorizing.

    White space does not matter. If a document has two parts, the second is compared.
    """

    def __init__(self, dev: Sequence[Pair]) -> None:
        self._dev = [_fingerprint(pair) for pair in dev]
        self._looked_for = set(self._dev)
        self._found: set[bytes] = set()

    def watch(self, train: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the training pairs unchanged."""
        for pair in train:
            if (print_of := _fingerprint(pair)) in self._looked_for:
                self._found.add(print_of)
            yield pair

    @property
    def count(self) -> int:
        """The number of validation pairs whose document was among the training pairs so far."""
        return sum(one in self._found for one in self._dev)


def _fingerprint(pair: Pair) -> bytes:
    return hashlib.blake2b(" ".join(main_part(pair.document).split()).encode(), digest_size=12).digest()


def count_trained_on(run: Path, pairs: Sequence[Pair]) -> int:
    """Count the pairs whose document is in the training files that a run records, as far as these can still be read.

    At most `_LOOKED_THROUGH` pairs of each file are read; the hub is not asked.
    """
    try:
        record = read_json(run / SETTINGS_FILE)
        sources = [record["sources"]] if "sources" in record else [each["sources"] for each in record["sets"]]
        parts = [PairSources.from_dict(each).train for each in sources]
        leaks = Leaks(pairs)
        for part in parts:
            if PREFIX not in part.source:
                deque(leaks.watch(part.read(skip_bad=True, limit=_LOOKED_THROUGH)), maxlen=0)
    except (OSError, UserError, KeyError, TypeError, ValueError):
        return 0
    return leaks.count
