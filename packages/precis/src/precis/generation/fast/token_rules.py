"""The rules of a generation configuration, applied in place to the scores of the next token.

They are transformers' processors in transformers' order, so that the same tokens win. `unsupported` lists options that
lack a rule here.

The position of the last token is a number, or a tensor if only the device knows it (`TokenRules.on_device`). With a
number, rules that do not apply cost nothing. With a tensor, every step runs the same operators on different numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor

Place = int | Int[Tensor, " 1"]

_USED = frozenset(
    {
        "max_new_tokens", "min_new_tokens", "early_stopping", "num_beams", "length_penalty", "no_repeat_ngram_size",
        "forced_bos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens", "eos_token_id",
        "decoder_start_token_id",
    }
)  # fmt: skip
# Options without effect on greedy and beam search, or on the decoded text.
_WITHOUT_EFFECT = frozenset(
    {
        "temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff",
        "max_length", "use_cache", "cache_implementation", "cache_config", "max_cache_len",
        "disable_compile", "compile_config", "pad_token_id", "bos_token_id", "transformers_version",
        "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold",
        "max_matching_ngram_size", "assistant_lookbehind", "target_lookbehind", "is_assistant",
    }
)  # fmt: skip
# Options that are off at 1 instead of at 0.
_OFF_AT_ONE = frozenset(
    {
        "repetition_penalty", "encoder_repetition_penalty", "num_return_sequences", "num_beam_groups", "guidance_scale",
    }
)  # fmt: skip


def unsupported(config: GenerationConfig) -> list[str]:
    """Return the names of the options that are on in `config` and lack a rule here."""
    found = []
    for name, value in vars(config).items():
        if name in _USED or name in _WITHOUT_EFFECT or name.startswith("_"):
            continue
        if value and not (name in _OFF_AT_ONE and value == 1):
            found.append(name)
    return sorted(found)


@final
@dataclass(frozen=True, kw_only=True)
class TokenRules:
    """The rules of one batch.

    Attributes:
        end_marks: ids that end a summary.
        start: the id before the first token.
        max_tokens, min_tokens: new tokens, the end mark included.
        forced_first, forced_last: the forced first token, and the forced token at `max_tokens`.
        never, never_first: ids that are forbidden everywhere, and as the first token.
        processors: applied after the others, if the position is a number.
    """

    end_marks: Int[Tensor, " e"]
    start: int
    max_tokens: Place
    min_tokens: Place
    no_repeat_ngram: int
    forced_first: int | None
    forced_last: tuple[int, ...]
    never: Int[Tensor, " n"]
    never_first: Int[Tensor, " f"]
    processors: tuple[Any, ...]

    @classmethod
    def of(
        cls, config: GenerationConfig, processors: Sequence[LogitsProcessor], *, device: torch.device
    ) -> Self:
        """Return the rules of a configuration without `unsupported` options and with `max_new_tokens`."""
        assert config.max_new_tokens is not None
        start = config.decoder_start_token_id
        if start is None:
            start = config.bos_token_id
        assert isinstance(start, int)

        def ids(name: str) -> Int[Tensor, " n"]:
            return torch.tensor(listed(getattr(config, name)), dtype=torch.long, device=device)

        return cls(
            end_marks=ids("eos_token_id"), start=start, max_tokens=config.max_new_tokens,
            min_tokens=config.min_new_tokens or 0, no_repeat_ngram=config.no_repeat_ngram_size or 0,
            forced_first=config.forced_bos_token_id, forced_last=tuple(listed(config.forced_eos_token_id)),
            never=ids("suppress_tokens"), never_first=ids("begin_suppress_tokens"),
            processors=tuple(processors),
        )  # fmt: skip

    def signature(self) -> Hashable | None:
        """Return a key for the operators of a step on the device; None if a processor needs numbers on the host.

        It does not include the length limits. It synchronizes with the device.
        """
        if self.processors:
            return None
        ids = tuple(tuple(ids.tolist()) for ids in (self.end_marks, self.never, self.never_first))
        return (ids, self.no_repeat_ngram, self.forced_first, self.forced_last)

    def on_device(self, device: torch.device) -> Self:
        """Return the same rules for positions that only the device knows, with length limits in device memory."""
        limits = [torch.ones(1, dtype=torch.long, device=device) for _ in range(2)]
        rules = replace(self, max_tokens=limits[0], min_tokens=limits[1])
        rules.take_limits(self)
        return rules

    def take_limits(self, rules: TokenRules) -> None:
        """Copy the length limits of other rules with the same signature; for rules `on_device`."""
        assert isinstance(self.max_tokens, Tensor)
        assert isinstance(self.min_tokens, Tensor)
        self.max_tokens.fill_(rules.max_tokens)
        self.min_tokens.fill_(rules.min_tokens)

    def apply(
        self, written: Int[Tensor, "b t"], place: Place, scores: Float[Tensor, "b v"]
    ) -> Float[Tensor, "b v"]:
        """Apply the rules to the scores of the next token (logits or log probabilities), in place.

        Args:
            written: the start token and the tokens after it, with room for more.
            place: position of the last written token; the start token's is 0.
        """
        if self.no_repeat_ngram:
            block_repeated_ngrams(scores, written, place, size=self.no_repeat_ngram)
        _forbid(scores, self.end_marks, place < self.min_tokens)
        if self.forced_first is not None:
            _force(scores, (self.forced_first,), place == 0)
        if self.forced_last:
            _force(scores, self.forced_last, place == self.max_tokens - 1)
        if len(self.never):
            scores.index_fill_(1, self.never, -torch.inf)
        _forbid(scores, self.never_first, place == (0 if self.forced_first is None else 1))
        for process in self.processors:
            assert isinstance(place, int)
            scores = process(written[:, : place + 1], scores)
        return scores

    def ends(self, tokens: Int[Tensor, "*b"], place: Place) -> Bool[Tensor, "*b"]:
        """Return whether these tokens, all at `place`, are the last of their rows."""
        return (tokens[..., None] == self.end_marks).any(-1) | (place >= self.max_tokens)


def _forbid(scores: Float[Tensor, "b v"], ids: Int[Tensor, " n"], where: bool | Tensor) -> None:
    if where is False or not len(ids):
        return
    if isinstance(where, Tensor):
        scores.index_copy_(1, ids, scores.index_select(1, ids).masked_fill_(where, -torch.inf))
    else:
        scores.index_fill_(1, ids, -torch.inf)


def _force(scores: Float[Tensor, "b v"], ids: Sequence[int], where: bool | Tensor) -> None:
    if where is False:
        return
    hit = where if isinstance(where, Tensor) else torch.ones(1, dtype=torch.bool, device=scores.device)
    scores.masked_fill_(hit, -torch.inf)
    for token in ids:
        scores.select(1, token).masked_fill_(hit, 0.0)


def block_repeated_ngrams(
    scores: Float[Tensor, "b v"], written: Int[Tensor, "b t"], place: Place, *, size: int
) -> Float[Tensor, "b v"]:
    """Set to minus infinity, in place, every token that would complete an n-gram that its row already has.

    It compares the last `size - 1` tokens with every window of the row. If they match, it forbids the window's last
    token. It touches only the t tokens of a row, not the whole vocabulary.

    Args:
        written: tokens up to `place`; those after it are arbitrary ids of the vocabulary.
        place: position of the last written token.
        size: n, 1 or more; with 1 no token occurs twice. The start token counts as a token, as in transformers.
    """
    if isinstance(place, int):
        written = written[:, : place + 1]
    length = written.shape[1]
    if length < size:
        return scores
    windows = written.unfold(1, size, 1)  # (b t-n+1 n)
    if isinstance(place, int):
        suffix = written[:, length + 1 - size :]
        repeats = (windows[..., :-1] == suffix[:, None]).all(-1)
    else:
        back = torch.arange(2 - size, 1, device=written.device)  # n-1 positions, the last one is `place`
        suffix = written.index_select(1, (place + back).clamp_(min=0))
        ends = torch.arange(size - 1, length, device=written.device)
        repeats = (windows[..., :-1] == suffix[:, None]).all(-1) & (ends <= place)
    # amin: a token that ends two windows is forbidden if either of them matches
    limits = torch.full(repeats.shape, torch.inf, dtype=scores.dtype, device=scores.device)
    return scores.scatter_reduce_(1, windows[..., -1], limits.masked_fill_(repeats, -torch.inf), "amin")


def listed(value: Any) -> list[int]:
    """Return None, one id or several as a list."""
    if value is None:
        return []
    return [int(value)] if isinstance(value, int) else [int(entry) for entry in value]
