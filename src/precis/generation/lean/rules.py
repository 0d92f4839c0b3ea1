"""What a summary may say next: the rules of a generation configuration, applied to scores in place.

They are transformers' processors in transformers' order, so that the same tokens win; `unsupported` names the options
of a configuration that have no rule here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor

from precis.generation.lean.ngram_blocking import block_repeated_ngrams

_USED = frozenset(
    (
        "max_new_tokens",
        "min_new_tokens",
        "early_stopping",
        "num_beams",
        "length_penalty",
        "no_repeat_ngram_size",
        "forced_bos_token_id",
        "forced_eos_token_id",
        "suppress_tokens",
        "begin_suppress_tokens",
        "eos_token_id",
        "decoder_start_token_id",
    )
)
# Options that change what sampling draws; `Sampled` has its own temperature and no other of them.
_OF_SAMPLING = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "top_h",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
)
# without influence on greedy and beam search, or on what is decoded from them
_WITHOUT_EFFECT = frozenset(
    (
        "max_length",
        *_OF_SAMPLING,
        "use_cache",
        "cache_implementation",
        "cache_config",
        "max_cache_len",
        "disable_compile",
        "compile_config",
        "pad_token_id",
        "bos_token_id",
        "transformers_version",
        "num_assistant_tokens",
        "num_assistant_tokens_schedule",
        "assistant_confidence_threshold",
        "max_matching_ngram_size",
        "assistant_lookbehind",
        "target_lookbehind",
        "is_assistant",
    )
)
# options that are off at 1 instead of at 0
_OFF_AT_ONE = frozenset(
    (
        "repetition_penalty",
        "encoder_repetition_penalty",
        "num_return_sequences",
        "num_beam_groups",
        "guidance_scale",
    )
)


_OFF = {"temperature": 1.0, "top_p": 1.0, "typical_p": 1.0}


def sampling_options(config: GenerationConfig) -> list[str]:
    """The options in `config` that would change what is drawn, by name."""
    values = {name: getattr(config, name, None) for name in _OF_SAMPLING}
    return [name for name, value in values.items() if value and value != _OFF.get(name)]


def unsupported(config: GenerationConfig) -> list[str]:
    """The options that are on in `config` and have no rule here, by name."""
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
        start: the id that stands before the first token.
        max_tokens, min_tokens: new tokens, the end mark included.
        forced_first, forced_last: what must be the first token, and what the one at `max_tokens`.
        never, never_first: ids that are not written at all, and not as the first token.
        processors: applied after the others.
    """

    end_marks: Int[Tensor, " e"]
    start: int
    max_tokens: int
    min_tokens: int
    no_repeat_ngram: int
    forced_first: int | None
    forced_last: tuple[int, ...]
    never: Int[Tensor, " n"]
    never_first: Int[Tensor, " f"]
    processors: tuple[LogitsProcessor, ...]

    @classmethod
    def of(
        cls, config: GenerationConfig, processors: Sequence[LogitsProcessor], *, device: torch.device
    ) -> Self:
        """The rules of a configuration without `unsupported` options and with `max_new_tokens`."""
        assert config.max_new_tokens is not None
        start = config.decoder_start_token_id
        if start is None:
            start = config.bos_token_id
        assert isinstance(start, int)

        def ids(name: str) -> Int[Tensor, " n"]:
            return torch.tensor(listed(getattr(config, name)), dtype=torch.long, device=device)

        return cls(
            end_marks=ids("eos_token_id"),
            start=start,
            max_tokens=config.max_new_tokens,
            min_tokens=config.min_new_tokens or 0,
            no_repeat_ngram=config.no_repeat_ngram_size or 0,
            forced_first=config.forced_bos_token_id,
            forced_last=tuple(listed(config.forced_eos_token_id)),
            never=ids("suppress_tokens"),
            never_first=ids("begin_suppress_tokens"),
            processors=tuple(processors),
        )

    def apply(self, written: Int[Tensor, "b t"], scores: Float[Tensor, "b v"]) -> Float[Tensor, "b v"]:
        """Scores of the next token under the rules: logits or log probabilities, changed in place.

        Args:
            written: the start token and what came after it.
        """
        new = written.shape[1] - 1
        if self.no_repeat_ngram:
            block_repeated_ngrams(scores, written, size=self.no_repeat_ngram)
        if new < self.min_tokens:
            scores.index_fill_(1, self.end_marks, -torch.inf)
        if new == 0 and self.forced_first is not None:
            scores.fill_(-torch.inf)[:, self.forced_first] = 0.0
        if new == self.max_tokens - 1 and self.forced_last:
            scores.fill_(-torch.inf)[:, list(self.forced_last)] = 0.0
        scores.index_fill_(1, self.never, -torch.inf)
        if new == (0 if self.forced_first is None else 1):
            scores.index_fill_(1, self.never_first, -torch.inf)
        for process in self.processors:
            scores = process(written, scores)
        return scores

    def ends(self, tokens: Int[Tensor, "*b"], new: int) -> Bool[Tensor, "*b"]:
        """Whether these tokens, each the `new`-th after the start, are the last of their rows."""
        if new >= self.max_tokens:
            return torch.ones_like(tokens, dtype=torch.bool)
        return torch.isin(tokens, self.end_marks)


def listed(value: Any) -> list[int]:
    """None, an id or several, as a list."""
    if value is None:
        return []
    return [int(value)] if isinstance(value, int) else [int(entry) for entry in value]
