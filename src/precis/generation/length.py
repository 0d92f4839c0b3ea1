"""Summaries of a wished length: a window of tokens while decoding, whole sentences afterwards.

A model cannot count words, so the wish is met from two sides: the end mark is held back until the summary is
long enough, and sentences too many are dropped at the end. A sentence is never cut; where that would be
needed (the model did not finish it, or the first alone is too long) the summary says so instead.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor
from transformers import LogitsProcessor, PreTrainedTokenizerBase

from precis.config import Settings
from precis.data.sentence_mark import sentence_mark
from precis.data.sentences import split_sentences
from precis.data.tasks import GenerationSettings
from precis.errors import UserError
from precis.generation.lean_static_rules import Placed, PlacedRule

_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", "।", "؟", "…")
# Steps, so that documents can share a batch without changing it.
_RATIOS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)


@final
@dataclass(frozen=True, kw_only=True)
class Words(Settings):
    """At most this many words in whole sentences, and not less than about six tenths of them."""

    count: int

    def __post_init__(self) -> None:
        _at_least_one(self.count, "words")


@final
@dataclass(frozen=True, kw_only=True)
class Sentences(Settings):
    """This many sentences."""

    count: int

    def __post_init__(self) -> None:
        _at_least_one(self.count, "sentences")


Goal = Words | Sentences | None


def make_goal(words: int | None, sentences: int | None) -> Goal:
    """The wish as a value.

    Raises:
        UserError: both are given, or one is below 1.
    """
    if words is not None and sentences is not None:
        raise UserError(f"give either words or sentences, not words={words} and sentences={sentences}")
    if words is not None:
        return Words(count=words)
    return Sentences(count=sentences) if sentences is not None else None


def tokens_per_word(tokens: int, text: str) -> float:
    """How many tokens a (white-space) word of this document takes, in coarse steps between 1 and 4."""
    ratio = tokens / max(1, len(text.split()))
    return next((step for step in _RATIOS if ratio <= step), _RATIOS[-1])


def decoding_window(settings: GenerationSettings, goal: Goal, *, ratio: float) -> GenerationSettings:
    """The settings with a goal's limits in tokens; there is room to finish the last sentence."""
    if isinstance(goal, Words):
        return replace(
            settings,
            min_tokens=math.floor(0.6 * goal.count * ratio),
            max_tokens=math.ceil(1.6 * goal.count * ratio) + 16,
        )
    if isinstance(goal, Sentences):
        return replace(settings, min_tokens=0, max_tokens=max(settings.max_tokens, 80 * goal.count))
    return settings


@dataclass(frozen=True)
class Trimmed:
    """A text after trimming; `finished`: it ends where a sentence ends or where the model ended it."""

    text: str
    finished: bool


def trim(text: str, goal: Goal, *, ended: bool) -> Trimmed:
    """Drop sentences from the end: an unfinished last one if a goal was set, then those beyond the goal.

    Args:
        ended: the model wrote its end mark, so that the last sentence is whole.
    """
    if goal is None:
        return Trimmed(text, ended or text.rstrip().endswith(_SENTENCE_ENDS))
    sentences = split_sentences(text)
    finished = ended or text.rstrip().endswith(_SENTENCE_ENDS)
    if not finished and len(sentences) > 1:
        sentences, finished = sentences[:-1], True
    kept = len(sentences)
    if isinstance(goal, Sentences):
        kept = min(kept, goal.count)
    else:
        while kept > 1 and sum(len(s.split()) for s in sentences[:kept]) > goal.count:
            kept -= 1
    return Trimmed(_beginning(text, sentences[:kept]), finished or kept < len(sentences))


def _beginning(text: str, sentences: list[str]) -> str:
    """As much of `text` as holds these sentences, its line breaks kept."""
    left = sum(not character.isspace() for sentence in sentences for character in sentence)
    for position, character in enumerate(text):
        if left == 0:
            return text[:position].rstrip()
        left -= not character.isspace()
    return text.rstrip()


def sentence_end_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Ids of the tokens that end a sentence: stops, alone or with closing marks."""
    stops, closers = set(_SENTENCE_ENDS), set("\"'”’»)")
    texts = {int(index): set(token.lstrip("▁Ġ")) for token, index in tokenizer.get_vocab().items()}
    return frozenset(index for index, text in texts.items() if text & stops and text <= stops | closers)


def line_end_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Ids of the tokens that are line breaks: in our tokenizers, byte-level ones, SentencePiece and ProphetNet's."""
    vocabulary, mark = tokenizer.get_vocab(), sentence_mark(tokenizer)
    breaks = {int(vocabulary[name]) for name in ("\n", "Ċ", "<0x0A>") if name in vocabulary}
    return frozenset(breaks if mark is None else breaks | {mark})


@final
class SentenceFloor(LogitsProcessor, PlacedRule):
    """Holds the end marks back until a row has as many sentence ends as were asked for.

    Not at the last token that there is room for: a configuration may force an end mark there (BART's does), and with it
    forbidden nothing could be written.
    """

    def __init__(
        self, count: int, *, ends: frozenset[int], end_marks: Sequence[int], max_tokens: int
    ) -> None:
        self._count, self._end_marks, self._max_tokens = count, list(end_marks), max_tokens
        self._ends = torch.tensor(sorted(ends), dtype=torch.long)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """(b t) ids so far, the start token first, and (b v) scores; rows with too few sentences cannot end."""
        if input_ids.shape[1] >= self._max_tokens:
            return scores
        seen = torch.isin(input_ids, self._ends.to(input_ids.device)).sum(-1)  # (b)
        scores = scores.clone()
        scores[:, self._end_marks] = scores[:, self._end_marks].masked_fill(
            (seen < self._count)[:, None], -torch.inf
        )
        return scores

    def signature(self) -> Hashable:
        return (self._count, self._max_tokens, tuple(self._end_marks), tuple(self._ends.tolist()))

    def placed(self, device: torch.device) -> Placed:
        ends, marks = self._ends.to(device), torch.tensor(self._end_marks, dtype=torch.long, device=device)

        def hold(written: Tensor, place: Tensor, scores: Tensor) -> Tensor:
            """As `__call__`, for rows whose tokens after `place` do not count."""
            real = torch.arange(written.shape[1], device=device) <= place
            seen = ((written[..., None] == ends).any(-1) & real).sum(-1)  # (b)
            short = (seen < self._count) & (place + 1 < self._max_tokens)
            held = scores.index_select(1, marks).masked_fill_(short[:, None], -torch.inf)
            return scores.index_copy(1, marks, held)

        return hold


def _at_least_one(count: int, unit: str) -> None:
    if count < 1:
        raise UserError(f"a summary of {count} {unit} is empty; use 1 or more")
