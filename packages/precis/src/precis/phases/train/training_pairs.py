"""The training and validation pairs of a run: read, sampled at random, and tokenized."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.text.segments import UnitSegmenter
from precis.messages import Notify
from precis.phases.data.run_pairs import Leaks, PairReader, PairSources, hold_out, percent, sample
from precis.recipes.run_plan import RunPlan
from precis_text.row import pluralize


@dataclass
class TrainingPairs:
    """Training pairs, streamed at each reading unless sampled, and validation pairs."""

    train: Iterable[Pair]
    dev: list[Pair]
    readers: list[PairReader]
    notes: list[str]
    skip_bad: bool

    def draw(self, examples: int, *, seed: int) -> None:
        """Keep `examples` of the training pairs, drawn at random; raise `UserError` if there are fewer."""
        self.train = sample(self.train, examples, seed=seed)
        self.notes.append(f"few-shot: {pluralize(examples, 'training pair')} drawn at random (seed {seed})")

    def tell_about(self, notify: Notify) -> None:
        """Log what was read."""
        for role, reader in zip(("train", "dev"), self.readers, strict=False):
            notify(f"{role}: {reader.describe_rows()}")
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
    note = f"no dev set was given: {pluralize(len(dev), 'training pair')} held out for validation"
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
