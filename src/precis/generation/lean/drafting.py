"""Lossless self-speculative decoding: a model's own predicting streams draft, its next pass verifies.

    pass i     token, draft 1, draft 2   ->   the next token after each of them, and drafts from each of them
               the drafts that the model itself would have written are kept, with the token after the last of them

ProphetNet predicts n tokens from each place in order to plan ahead in training (section 2.2); here the guesses are
put to use. What is written is what one token at a time would have written: greedy search token for token (in fp32: a
tie of two scores within rounding may fall otherwise), sampling in distribution (Leviathan et al., 2023, theorem 3.5).
A pass over several tokens costs little more than one over one token as long as reading the weights takes the time and
not the arithmetic. That is so for one document at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from precis.config import Settings
from precis.errors import UserError
from precis.generation.lean.rules import TokenRules, sampling_options, unsupported
from precis.models import PREDICTS_FUTURE
from precis.models.outputs import new_cache


@final
@dataclass(frozen=True)
class Drafted:
    """One text and how it came about.

    Attributes:
        tokens: from the start token to the end mark, or to the limit.
        passes: how often the decoder was run.
        drafted, kept: tokens that were drafted, and how many of them stayed.
    """

    tokens: list[int]
    passes: int
    drafted: int
    kept: int

    @property
    def written(self) -> int:
        """Tokens after the start token."""
        return len(self.tokens) - 1


class TokenChoice(Protocol):
    """How a token is chosen where the model scores it, and where it was guessed before."""

    def draft(self, logits: Float[Tensor, v]) -> tuple[int, Tensor | None]:
        """A guess, and the distribution it was drawn from, if it was."""

    def choose(self, scores: Float[Tensor, v], guess: int | None, drawn_from: Tensor | None) -> int:
        """The token; the guess stays where it equals it."""


@final
@dataclass(frozen=True, kw_only=True)
class Greedy(Settings):
    """The highest score."""

    def draft(self, logits: Float[Tensor, v]) -> tuple[int, Tensor | None]:
        return int(logits.argmax()), None

    def choose(self, scores: Float[Tensor, v], guess: int | None, drawn_from: Tensor | None) -> int:
        return int(scores.argmax())


@final
class Sampled:
    """A draw from softmax(scores / temperature).

    A guess g drawn from q stays with probability min(1, p(g) / q(g)); otherwise the token is drawn from max(0, p - q),
    so that it is distributed as p whatever q is.

    Raises:
        UserError: the temperature is not above 0.
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
    """One document's decoder: it reads some tokens at once, looks ahead from each, and forgets the wrong ones.

    `precis.generation.lean.decoder.Steps` does so on packed weights.
    """

    def look_ahead(
        self, tokens: Int[Tensor, "1 t"], drafts: int
    ) -> tuple[Float[Tensor, "1 t v"], Float[Tensor, "n t d"]]:
        """Logits in fp32 of the token after each of these, and the states that look 1 to `drafts` farther from it."""

    def guess(self, ahead: Float[Tensor, "n d"]) -> Float[Tensor, "n v"]:
        """Logits in fp32 of states that look ahead."""

    def forget(self, count: int) -> None:
        """Take back the last tokens that were read."""


@final
class ModulePasses:
    """Passes by the model's own modules, with what is attached to them, and a cache that grows.

    Args:
        model: one of `precis.models.PREDICTS_FUTURE`.
        source: what its encoder gave.
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
    """Why a model cannot draft for itself under this configuration; None if it can."""
    if not isinstance(model, PREDICTS_FUTURE):
        return f"{type(model).__name__} has no predicting streams"
    if model.future_streams.stop < 2:
        return "this model predicts the next token alone; train one with ngram or future_tokens"
    if (config.num_beams or 1) > 1:
        return "beam search does not draft; use one beam"
    return why_no_rules(config)


def why_no_rules(config: GenerationConfig) -> str | None:
    """Why `TokenRules` do not cover this configuration; None if they do."""
    options = unsupported(config)
    if options:
        return f"the generation configuration sets {', '.join(options)}"
    if config.max_new_tokens is None:
        return "the generation configuration sets no max_new_tokens"
    return None


def checked_drafts(model: PreTrainedModel, drafts: int | None) -> int:
    """How many tokens are guessed in a pass.

    Raises:
        UserError: more than the model has streams for, or fewer than none.
    """
    streams: int = model.future_streams.stop - 1
    if drafts is not None and not 0 <= drafts <= streams:
        raise UserError(f"drafts={drafts}: this model can guess 0 to {streams} tokens ahead")
    return streams if drafts is None else drafts


def checked_choice(choice: TokenChoice | None, config: GenerationConfig) -> TokenChoice:
    """How tokens are chosen; greedily if `choice` is None.

    Raises:
        UserError: it samples, and the configuration asks for another temperature, top-k or the like.
    """
    asked = sampling_options(config) if isinstance(choice, Sampled) else []
    if asked:
        raise UserError(
            f"the generation configuration sets {', '.join(asked)}, and Sampled draws from all tokens at its own "
            "temperature; set them to None"
        )
    return Greedy() if choice is None else choice


@dataclass
class _Guess:
    """A token that was guessed, and the distribution it was drawn from."""

    token: int
    drawn_from: Tensor | None


@final
class DraftWriter:
    """Writes one document's text: guess, verify, keep what holds."""

    def __init__(self, passes: Passes, rules: TokenRules, choice: TokenChoice) -> None:
        self._passes, self._rules, self._choice = passes, rules, choice
        self._written = torch.tensor([[rules.start]], device=rules.end_marks.device)

    def write(self, drafts: int) -> Drafted:
        """The text, with at most so many guesses in a pass."""
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
        """The place of the last token."""
        return self._written.shape[1] - 1

    def _verify(self, logits: Float[Tensor, "t v"], guesses: Sequence[_Guess]) -> tuple[int, bool]:
        """Write tokens as long as the guesses hold; return how many held, and whether the text is at its end."""
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
        raise AssertionError  # the last place has no guess, so that it never holds

    def _guess(self, ahead: Float[Tensor, "n d"], drafts: int) -> list[_Guess]:
        """Tokens after the one that was just written; no more than may still be written behind it."""
        count = min(drafts, int(self._rules.max_tokens) - self._place - 1)
        if count <= 0:
            return []
        return [_Guess(*self._choice.draft(row)) for row in self._passes.guess(ahead[:count])]
