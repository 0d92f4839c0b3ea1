"""The rules of `TokenRules` where only the device knows how many tokens are written.

What differs from batch to batch without changing the operators (the limits of length) is kept in memory of the device;
everything else is part of `signature`: rules of one signature apply the same operators to the same constants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Protocol, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import LogitsProcessor

from precis.generation.lean.ngram_blocking import block_repeated_ngrams_at
from precis.generation.lean.rules import TokenRules


class PlacedRule(ABC):
    """A rule of a caller's own, written for the device: one that never asks it for a number."""

    @abstractmethod
    def signature(self) -> Hashable:
        """Equal for rules that do the same."""

    @abstractmethod
    def placed(self, device: torch.device) -> Placed:
        """What it does on this device; constants are made here and not at each step."""


class Placed(Protocol):
    """Scores under the rule; `written` has room for more tokens, the last one is at `place`."""

    def __call__(
        self, written: Int[Tensor, "b t"], place: Int[Tensor, " 1"], scores: Float[Tensor, "b v"]
    ) -> Float[Tensor, "b v"]: ...


def placed_rules(processors: Sequence[LogitsProcessor]) -> list[PlacedRule] | None:
    """The processors as rules for the device; None where one of them is none."""
    rules = [process for process in processors if isinstance(process, PlacedRule)]
    return rules if len(rules) == len(processors) else None


def signature(rules: TokenRules) -> Hashable:
    """What the operators of a step depend on. Reads from the device."""
    own = [process.signature() for process in placed_rules(rules.processors) or ()]
    listed = (rules.end_marks, rules.never, rules.never_first)
    ids = tuple(tuple(tensor.tolist()) for tensor in listed)
    return (ids, rules.no_repeat_ngram, rules.forced_first, rules.forced_last, tuple(own))


@final
class StaticRules:
    """Rules of one signature, for batches of any limits of length.

    Args:
        rules: ones whose processors are all `PlacedRule`s.
        place: of the last token that was written; 0 is the start token's.
    """

    def __init__(self, rules: TokenRules, *, place: Int[Tensor, " 1"]) -> None:
        self._rules, self._place = rules, place
        self._min_tokens, self.max_tokens = torch.zeros_like(place), torch.ones_like(place)
        self._own = [rule.placed(place.device) for rule in placed_rules(rules.processors) or ()]

    @property
    def marks(self) -> int:
        """How many end marks there are."""
        return len(self._rules.end_marks)

    def restart(self, rules: TokenRules) -> None:
        """Take over the limits of other rules of the same signature."""
        self._min_tokens.fill_(rules.min_tokens)
        self.max_tokens.fill_(rules.max_tokens)

    def apply(self, written: Int[Tensor, "b t"], scores: Float[Tensor, "b v"]) -> Float[Tensor, "b v"]:
        """Scores of the next token, changed in place; `written` has room for tokens after `place`."""
        rules, place = self._rules, self._place
        if rules.no_repeat_ngram:
            block_repeated_ngrams_at(scores, written, place, size=rules.no_repeat_ngram)
        _forbid(scores, rules.end_marks, place < self._min_tokens)
        if rules.forced_first is not None:
            _force(scores, (rules.forced_first,), place == 0)
        if rules.forced_last:
            _force(scores, rules.forced_last, place == self.max_tokens - 1)
        if len(rules.never):
            scores.index_fill_(1, rules.never, -torch.inf)
        _forbid(scores, rules.never_first, place == (0 if rules.forced_first is None else 1))
        for rule in self._own:
            scores = rule(written, place, scores)
        return scores

    def ends(self, tokens: Int[Tensor, "*b"]) -> Bool[Tensor, "*b"]:
        """Whether these tokens, chosen now, are the last of their rows."""
        return (tokens[..., None] == self._rules.end_marks).any(-1) | (self._place + 1 >= self.max_tokens)


def _forbid(scores: Float[Tensor, "b v"], ids: Int[Tensor, " n"], where: Bool[Tensor, " 1"]) -> None:
    if len(ids):
        scores.index_copy_(1, ids, scores.index_select(1, ids).masked_fill_(where, -torch.inf))


def _force(scores: Float[Tensor, "b v"], ids: Sequence[int], where: Bool[Tensor, " 1"]) -> None:
    scores.masked_fill_(where, -torch.inf)
    for token in ids:
        scores.select(1, token).masked_fill_(where, 0.0)
