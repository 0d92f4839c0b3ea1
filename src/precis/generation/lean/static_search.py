"""Greedy and beam search in memory of a fixed shape: a step asks the device for nothing and is always the same.

The searches are those of `lean_greedy` and `lean_beams`. Rows that are over stay in the batch; what they wrote is kept
from the step at which they were.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from precis.generation.lean.beams import (
    BeamSettings,
    Candidates,
    Search,
    begin,
    best_of,
    go_on,
    is_over,
    with_finished,
)
from precis.generation.lean.rules import TokenRules
from precis.generation.lean.static_rules import StaticRules
from precis.generation.lean.steps import Step
from precis.generation.lean.top import highest


@final
@dataclass(frozen=True)
class Outcome:
    """What the documents wrote, the start token first.

    Attributes:
        lengths: tokens of each row, the start token included.
        over: the row is final.
    """

    tokens: Int[Tensor, "b t"]
    lengths: Int[Tensor, " b"]
    over: Bool[Tensor, " b"]

    @classmethod
    def nothing(cls, documents: int, room: int, device: torch.device) -> Outcome:
        """Memory for so many documents and tokens."""
        return cls(
            torch.zeros(documents, room, dtype=torch.long, device=device),
            torch.ones(documents, dtype=torch.long, device=device),
            torch.zeros(documents, dtype=torch.bool, device=device),
        )

    def restart(self, documents: int) -> None:
        """The first `documents` rows are to be written, the others are there to fill the batch."""
        self.over.fill_(True)
        self.over[:documents] = False

    def rows(self, documents: int) -> list[list[int]]:
        """The first `documents` rows. Reads from the device."""
        lengths = self.lengths[:documents].tolist()
        rows = self.tokens[:documents].tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]


class StaticSearch(ABC):
    """A search whose state is tensors that stay where they are.

    Attributes:
        outcome: what is written, and by whom no more.
    """

    outcome: Outcome

    @abstractmethod
    def restart(self, rules: TokenRules, *, documents: int) -> None:
        """Begin with the first `documents` rows."""

    @abstractmethod
    def __call__(self) -> None:
        """One step of all rows."""


@final
class StaticGreedy(StaticSearch):
    """Each row's best token.

    Args:
        place: of the token that a step reads; moved on by each step.
        room: tokens that may be written.
    """

    def __init__(
        self, step: Step, rules: StaticRules, *, place: Int[Tensor, " 1"], documents: int, room: int
    ) -> None:
        self._step, self._rules, self._place = step, rules, place
        self.outcome = Outcome.nothing(documents, room + 1, place.device)

    def restart(self, rules: TokenRules, *, documents: int) -> None:
        self._place.zero_()
        self._rules.restart(rules)
        self.outcome.tokens.fill_(rules.start)
        self.outcome.restart(documents)

    def __call__(self) -> None:
        written, over, place = self.outcome.tokens, self.outcome.over, self._place
        logits = self._step(written.index_select(1, place), None).squeeze(1)
        tokens = highest(self._rules.apply(written, logits), 1)[1]  # (b 1)
        after = place + 1
        written.index_copy_(1, after, tokens)
        lengths = torch.where(over, self.outcome.lengths, after + 1)
        self.outcome.lengths.copy_(lengths)
        over.logical_or_(self._rules.ends(tokens.squeeze(1)))
        place.copy_(after)


@final
class StaticBeams(StaticSearch):
    """Beam search.

    Args:
        place: of the tokens that a step reads; moved on by each step.
        room: tokens that may be written.
    """

    def __init__(
        self,
        step: Step,
        rules: StaticRules,
        settings: BeamSettings,
        *,
        place: Int[Tensor, " 1"],
        documents: int,
        room: int,
    ) -> None:
        self._step, self._rules, self._settings, self._place = step, rules, settings, place
        self.outcome = Outcome.nothing(documents, room + 1, place.device)
        self._search = self._begin(0)

    def restart(self, rules: TokenRules, *, documents: int) -> None:
        self._place.zero_()
        self._rules.restart(rules)
        _take_over(self._search, self._begin(rules.start))
        self.outcome.restart(documents)

    def _begin(self, start: int) -> Search:
        documents, room = self.outcome.tokens.shape
        search = begin(start, self._settings, documents=documents, room=room, device=self._place.device)
        itself = torch.arange(self._settings.beams, device=self._place.device)
        # memory of their own for what shares it at first
        return replace(
            search,
            parents=itself.repeat(documents, 1),
            finished=replace(
                search.finished, tokens=search.running.clone(), scores=search.finished.scores.clone()
            ),
        )

    def __call__(self) -> None:
        search, settings, rules = self._search, self._settings, self._rules
        candidates = self._candidates()
        finished = with_finished(search, candidates, settings)
        after = go_on(search, candidates, finished, settings, max_tokens=rules.max_tokens)
        over = is_over(after, candidates, settings)
        outcome = self.outcome
        kept = torch.where(outcome.over[:, None], outcome.tokens, finished.tokens[:, 0])
        lengths = torch.where(outcome.over, outcome.lengths, finished.lengths[:, 0])
        outcome.tokens.copy_(kept)
        outcome.lengths.copy_(lengths)
        outcome.over.logical_or_(over)
        _take_over(search, after)
        self._place.add_(1)

    def _candidates(self) -> Candidates:
        search, place, rules = self._search, self._place, self._rules
        logits = self._step(search.running.index_select(2, place).squeeze(2), search.parents)
        log_probs = F.log_softmax(logits.flatten(0, 1), dim=-1)
        log_probs = rules.apply(search.running.flatten(0, 1), log_probs)
        best = best_of(log_probs, search.scores, marks=rules.marks)
        new = place + 1
        tokens = search.running.take_along_dim(best.parents[..., None], dim=1)
        tokens = tokens.index_copy(2, new, best.tokens[..., None])
        return Candidates(tokens, best.scores, best.parents, rules.ends(best.tokens), new)


def _take_over(search: Search, other: Search) -> None:
    """Write the state of `other` into the memory of `search`."""
    for mine, its in zip(_tensors(search), _tensors(other), strict=True):
        mine.copy_(its)


def _tensors(search: Search) -> list[Tensor]:
    finished = search.finished
    assert search.parents is not None
    return [
        search.running,
        search.scores,
        search.parents,
        search.open,
        finished.tokens,
        finished.scores,
        finished.lengths,
        finished.full,
    ]
