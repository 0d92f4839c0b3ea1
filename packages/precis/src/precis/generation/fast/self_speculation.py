"""Lossless self-speculative decoding: a model's own predicting streams draft, its next pass verifies.

    pass i     token, draft 1, draft 2   ->   the next token after each of them, and drafts from each of them
               keep the drafts that equal the model's own next tokens, and the token after the last of them

ProphetNet predicts n tokens from each position to plan ahead in training (section 2.2); this module uses them as
drafts. The result equals decoding one token at a time: exactly for greedy search (in fp32; ties within rounding may
break differently), in distribution for sampling (Leviathan et al., 2023, theorem 3.5). For one document, a pass over
several tokens costs little more than over one, since reading the weights takes longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from precis.generation.fast.token_rules import TokenRules, sampling_options, unsupported
from precis.models import PREDICTS_FUTURE
from precis.models.outputs import new_cache
from precis_text.config import Settings
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


class TokenChoice(Protocol):
    """A rule that drafts tokens, and chooses tokens by the model's scores."""

    def draft(self, logits: Float[Tensor, v]) -> tuple[int, Tensor | None]:
        """Return a draft, and the distribution if it was sampled."""

    def choose(self, scores: Float[Tensor, v], guess: int | None, drawn_from: Tensor | None) -> int:
        """Return the token; the draft is kept if it equals the token."""


@final
@dataclass(frozen=True, kw_only=True)
class Greedy(Settings):
    """The choice of the highest score."""

    def draft(self, logits: Float[Tensor, v]) -> tuple[int, Tensor | None]:
        return int(logits.argmax()), None

    def choose(self, scores: Float[Tensor, v], guess: int | None, drawn_from: Tensor | None) -> int:
        return int(scores.argmax())


@final
class Sampled:
    """A sampler from softmax(scores / temperature).

    It keeps a draft g sampled from q with probability min(1, p(g) / q(g)); otherwise it samples from max(0, p - q).
    The token then has distribution p for any q.

    Raises:
        UserError: if the temperature is not above 0.
    """

    def __init__(self, *, temperature: float = 1.0, seed: int = 0) -> None:
        if not temperature > 0.0:
            raise UserError(f"temperature={temperature}: use a number above 0, or greedy search")
        self._temperature = temperature
        self._generator = torch.Generator().manual_seed(seed)

    def draft(self, logits: Float[Tensor, v]) -> tuple[int, Tensor | None]:
        share = self._distribution(logits)
        return self._draw(share), share

    def choose(self, scores: Float[Tensor, v], guess: int | None, drawn_from: Tensor | None) -> int:
        share = self._distribution(scores)
        if guess is None or drawn_from is None:
            return self._draw(share)
        luck = float(torch.rand((), generator=self._generator, dtype=torch.float64))
        if luck * float(drawn_from[guess]) < float(share[guess]):
            return guess
        rest = (share - drawn_from).clamp(min=0.0)
        return self._draw(rest if float(rest.sum()) > 0.0 else share)

    def _distribution(self, logits: Float[Tensor, v]) -> Float[Tensor, v]:
        return torch.softmax(logits.double().cpu() / self._temperature, dim=-1)

    def _draw(self, share: Float[Tensor, v]) -> int:
        return int(torch.multinomial(share, 1, generator=self._generator))


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


def checked_choice(choice: TokenChoice | None, config: GenerationConfig) -> TokenChoice:
    """Return the token choice; greedy if `choice` is None.

    Raises:
        UserError: if it samples, and the configuration sets a temperature, top-k or the like.
    """
    asked = sampling_options(config) if isinstance(choice, Sampled) else []
    if asked:
        raise UserError(
            f"the generation configuration sets {', '.join(asked)}, but Sampled samples from all tokens at its own "
            "temperature; set them to None"
        )
    return Greedy() if choice is None else choice


@dataclass
class _Guess:
    """A drafted token, and the distribution it was sampled from."""

    token: int
    drawn_from: Tensor | None


@final
class DraftWriter:
    """Decoder of one document: draft, verify, keep the correct drafts."""

    def __init__(self, passes: Passes, rules: TokenRules, choice: TokenChoice) -> None:
        self._passes, self._rules, self._choice = passes, rules, choice
        self._written = torch.tensor([[rules.start]], device=rules.end_marks.device)

    def write(self, drafts: int) -> Drafted:
        """Write the text, with at most `drafts` drafts in a pass."""
        guesses: list[_Guess] = []
        passes = drafted = kept = 0
        while True:
            passes, drafted = passes + 1, drafted + len(guesses)
            guessed = self._written.new_tensor([[guess.token for guess in guesses]])
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

    def _verify(self, logits: Float[Tensor, "t v"], guesses: Sequence[_Guess]) -> tuple[int, bool]:
        """Write tokens while the drafts are correct; return the number of correct ones, and whether the text ends."""
        for i, scores in enumerate(logits):
            guess = guesses[i] if i < len(guesses) else None
            ruled = self._rules.apply(self._written, self._place, scores[None].clone())[0]
            token = self._choice.choose(
                ruled, guess.token if guess else None, guess.drawn_from if guess else None
            )
            self._written = torch.cat([self._written, self._written.new_tensor([[token]])], dim=1)
            held = guess is not None and guess.token == token
            if bool(self._rules.ends(self._written[:, -1], self._place)):
                return i + held, True
            if not held:
                return i, False
        raise AssertionError  # the last position has no draft, so the loop returns there

    def _guess(self, ahead: Float[Tensor, "n d"], drafts: int) -> list[_Guess]:
        """Draft the tokens after the last one, within the token limit."""
        count = min(drafts, int(self._rules.max_tokens) - self._place - 1)
        if count <= 0:
            return []
        return [_Guess(*self._choice.draft(row)) for row in self._passes.guess(ahead[:count])]
