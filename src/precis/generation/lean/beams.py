"""Beam search with transformers' rules, so that the same summaries win, and less work a step.

Of transformers' search (`GenerationMixin._beam_search`) everything that decides is kept: (1 + end marks) * k
candidates a step, finished ones scored by log probability / length^penalty, the heuristics of early stopping, and the
order of additions in fp32. What it does beside that is not: candidates are taken from each beam's best tokens instead
of all k * v, beams are pointed at and not copied, documents whose search is over leave the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from precis.config import Settings
from precis.generation.lean.greedy import still_open, worth_dropping
from precis.generation.lean.rules import TokenRules
from precis.generation.lean.steps import Steps
from precis.generation.lean.top import highest

_OUT = -1e9  # transformers' score of what must not win


@final
@dataclass(frozen=True, kw_only=True)
class BeamSettings(Settings):
    """The search; `early_stopping` as in transformers: True, False or "never"."""

    beams: int
    length_penalty: float
    early_stopping: bool | Literal["never"]


@dataclass(frozen=True)
class Best:
    """The best continuations of the running beams, descending; c = (1 + end marks) * k of a document."""

    tokens: Int[Tensor, "b c"]
    scores: Float[Tensor, "b c"]
    parents: Int[Tensor, "b c"]


@dataclass(frozen=True)
class Candidates:
    """The same with all that each has written: `new` tokens after the start token, t places or the first of them."""

    tokens: Int[Tensor, "b c t"]
    scores: Float[Tensor, "b c"]
    parents: Int[Tensor, "b c"]
    ends: Bool[Tensor, "b c"]
    new: int | Int[Tensor, " 1"]


@dataclass(frozen=True)
class Finished:
    """The best finished summaries so far, descending; `full` places hold one, the others nothing of use."""

    tokens: Int[Tensor, "b k t"]
    scores: Float[Tensor, "b k"]
    lengths: Int[Tensor, "b k"]
    full: Bool[Tensor, "b k"]


@dataclass(frozen=True)
class Search:
    """The state of a batch; `open`: a running beam may still become better than a finished one."""

    running: Int[Tensor, "b k t"]
    scores: Float[Tensor, "b k"]
    parents: Int[Tensor, "b k"] | None
    finished: Finished
    open: Bool[Tensor, "b 1"]


def beam_search(
    steps: Steps, rules: TokenRules, settings: BeamSettings, *, documents: int, device: torch.device
) -> list[list[int]]:
    """The best summary of each document, from the start token to the end mark or to the limit."""
    search = begin(rules.start, settings, documents=documents, room=1, device=device)
    results: dict[int, list[int]] = {}
    rows = list(range(documents))  # which document each row is
    while len(results) < documents:
        candidates = _candidates(steps, rules, search, settings.beams)
        finished = with_finished(search, candidates, settings)
        search = go_on(search, candidates, finished, settings, max_tokens=rules.max_tokens)
        over = is_over(search, candidates, settings).tolist()
        for row, document in enumerate(rows):
            if over[row] and document not in results:
                length = int(search.finished.lengths[row, 0])
                results[document] = search.finished.tokens[row, 0, :length].tolist()
        open_rows = still_open(rows, results)
        if worth_dropping(open_rows, rows):
            kept = torch.tensor(open_rows, device=device)
            steps.keep(kept)
            search, rows = _keep(search, kept), [rows[row] for row in open_rows]
    return [results[document] for document in range(documents)]


def begin(start: int, settings: BeamSettings, *, documents: int, room: int, device: torch.device) -> Search:
    """Nothing but the start token, with room for so many tokens, which hold start tokens too."""
    shape = (documents, settings.beams)
    running = torch.full((*shape, room), start, device=device)
    scores = torch.full(shape, _OUT, device=device)
    nothing = Finished(
        tokens=running,
        scores=scores,
        lengths=torch.ones(shape, dtype=torch.long, device=device),
        full=torch.zeros(shape, dtype=torch.bool, device=device),
    )
    first = scores.clone()
    first[:, 0] = 0.0  # all beams are equal at first: only one may go on
    return Search(running, first, None, nothing, torch.ones(documents, 1, dtype=torch.bool, device=device))


def _candidates(steps: Steps, rules: TokenRules, search: Search, beams: int) -> Candidates:
    logits = steps.logits(search.running[..., -1], search.parents)
    log_probs = F.log_softmax(logits.flatten(0, 1), dim=-1)
    log_probs = rules.apply(search.running.flatten(0, 1), log_probs)
    best = best_of(log_probs, search.scores, marks=len(rules.end_marks))
    sequences = search.running.take_along_dim(best.parents[..., None], dim=1)
    new = sequences.shape[-1]  # the start token is no new one
    tokens = torch.cat([sequences, best.tokens[..., None]], dim=-1)
    return Candidates(tokens, best.scores, best.parents, rules.ends(best.tokens, new), new)


def best_of(log_probs: Float[Tensor, "r v"], scores: Float[Tensor, "b k"], *, marks: int) -> Best:
    """Of all continuations the best.

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
    return Best(ids.view(-1, beams * each).gather(1, places), best, places // each)


def with_finished(search: Search, candidates: Candidates, settings: BeamSettings) -> Finished:
    """Candidates that end now compete with the finished; only those among the best k, as in transformers."""
    before, beams = search.finished, settings.beams
    ending = candidates.ends.clone()
    ending[:, beams:] = False
    scores = _by_length(candidates.scores, candidates.new, settings)
    if settings.early_stopping is True:
        scores = scores + before.full.all(-1, keepdim=True).float() * _OUT
    scores = scores + (~search.open).float() * _OUT
    scores = scores + (~ending).float() * _OUT
    old = F.pad(before.tokens, (0, candidates.tokens.shape[-1] - before.tokens.shape[-1]))
    merged, places = torch.cat([before.scores, scores], dim=1).topk(beams)
    length = torch.ones_like(candidates.parents) + candidates.new  # with the start token
    return Finished(
        tokens=torch.cat([old, candidates.tokens], dim=1).take_along_dim(places[..., None], dim=1),
        scores=merged,
        lengths=torch.cat([before.lengths, length], dim=1).gather(1, places),
        full=torch.cat([before.full, ending], dim=1).gather(1, places),
    )


def go_on(
    search: Search,
    candidates: Candidates,
    finished: Finished,
    settings: BeamSettings,
    *,
    max_tokens: int | Int[Tensor, " 1"],
) -> Search:
    """The best candidates that do not end become the running beams."""
    scores = candidates.scores + candidates.ends.float() * _OUT
    places = scores.topk(settings.beams).indices
    running = candidates.tokens.take_along_dim(places[..., None], dim=1)
    scores = scores.gather(1, places)
    longest = settings.early_stopping == "never" and settings.length_penalty > 0.0
    best_possible = _by_length(scores[:, :1], max_tokens if longest else candidates.new, settings)
    least = finished.scores.amin(1, keepdim=True).expand_as(finished.scores)
    worst = least.masked_fill(~finished.full, _OUT)
    still = search.open & (best_possible > worst).any(-1, keepdim=True)
    return Search(running, scores, candidates.parents.gather(1, places), finished, still)


def is_over(search: Search, candidates: Candidates, settings: BeamSettings) -> Bool[Tensor, " b"]:
    """Nothing can improve, or enough is finished, or nothing goes on."""
    over = ~search.open.squeeze(1) | candidates.ends.all(-1)
    if settings.early_stopping is True:
        over = over | search.finished.full.all(-1)
    return over


def _by_length(
    scores: Float[Tensor, "b c"], new: int | Int[Tensor, " 1"], settings: BeamSettings
) -> Float[Tensor, "b c"]:
    """Log probability / length^penalty, of `new` tokens; the power in double precision wherever the number lives."""
    if isinstance(new, int):
        return scores / new**settings.length_penalty
    return scores / (new.double() ** settings.length_penalty).to(scores.dtype)


def _keep(search: Search, documents: Int[Tensor, " m"]) -> Search:
    finished = search.finished
    assert search.parents is not None
    return replace(
        search,
        running=search.running[documents],
        scores=search.scores[documents],
        parents=search.parents[documents],
        open=search.open[documents],
        finished=Finished(
            tokens=finished.tokens[documents],
            scores=finished.scores[documents],
            lengths=finished.lengths[documents],
            full=finished.full[documents],
        ),
    )
