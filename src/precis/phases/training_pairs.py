"""The pairs that a run trains on and is validated on: read, drawn, and turned into token ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from precis.data.batches.bucketed import TokenizedPairs
from precis.data.batches.tokenized import Segmenter
from precis.data.pairs.sources import Pair
from precis.errors import UserError
from precis.phases.leaks import Leaks
from precis.phases.pair_training import tell_cut
from precis.phases.sources import PairReader, PairSources, hold_out, sample
from precis.phases.trainable import TrainableModel
from precis.recipes.runs import RunPlan
from precis.telling import Tell


@dataclass(frozen=True)
class Drawn:
    """How many training pairs are drawn at random, None for all, and by which seed."""

    examples: int | None
    seed: int

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UserError(f"--sampling-seed {self.seed}: use 0 or more")


@dataclass
class TrainingPairs:
    """Training pairs, streamed at each reading unless some are drawn, and validation pairs."""

    train: Iterable[Pair]
    dev: list[Pair]
    readers: list[PairReader]
    notes: list[str]
    skip_bad: bool


def read_pairs_of(sources: PairSources, drawn: Drawn, *, seed: int) -> TrainingPairs:
    """Open the sources; without a dev set a part of the training pairs is held out.

    Raises:
        UserError: they cannot be read, or there are fewer pairs than are to be drawn.
    """
    reader = PairReader(sources.train, skip_bad=sources.skip_bad)
    train_pairs: Iterable[Pair] = reader
    notes = []
    if sources.dev is None:
        train_pairs, dev = hold_out(reader, seed=seed)
        readers = [reader]
        notes.append(f"no dev set was given: {len(dev)} of the training pairs are held out for validation")
    else:
        dev_reader = PairReader(sources.dev, skip_bad=sources.skip_bad)
        dev = list(dev_reader)
        readers = [reader, dev_reader]
    if drawn.examples is not None:
        train_pairs = sample(train_pairs, drawn.examples, seed=drawn.seed)
        notes.append(f"few-shot: {drawn.examples} training pairs drawn at random (seed {drawn.seed})")
    return TrainingPairs(train=train_pairs, dev=dev, readers=readers, notes=notes, skip_bad=sources.skip_bad)


@dataclass(frozen=True)
class TrainingIds:
    """The same as token ids; `shared` validation pairs have the document of a training pair."""

    train: TokenizedPairs
    dev: TokenizedPairs
    shared: int = 0


def tokenize_pairs(
    run: RunPlan,
    pairs: TrainingPairs,
    trainable: TrainableModel,
    instruction: str,
    *,
    segmenter: Segmenter | None = None,
) -> TrainingIds:
    """Token ids, and segments where they are asked for; pairs that give no ids are left out of `pairs.dev` too where
    bad ones are skipped.
    """

    def encode(rows: Iterable[Pair], reader: PairReader, skipped: set[int]) -> TokenizedPairs:
        def skip(index: int, message: str) -> None:
            reader.count_as_skipped(message)
            skipped.add(index)

        return TokenizedPairs.from_pairs(
            rows,
            trainable.tokenizer,
            max_source=run.max_source,
            max_target=run.max_target,
            decoder_start_token_id=trainable.decoder_start,
            instruction=instruction,
            segmenter=segmenter,
            skip=skip if pairs.skip_bad else None,
        )

    leaks = Leaks(pairs.dev)
    train = encode(leaks.watch(pairs.train), pairs.readers[0], set())
    without_tokens: set[int] = set()
    dev = encode(pairs.dev, pairs.readers[-1], without_tokens)
    pairs.dev = [pair for index, pair in enumerate(pairs.dev) if index not in without_tokens]
    return TrainingIds(train, dev, leaks.count)


def tell_data(run: RunPlan, pairs: TrainingPairs, data: TrainingIds, tell: Tell) -> None:
    """Say what was read, and how many texts are cut."""
    for role, reader in zip(("train", "dev"), pairs.readers, strict=False):
        tell(f"{role}: {reader.told()}")
    for note in pairs.notes:
        tell(note)
    tell_cut(data.train, run, "", tell)
    tell_cut(data.dev, run, "dev ", tell)
