"""Greedy and beam search with transformers' rules, so that the same summaries win, and less work a step.

Of transformers' beam search (`GenerationMixin._beam_search`) everything that decides is kept: (1 + end marks) * k
candidates a step, finished ones scored by log probability / length^penalty, the heuristics of early stopping, and the
order of additions in fp32. The rest is not: candidates are taken from each beam's best tokens instead of all k * v,
and beams are pointed at instead of copied.

A search keeps its state in tensors that stay where they are, and a step asks the device for nothing, so that it can be
one CUDA graph. Rows that are over stay as they are. Where steps are not replayed (`loop.write`), documents that are
over leave the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Literal, Protocol, TypeVar, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from precis.config import Settings
from precis.generation.lean.rules import Place, TokenRules

_OUT = -1e9  # transformers' score of what must not win
_BLOCK = 128


class DecodingStep(Protocol):
    """Reads one more token of each beam, and gives the logits of the next in fp32, in memory of the caller's own."""

    def __call__(
        self, tokens: Int[Tensor, "b k"], parents: Int[Tensor, "b k"] | None
    ) -> Float[Tensor, "b k v"]:
        """`parents`: which beam of the last step each beam goes on from; if None, each goes on from itself."""


@final
@dataclass(frozen=True, kw_only=True)
class BeamSettings(Settings):
    """The search; `early_stopping` as in transformers: True, False or "never"."""

    beams: int
    length_penalty: float
    early_stopping: bool | Literal["never"]


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

    def rows(self, documents: int) -> list[list[int]]:
        """The first `documents` rows. Reads from the device."""
        lengths = self.lengths[:documents].tolist()
        rows = self.tokens[:documents].tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]


class Search(ABC):
    """The search of one batch; a call is one step of all rows.

    Args:
        step: what reads the tokens.
        rules: what they may be.
        place: of the token that a step reads, as a number or in memory of the device; each step moves it on.
        room: tokens that may be written.

    Attributes:
        outcome: what is written, and which rows are over.
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
        """One step of all rows."""

    def restart(self, rules: TokenRules, *, documents: int) -> None:
        """Begin anew, in the same memory, with the first `documents` rows; the others only fill the batch.

        Args:
            rules: of the same signature, whose limits of length are taken over.
        """
        assert isinstance(self._place, Tensor)
        self._place.zero_()
        self._rules.take_limits(rules)
        self.outcome.tokens.fill_(rules.start)
        self.outcome.over.fill_(True)
        self.outcome.over[:documents] = False

    def keep(self, documents: Int[Tensor, " m"]) -> None:
        """Go on with these rows only."""
        self.outcome = _chosen(self.outcome, documents)

    def _advance(self) -> None:
        if isinstance(self._place, int):
            self._place += 1
        else:
            self._place.add_(1)


@final
class GreedySearch(Search):
    """Each row's best token."""

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
    """The best continuations of the running beams, descending; c = (1 + end marks) * k of a document.

    Attributes:
        tokens: all that each has written.
        parents: the beams that they continue.
        ends: whether their last token is the last of a summary.
        new: how many tokens there are after the start token.
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
        running, scores, parents: the beams that go on, descending, and the beams that they continue.
        open: a running beam may still become better than a finished one.
        finished, finished_scores, lengths: the best finished summaries so far, descending.
        full: which of their places hold one; the others hold nothing of use.
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
    """The k best beams of each document; see `Search` for the arguments."""

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

    def keep(self, documents: Int[Tensor, " m"]) -> None:
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
        first[:, 0] = 0.0  # all beams are equal at first: only one may go on
        return Beams(
            running=running,
            scores=first,
            parents=torch.arange(beams, device=device).repeat(documents, 1),
            open=torch.ones(documents, 1, dtype=torch.bool, device=device),
            finished=running.clone(),
            finished_scores=out,
            lengths=torch.ones(documents, beams, dtype=torch.long, device=device),
            full=torch.zeros(documents, beams, dtype=torch.bool, device=device),
        )

    def _candidates(self) -> Candidates:
        beams, place, rules = self._beams, self._place, self._rules
        logits = self._step(_at(beams.running, place).squeeze(2), beams.parents)
        log_probs = F.log_softmax(logits.flatten(0, 1), dim=-1)
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
    """The search that settings describe; greedy if there are none. See `Search` for the arguments."""
    if settings is None:
        return GreedySearch(step, rules, place=place, documents=documents, room=room)
    return BeamSearch(step, rules, settings, place=place, documents=documents, room=room)


def _best_of(
    log_probs: Float[Tensor, "r v"], scores: Float[Tensor, "b k"], *, marks: int
) -> tuple[Int[Tensor, "b c"], Float[Tensor, "b c"], Int[Tensor, "b c"]]:
    """The best of all continuations: their last tokens, scores and parents.

    Args:
        log_probs: of the r = b*k beams.
        scores: of the beams so far.
        marks: how many end marks there are.
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
    """Candidates that end now compete with the finished; only those among the best k, as in transformers."""
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
    """The best candidates that do not end become the running beams."""
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
    """Nothing can improve, or enough is finished, or nothing goes on."""
    over = ~beams.open.squeeze(1) | candidates.ends.all(-1)
    if settings.early_stopping is True:
        over = over | beams.full.all(-1)
    return over


def _by_length(scores: Float[Tensor, "b c"], new: Place, settings: BeamSettings) -> Float[Tensor, "b c"]:
    """Log probability / length^penalty, of `new` tokens; the power in double precision wherever the number lives."""
    if isinstance(new, int):
        return scores / new**settings.length_penalty
    return scores / (new.double() ** settings.length_penalty).to(scores.dtype)


State = TypeVar("State", Outcome, Beams)


def _take_over(mine: Beams, other: Beams) -> None:
    """Write the state of `other` into the memory of `mine`."""
    for field in fields(mine):
        getattr(mine, field.name).copy_(getattr(other, field.name))


def _chosen(state: State, documents: Int[Tensor, " m"]) -> State:
    """The rows of these documents."""
    return replace(state, **{field.name: getattr(state, field.name)[documents] for field in fields(state)})


def _at(written: Int[Tensor, "*b t"], place: Place) -> Int[Tensor, "*b 1"]:
    return written[..., place : place + 1] if isinstance(place, int) else written.index_select(-1, place)


def _put(written: Int[Tensor, "*b t"], place: Place, tokens: Int[Tensor, "*b 1"]) -> None:
    if isinstance(place, int):
        written[..., place : place + 1] = tokens
    else:
        written.index_copy_(-1, place, tokens)


def highest(scores: Float[Tensor, "b v"], count: int) -> tuple[Float[Tensor, "b k"], Int[Tensor, "b k"]]:
    """The `count` highest scores of each row, descending, and their columns: `topk`, in one fast pass on a CPU.

    Blocks are compared before what is in them. The maximum of a block is found at the speed of memory, and the best
    `count` tokens lie in the best `count` blocks. Of equal scores the lowest column comes first when `count` is 1, as
    with `argmax`.
    """
    blocks = scores.shape[1] // _BLOCK
    if scores.device.type != "cpu" or blocks <= 4 * count:
        return _plain(scores, count)
    whole = blocks * _BLOCK
    maxima = scores[:, :whole].unflatten(1, (blocks, _BLOCK)).amax(-1)
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
