"""Lossless self-speculative decoding: a model's own predicting streams draft, its next pass verifies.

    pass i     token, draft 1, draft 2   ->   the next token after each of them, and drafts from each of them
               keep the drafts that equal the model's own next tokens, and the token after the last of them

ProphetNet predicts n tokens from each position to plan ahead in training (section 2.2); this module uses them as
drafts. The result equals greedy search one token at a time (in fp32; ties within rounding may break differently). For
one document, a pass over several tokens costs little more than over one, since reading the weights takes longer than
the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from precis.generation.fast.token_rules import TokenRules, unsupported
from precis.models import PREDICTS_FUTURE
from precis.models.outputs import new_cache
from precis_text.errors import UserError


@final
@dataclass(frozen=True)
class Drafted:
    """One text, with counts of its decoding.

    Attributes:
        tokens: from the start token to the end mark or the limit.
        passes: number of decoder passes.
        drafted, kept: number of drafted tokens, and of those kept.
    """

    tokens: list[int]
    passes: int
    drafted: int
    kept: int

    @property
    def written(self) -> int:
        """The number of tokens after the start token."""
        return len(self.tokens) - 1


@runtime_checkable
class Passes(Protocol):
    """One document's decoder: it reads several tokens at once, predicts ahead from each, and removes wrong ones.

    `precis.generation.fast.packed_decoder.Steps` implements it with packed weights.
    """

    def look_ahead(
        self, tokens: Int[Tensor, "1 t"], drafts: int
    ) -> tuple[Float[Tensor, "1 t v"], Float[Tensor, "n t d"]]:
        """Return fp32 logits of the token after each of these, and the states that predict 1 to `drafts` farther."""

    def guess(self, ahead: Float[Tensor, "n d"]) -> Float[Tensor, "n v"]:
        """Return fp32 logits of hidden states that predict ahead."""

    def forget(self, count: int) -> None:
        """Remove the last `count` tokens."""


@final
class ModulePasses:
    """Passes with the model's own modules, including an adapter, and a cache that grows.

    Args:
        model: one of `precis.models.PREDICTS_FUTURE`.
        source: its encoder's output.
    """

    def __init__(self, model: PreTrainedModel, source: Float[Tensor, "1 s d"]) -> None:
        self._model, self._source = model, source
        self._cache = new_cache(model.config)

    def look_ahead(
        self, tokens: Int[Tensor, "1 t"], drafts: int
    ) -> tuple[Float[Tensor, "1 t v"], Float[Tensor, "n t d"]]:
        logits, ahead = self._model.look_ahead(tokens, self._source, cache=self._cache, streams=drafts)
        return logits.float(), ahead[0]

    def guess(self, ahead: Float[Tensor, "n d"]) -> Float[Tensor, "n v"]:
        return self._model.get_output_embeddings()(ahead).float()

    def forget(self, count: int) -> None:
        if count:
            self._cache.crop(-count)


def why_no_drafts(model: PreTrainedModel, config: GenerationConfig) -> str | None:
    """Return why a model cannot draft for itself under this configuration; None if it can."""
    if not isinstance(model, PREDICTS_FUTURE):
        return f"{type(model).__name__} does not have predicting streams"
    if model.future_streams.stop < 2:
        return "this model predicts only the next token; train one with ngram or future_tokens"
    if (config.num_beams or 1) > 1:
        return "beam search cannot draft; use one beam"
    return why_no_rules(config)


def why_no_rules(config: GenerationConfig) -> str | None:
    """Return why `TokenRules` do not cover this configuration; None if they do."""
    options = unsupported(config)
    if options:
        return f"the generation configuration sets {', '.join(options)}"
    if config.max_new_tokens is None:
        return "the generation configuration lacks max_new_tokens"
    return None


def checked_drafts(model: PreTrainedModel, drafts: int | None) -> int:
    """Return the number of drafts in a pass; by default, all of the model's streams.

    Raises:
        UserError: if `drafts` is negative or exceeds the model's streams.
    """
    streams: int = model.future_streams.stop - 1
    if drafts is not None and not 0 <= drafts <= streams:
        raise UserError(f"drafts={drafts}: this model can draft 0 to {streams} tokens ahead")
    return streams if drafts is None else drafts


@final
class DraftWriter:
    """Decoder of one document: draft, verify, keep the correct drafts."""

    def __init__(self, passes: Passes, rules: TokenRules) -> None:
        self._passes, self._rules = passes, rules
        self._written = torch.tensor([[rules.start]], device=rules.end_marks.device)

    def write(self, drafts: int) -> Drafted:
        """Write the text, with at most `drafts` drafts in a pass."""
        guesses: list[int] = []
        passes = drafted = kept = 0
        while True:
            passes, drafted = passes + 1, drafted + len(guesses)
            guessed = self._written.new_tensor([guesses])
            logits, ahead = self._passes.look_ahead(torch.cat([self._written[:, -1:], guessed], 1), drafts)
            right, ended = self._verify(logits[0], guesses)
            kept += right
            if ended:
                return Drafted(self._written[0].tolist(), passes, drafted, kept)
            self._passes.forget(len(guesses) - right)
            guesses = self._guess(ahead[:, right], drafts)

    @property
    def _place(self) -> int:
        """The position of the last token."""
        return self._written.shape[1] - 1

    def _verify(self, logits: Float[Tensor, "t v"], guesses: Sequence[int]) -> tuple[int, bool]:
        """Write tokens while the drafts are correct; return the number of correct ones, and whether the text ends."""
        for i, scores in enumerate(logits):
            guess = guesses[i] if i < len(guesses) else None
            ruled = self._rules.apply(self._written, self._place, scores[None].clone())[0]
            token = int(ruled.argmax())
            self._written = torch.cat([self._written, self._written.new_tensor([[token]])], dim=1)
            held = guess == token
            if bool(self._rules.ends(self._written[:, -1], self._place)):
                return i + held, True
            if not held:
                return i, False
        raise AssertionError  # the last position has no draft, so the loop returns there

    def _guess(self, ahead: Float[Tensor, "n d"], drafts: int) -> list[int]:
        """Draft the tokens after the last one, within the token limit."""
        count = min(drafts, int(self._rules.max_tokens) - self._place - 1)
        if count <= 0:
            return []
        guessed: list[int] = self._passes.guess(ahead[:count]).argmax(-1).tolist()
        return guessed
