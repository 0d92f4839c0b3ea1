"""Greedy and beam search with transformers' rules, so that the same summaries win, and less work per step.

It keeps every part of transformers' beam search (`GenerationMixin._beam_search`) that affects the result: (1 + end
marks) * k candidates per step, finished ones scored by log probability / length^penalty, the heuristics of early
stopping, and the order of additions in fp32. It differs in the rest: candidates come from each beam's best tokens
instead of all k * v, and beams are indexed instead of copied.

A search keeps its state in tensors at fixed addresses, and a step never waits for the device. A step can therefore be
one CUDA graph. Finished rows do not change. Without replay (`loop.write`), finished documents leave the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Literal, Protocol, TypeVar, final, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from precis.generation.fast.token_rules import Place, TokenRules
from precis_text.config import Settings

_OUT = -1e9  # transformers' score for excluded candidates
_BLOCK = 128


@runtime_checkable
class DecodingStep(Protocol):
    """A step that reads one more token of each beam and returns the next logits in fp32, in memory the caller owns."""

    def __call__(
        self, tokens: Int[Tensor, "b k"], parents: Int[Tensor, "b k"] | None
    ) -> Float[Tensor, "b k v"]:
        """Read tokens; `parents` are the beams of the last step that each beam continues, None for itself."""


@final
@dataclass(frozen=True, kw_only=True)
class BeamSettings(Settings):
    """Settings of beam search; `early_stopping` as in transformers: True, False or "never"."""

    beams: int
    length_penalty: float
    early_stopping: bool | Literal["never"]


@final
@dataclass(frozen=True)
class Outcome:
    """The tokens of each document, the start token first.

    Attributes:
        lengths: tokens of each row, the start token included.
        over: True for finished rows.
    """

    tokens: Int[Tensor, "b t"]
    lengths: Int[Tensor, " b"]
    over: Bool[Tensor, " b"]

    def rows(self, documents: int) -> list[list[int]]:
        """Return the first `documents` rows. It synchronizes with the device."""
        lengths = self.lengths[:documents].tolist()
        rows = self.tokens[:documents].tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]


class Search(ABC):
    """The search of one batch; a call is one step of all rows.

    Args:
        step: reads the tokens.
        rules: restrict the tokens.
        place: position of the token that a step reads, as a number or in device memory; each step increments it.
        room: maximum number of new tokens.

    Attributes:
        outcome: the written tokens, and the finished rows.
    """

    def __init__(
        self, step: DecodingStep, rules: TokenRules, *, place: Place, documents: int, room: int
    ) -> None:
        device = rules.end_marks.device
        self._step, self._rules, self._place = step, rules, place
        self.outcome = Outcome(
            torch.full((documents, room + 1), rules.start, device=device),
            torch.ones(documents, dtype=torch.long, device=device),
            torch.zeros(documents, dtype=torch.bool, device=device),
        )

    @abstractmethod
    def __call__(self) -> None:
        """Run one step of all rows."""

    def restart(self, rules: TokenRules, *, documents: int) -> None:
        """Restart in the same memory, with the first `documents` rows; the others are padding.

        Args:
            rules: rules with the same signature, whose length limits it copies.
        """
        assert isinstance(self._place, Tensor)
        self._place.zero_()
        self._rules.take_limits(rules)
        self.outcome.tokens.fill_(rules.start)
        self.outcome.over.fill_(True)
        self.outcome.over[:documents] = False

    def keep(self, documents: Int[Tensor, " b"]) -> None:
        """Keep only these rows."""
        self.outcome = _chosen(self.outcome, documents)

    def _advance(self) -> None:
        if isinstance(self._place, int):
            self._place += 1
        else:
            self._place.add_(1)


@final
class GreedySearch(Search):
    """Greedy search: each row's best token at each step."""

    def __call__(self) -> None:
        written, over = self.outcome.tokens, self.outcome.over
        logits = self._step(_at(written, self._place), None).squeeze(1)
        tokens = highest(self._rules.apply(written, self._place, logits), 1)[1]  # (b 1)
        self._advance()
        _put(written, self._place, tokens)
        self.outcome.lengths.copy_(torch.where(over, self.outcome.lengths, self._place + 1))
        over.logical_or_(self._rules.ends(tokens.squeeze(1), self._place))


@dataclass(frozen=True)
class Candidates:
    """The best continuations of the running beams, descending; c = (1 + end marks) * k for each document.

    Attributes:
        tokens: all tokens of each.
        parents: the beams that they continue.
        ends: True if their last token ends a summary.
        new: number of tokens after the start token.
    """

    tokens: Int[Tensor, "b c t"]
    scores: Float[Tensor, "b c"]
    parents: Int[Tensor, "b c"]
    ends: Bool[Tensor, "b c"]
    new: Place


@dataclass(frozen=True)
class Beams:
    """The state of a beam search.

    Attributes:
        running, scores, parents: the running beams, descending, and the beams that they continue.
        open: True if a running beam may still become better than a finished one.
        finished, finished_scores, lengths: the best finished summaries so far, descending.
        full: True for the slots of `finished` in use.
    """

    running: Int[Tensor, "b k t"]
    scores: Float[Tensor, "b k"]
    parents: Int[Tensor, "b k"]
    open: Bool[Tensor, "b 1"]
    finished: Int[Tensor, "b k t"]
    finished_scores: Float[Tensor, "b k"]
    lengths: Int[Tensor, "b k"]
    full: Bool[Tensor, "b k"]


@final
class BeamSearch(Search):
    """Beam search: the k best beams of each document; see `Search` for the arguments."""

    def __init__(
        self,
        step: DecodingStep,
        rules: TokenRules,
        settings: BeamSettings,
        *,
        place: Place,
        documents: int,
        room: int,
    ) -> None:
        super().__init__(step, rules, place=place, documents=documents, room=room)
        self._settings = settings
        self._beams = self._begin(rules.start)

    def restart(self, rules: TokenRules, *, documents: int) -> None:
        super().restart(rules, documents=documents)
        _take_over(self._beams, self._begin(rules.start))

    def keep(self, documents: Int[Tensor, " b"]) -> None:
        super().keep(documents)
        self._beams = _chosen(self._beams, documents)

    def __call__(self) -> None:
        candidates, settings = self._candidates(), self._settings
        after = _with_finished(self._beams, candidates, settings)
        after = _go_on(after, candidates, settings, max_tokens=self._rules.max_tokens)
        outcome, over = self.outcome, _is_over(after, candidates, settings)
        tokens = torch.where(outcome.over[:, None], outcome.tokens, after.finished[:, 0])
        lengths = torch.where(outcome.over, outcome.lengths, after.lengths[:, 0])
        outcome.tokens.copy_(tokens)
        outcome.lengths.copy_(lengths)
        outcome.over.logical_or_(over)
        _take_over(self._beams, after)
        self._advance()

    def _begin(self, start: int) -> Beams:
        (documents, room), beams = self.outcome.tokens.shape, self._settings.beams
        device = self.outcome.tokens.device
        running = torch.full((documents, beams, room), start, device=device)
        out = torch.full((documents, beams), _OUT, device=device)
        first = out.clone()
        first[:, 0] = 0.0  # all beams are equal at first, so only one may continue
        return Beams(
            running=running, scores=first, parents=torch.arange(beams, device=device).repeat(documents, 1),
            open=torch.ones(documents, 1, dtype=torch.bool, device=device), finished=running.clone(),
            finished_scores=out, lengths=torch.ones(documents, beams, dtype=torch.long, device=device),
            full=torch.zeros(documents, beams, dtype=torch.bool, device=device),
        )  # fmt: skip

    def _candidates(self) -> Candidates:
        beams, place, rules = self._beams, self._place, self._rules
        logits = self._step(_at(beams.running, place).squeeze(2), beams.parents)
        log_probs = log_softmax_(logits.flatten(0, 1))
        log_probs = rules.apply(beams.running.flatten(0, 1), place, log_probs)
        best, scores, parents = _best_of(log_probs, beams.scores, marks=len(rules.end_marks))
        tokens, new = beams.running.take_along_dim(parents[..., None], dim=1), place + 1
        _put(tokens, new, best[..., None])
        return Candidates(tokens, scores, parents, rules.ends(best, new), new)


def search_of(
    settings: BeamSettings | None,
    step: DecodingStep,
    rules: TokenRules,
    *,
    place: Place,
    documents: int,
    room: int,
) -> Search:
    """Return the search for these settings; greedy if None. See `Search` for the arguments."""
    if settings is None:
        return GreedySearch(step, rules, place=place, documents=documents, room=room)
    return BeamSearch(step, rules, settings, place=place, documents=documents, room=room)


def _best_of(
    log_probs: Float[Tensor, "r v"], scores: Float[Tensor, "b k"], *, marks: int
) -> tuple[Int[Tensor, "b c"], Float[Tensor, "b c"], Int[Tensor, "b c"]]:
    """Return the last tokens, scores and parents of the best continuations.

    Args:
        log_probs: log probabilities of the r = b*k beams.
        scores: scores of the beams so far.
        marks: number of end marks.
    """
    beams = scores.shape[1]
    count = max(2, 1 + marks) * beams
    # a document's best are among the best of each of its beams
    values, ids = highest(log_probs, min(count, log_probs.shape[-1]))  # (b*k c)
    each = values.shape[-1]
    totals = (values.unflatten(0, (-1, beams)) + scores[..., None]).flatten(1)  # (b k*c)
    best, places = totals.topk(count)
    return ids.view(-1, beams * each).gather(1, places), best, places // each


def _with_finished(before: Beams, candidates: Candidates, settings: BeamSettings) -> Beams:
    """Merge candidates that end now into the finished ones; only those among the best k, as in transformers."""
    beams = settings.beams
    ending = candidates.ends.clone()
    ending[:, beams:] = False
    scores = _by_length(candidates.scores, candidates.new, settings)
    if settings.early_stopping is True:
        scores = scores + before.full.all(-1, keepdim=True).float() * _OUT
    scores = scores + (~before.open).float() * _OUT
    scores = scores + (~ending).float() * _OUT
    merged, places = torch.cat([before.finished_scores, scores], dim=1).topk(beams)
    length = torch.ones_like(candidates.parents) + candidates.new  # with the start token
    all_tokens = torch.cat([before.finished, candidates.tokens], dim=1)
    return replace(
        before,
        finished=all_tokens.take_along_dim(places[..., None], dim=1),
        finished_scores=merged,
        lengths=torch.cat([before.lengths, length], dim=1).gather(1, places),
        full=torch.cat([before.full, ending], dim=1).gather(1, places),
    )


def _go_on(before: Beams, candidates: Candidates, settings: BeamSettings, *, max_tokens: Place) -> Beams:
    """Make the best candidates that do not end the running beams."""
    scores = candidates.scores + candidates.ends.float() * _OUT
    places = scores.topk(settings.beams).indices
    scores = scores.gather(1, places)
    longest = settings.early_stopping == "never" and settings.length_penalty > 0.0
    best_possible = _by_length(scores[:, :1], max_tokens if longest else candidates.new, settings)
    least = before.finished_scores.amin(1, keepdim=True).expand_as(before.finished_scores)
    worst = least.masked_fill(~before.full, _OUT)
    return replace(
        before,
        running=candidates.tokens.take_along_dim(places[..., None], dim=1),
        scores=scores,
        parents=candidates.parents.gather(1, places),
        open=before.open & (best_possible > worst).any(-1, keepdim=True),
    )


def _is_over(beams: Beams, candidates: Candidates, settings: BeamSettings) -> Bool[Tensor, " b"]:
    """Return whether no beam can improve, enough have finished, or none continues."""
    over = ~beams.open.squeeze(1) | candidates.ends.all(-1)
    if settings.early_stopping is True:
        over = over | beams.full.all(-1)
    return over


def _by_length(scores: Float[Tensor, "b c"], new: Place, settings: BeamSettings) -> Float[Tensor, "b c"]:
    """Return log probability / length^penalty for `new` tokens, with the power in double precision everywhere."""
    if isinstance(new, int):
        return scores / new**settings.length_penalty
    return scores / (new.double() ** settings.length_penalty).to(scores.dtype)


State = TypeVar("State", Outcome, Beams)


def _take_over(mine: Beams, other: Beams) -> None:
    """Copy the state of `other` into the memory of `mine`."""
    for field in fields(mine):
        getattr(mine, field.name).copy_(getattr(other, field.name))


def _chosen(state: State, documents: Int[Tensor, " b"]) -> State:
    """Select the rows of these documents."""
    return replace(state, **{field.name: getattr(state, field.name)[documents] for field in fields(state)})


def _at(written: Int[Tensor, "*b t"], place: Place) -> Int[Tensor, "*b 1"]:
    return written[..., place : place + 1] if isinstance(place, int) else written.index_select(-1, place)


def _put(written: Int[Tensor, "*b t"], place: Place, tokens: Int[Tensor, "*b 1"]) -> None:
    if isinstance(place, int):
        written[..., place : place + 1] = tokens
    else:
        written.index_copy_(-1, place, tokens)


def log_softmax_(logits: Float[Tensor, "r v"]) -> Float[Tensor, "r v"]:
    """Compute log probabilities in place, on a CPU in one thread: the end of a parallel region costs more."""
    if logits.device.type != "cpu":
        return F.log_softmax(logits, dim=-1)
    for row in logits:
        torch.log_softmax(row, dim=-1, out=row)
    return logits


def highest(scores: Float[Tensor, "b v"], count: int) -> tuple[Float[Tensor, "b k"], Int[Tensor, "b k"]]:
    """Return the `count` highest scores of each row, descending, and their columns: a fast `topk` for CPUs.

    It compares the maxima of blocks first, which it computes at memory speed; the best `count` tokens are in the best
    `count` blocks. If `count` is 1, the lowest column wins a tie, as with `argmax`.
    """
    blocks = scores.shape[1] // _BLOCK
    if scores.device.type != "cpu" or blocks <= 4 * count:
        return _plain(scores, count)
    whole = blocks * _BLOCK
    by_block = scores[:, :whole].unflatten(1, (blocks, _BLOCK))
    maxima = torch.stack([row.amax(-1) for row in by_block])  # by row: see `log_softmax_`
    best = maxima.argmax(-1, keepdim=True) if count == 1 else maxima.topk(count, sorted=False).indices
    offsets = torch.arange(_BLOCK, device=scores.device)
    columns = (best[..., None] * _BLOCK + offsets).flatten(1)  # (b k*128)
    if whole < scores.shape[1]:
        rest = torch.arange(whole, scores.shape[1], device=scores.device)
        columns = torch.cat([columns, rest.expand(scores.shape[0], -1)], dim=1)
    values, places = _plain(scores.gather(1, columns), count)
    return values, columns.gather(1, places)


def _plain(scores: Float[Tensor, "b v"], count: int) -> tuple[Tensor, Tensor]:
    if count == 1:
        place = scores.argmax(-1, keepdim=True)
        return scores.gather(1, place), place
    values, places = scores.topk(count)
    return values, places
