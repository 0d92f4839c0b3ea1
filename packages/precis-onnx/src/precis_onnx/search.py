"""Greedy and beam search with an exported decoder, for one document at a time, by the rules of precis.

Scores are fp32 as in torch, and the lower id wins a tie, so the tokens are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from precis_text.decoding_settings import GenerationSettings

_OUT = np.float32(-1e9)  # worse than any score
Scores = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules for the next token.

    Attributes:
        end_marks: ids that end a summary.
        forced_first, forced_last: the forced first token, and the forced token at `max_tokens`.
        never, never_first: ids that are forbidden everywhere, and as the first token.
    """

    settings: GenerationSettings
    end_marks: tuple[int, ...]
    forced_first: int | None
    forced_last: tuple[int, ...]
    never: tuple[int, ...]
    never_first: tuple[int, ...]

    def apply(self, written: Sequence[int], scores: Scores) -> None:
        """Apply the rules in place to the scores of the token after `written`, which includes the start token."""
        place, settings = len(written) - 1, self.settings
        if settings.no_repeat_ngram:
            scores[_repeating(written, settings.no_repeat_ngram)] = -np.inf
        if place < settings.min_tokens:
            scores[[*self.end_marks]] = -np.inf
        if self.forced_first is not None and place == 0:
            _force(scores, [self.forced_first])
        if self.forced_last and place == settings.max_tokens - 1:
            _force(scores, [*self.forced_last])
        scores[[*self.never]] = -np.inf
        if place == (0 if self.forced_first is None else 1):
            scores[[*self.never_first]] = -np.inf

    def ends(self, token: int, new: int) -> bool:
        """Return whether `token`, the new token number `new`, is the last."""
        return token in self.end_marks or new >= self.settings.max_tokens


class Decoder:
    """The decoder of one document: each step gives logits (k v) of k rows, which continue earlier rows."""

    def __init__(self, session: onnxruntime.InferenceSession, states: Scores) -> None:
        self._session, self._states = session, states
        self._names = [one.name for one in session.get_outputs()]
        self._kept: dict[str, NDArray[Any]] = {}
        inputs = [one for one in session.get_inputs() if one.name.startswith("past_key_values.")]
        shapes = {one.name: one.shape for one in inputs}
        self._none = {
            name: np.zeros([1, int(shape[1]), 0, int(shape[3])], dtype=np.float32)
            for name, shape in shapes.items()
        }

    def step(self, tokens: Sequence[int], parents: Sequence[int]) -> Scores:
        """Return the logits after these tokens, each of which continues a row in `parents`."""
        rows, first = len(tokens), not self._kept
        if not first:
            chosen = np.asarray(parents)
            for name, kept in self._kept.items():
                if len(kept) != rows or ("decoder" in name and list(parents) != list(range(rows))):
                    self._kept[name] = kept[chosen] if len(kept) > 1 else np.repeat(kept, rows, axis=0)
        feeds = {
            "input_ids": np.asarray(tokens, dtype=np.int64)[:, None],
            "encoder_attention_mask": np.ones((rows, self._states.shape[1]), dtype=np.int64),
            "encoder_hidden_states": self._states,
            "use_cache_branch": np.array([not first]),
            **(self._none if first else self._kept),
        }
        logits, *present = self._session.run(None, feeds)
        for name, values in zip(self._names[1:], present, strict=True):
            if first or "decoder" in name:
                self._kept[name.replace("present", "past_key_values")] = values
        last: Scores = logits[:, -1].astype(np.float32, copy=False)
        return last


def greedy(decoder: Decoder, rules: Rules, start: int) -> list[int]:
    """Choose the best token at each step, from the start token to an end mark or the limit."""
    written = [start]
    while True:
        scores = decoder.step(written[-1:], [0])[0].copy()
        rules.apply(written, scores)
        token = int(scores.argmax())
        written.append(token)
        if rules.ends(token, len(written) - 1):
            return written


@dataclass
class _Beam:
    score: float
    tokens: list[int]
    parent: int = 0


def beams(decoder: Decoder, rules: Rules, start: int) -> list[int]:
    """Return the best finished row of a beam search, by transformers' rules."""
    settings = rules.settings
    width = settings.beams
    running = [_Beam(0.0, [start])]
    finished: list[_Beam] = []
    while True:
        logits = decoder.step([one.tokens[-1] for one in running], [one.parent for one in running])
        candidates = _candidates(running, logits, rules)
        new = len(running[0].tokens)
        ending = [rules.ends(one.tokens[-1], new) for one in candidates]
        full = len(finished) == width
        if not (settings.early_stopping is True and full):
            for one, ends in zip(candidates[:width], ending[:width], strict=True):
                if ends:
                    finished.append(_Beam(_by_length(one.score, new, settings), one.tokens))
            finished = sorted(finished, key=lambda one: -one.score)[:width]
        running = [one for one, ends in zip(candidates, ending, strict=True) if not ends][:width]
        if not running or (settings.early_stopping is True and len(finished) == width):
            break
        longest = settings.early_stopping == "never" and settings.length_penalty > 0.0
        possible = _by_length(running[0].score, settings.max_tokens if longest else new, settings)
        if len(finished) == width and possible <= finished[-1].score:
            break
    return finished[0].tokens


def _candidates(running: list[_Beam], logits: Scores, rules: Rules) -> list[_Beam]:
    """Return the best continuations of all beams, descending."""
    count = max(2, 1 + len(rules.end_marks)) * rules.settings.beams
    found = []
    for parent, (beam, row) in enumerate(zip(running, logits, strict=True)):
        shifted = row - row.max()
        scores = shifted - np.log(np.exp(shifted).sum(dtype=np.float32))
        rules.apply(beam.tokens, scores)
        best = np.argpartition(-scores, min(count, len(scores) - 1))[:count]
        totals = scores[best] + np.float32(beam.score)
        found += [_Beam(float(s), [*beam.tokens, int(t)], parent) for s, t in zip(totals, best, strict=True)]
    return sorted(found, key=lambda one: -one.score)[:count]


def _by_length(score: float, new: int, settings: GenerationSettings) -> float:
    return float(np.float32(score) / np.float32(new**settings.length_penalty))


def _force(scores: Scores, ids: list[int]) -> None:
    scores[:] = -np.inf
    scores[ids] = 0.0


def _repeating(written: Sequence[int], size: int) -> list[int]:
    """Return the tokens that would repeat an n-gram of this size."""
    suffix = tuple(written[len(written) + 1 - size :]) if size > 1 else ()
    windows = range(len(written) - size + 1)
    return [written[at + size - 1] for at in windows if tuple(written[at : at + size - 1]) == suffix]
