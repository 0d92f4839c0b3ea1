"""Translates precis's generation settings to those of transformers, and back.

In transformers, `max_length` includes the start token, defaults to 20, and `max_new_tokens` overrides it. In precis,
one limit, `max_tokens`, counts the written tokens.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterator
from typing import Any, Literal, cast

from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from precis.data.text.encoding import sentence_mark
from precis.generation.fast.token_rules import listed
from precis.models.family import FamilyConfig
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError

#: The settings that precis reads from a checkpoint; the rest keep transformers' defaults.
_READ = frozenset(
    {
        "max_length", "max_new_tokens", "min_length", "min_new_tokens", "num_beams", "length_penalty",
        "early_stopping", "no_repeat_ngram_size", "repetition_penalty", "encoder_no_repeat_ngram_size",
        "bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "renormalize_logits",
        "remove_invalid_values", "forced_bos_token_id", "forced_eos_token_id", "pad_token_id", "bos_token_id",
        "eos_token_id", "decoder_start_token_id", "do_sample", "temperature", "top_k", "top_p", "use_cache",
        "transformers_version",
    }
)  # fmt: skip


_IDS = (
    "eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id", "forced_bos_token_id",
    "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens", "bad_words_ids",
)  # fmt: skip
_LEAST = {
    "length_penalty": -50.0, "repetition_penalty": 1e-6, "encoder_no_repeat_ngram_size": 0, "no_repeat_ngram_size": 0,
    "temperature": 1e-6, "top_k": 0, "top_p": 0.0,
}  # fmt: skip
_MOST = {"length_penalty": 50.0, "repetition_penalty": 1e6}
"""Larger ones overflow: 131,072 tokens to the power of 61 exceed a double."""


def settings_of(model: PreTrainedModel) -> GenerationSettings:
    """Return a checkpoint's settings; the default is greedy search and 128 tokens."""
    given = model.generation_config
    assert given is not None
    default = GenerationSettings()
    longest, shortest = given.max_new_tokens, given.min_new_tokens
    if longest is None and given.max_length is not None and given.max_length > 20:
        longest = given.max_length - 1  # 20 is transformers' own default
    if shortest is None and given.min_length:
        shortest = given.min_length - 1
    return GenerationSettings(
        beams=default.beams if given.num_beams is None else given.num_beams,
        length_penalty=default.length_penalty if given.length_penalty is None else given.length_penalty,
        no_repeat_ngram=given.no_repeat_ngram_size or 0,
        min_tokens=max(0, shortest or 0),
        max_tokens=default.max_tokens if longest is None else longest,
        early_stopping=_early_stopping(given) if (given.num_beams or 1) > 1 else default.early_stopping,
    )


def _early_stopping(given: GenerationConfig) -> bool | Literal["never"]:
    return "never" if given.early_stopping == "never" else bool(given.early_stopping)


def _check_rules(given: GenerationConfig) -> None:
    """Raise `UserError` if the value of a search rule is not a number or is out of range."""
    for name, least in _LEAST.items():
        value = getattr(given, name, None)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UserError(f"{name}={value!r} must be a number")
        if value < least:
            raise UserError(f"{name}={value} must be {least} or more")
        if value > _MOST.get(name, sys.maxsize):
            raise UserError(f"{name}={value} must be {_MOST.get(name, sys.maxsize):,} or less")


def _check_ids(given: GenerationConfig, *, rows: int) -> None:
    """Raise `UserError` if an entry contains an id outside the `rows` tokens of the model."""
    for name in _IDS:
        for index in _numbers(getattr(given, name, None)):
            if type(index) is not int or not 0 <= index < rows:
                raise UserError(f"{name}={index!r} is not one of the {rows:,} tokens of this model")


def _numbers(value: Any) -> Iterator[Any]:
    """Yield the values of an arbitrarily nested entry."""
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _numbers(inner)
    elif value is not None:
        yield value


def end_marks(config: GenerationConfig) -> list[int]:
    """Return the ids that end a summary under this configuration."""
    return listed(config.eos_token_id)


def generation_config(
    settings: GenerationSettings, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> GenerationConfig:
    """Return a complete configuration: `settings`, with the checkpoint's start and forced tokens.

    "Off" is 0, since `generate` reads None as "the checkpoint's value".
    """
    config = copy.deepcopy(model.generation_config)
    assert config is not None
    beams = settings.beams
    config.update(
        max_length=None, min_length=None, max_new_tokens=settings.max_tokens,
        min_new_tokens=settings.min_tokens, num_beams=beams,
        length_penalty=settings.length_penalty if beams > 1 else None,
        early_stopping=settings.early_stopping if beams > 1 else False,
        no_repeat_ngram_size=settings.no_repeat_ngram, do_sample=False, temperature=None, top_k=None,
        top_p=None,
    )  # fmt: skip
    if isinstance(model.config, FamilyConfig):
        config.suppress_tokens = sorted(set(control_tokens(tokenizer)) - set(end_marks(config)))
    return config


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the ids that never belong in a summary: [PAD], [CLS], [UNK], [MASK], the sentinels; not the end mark or
    the mark between sentences.
    """
    return sorted(set(tokenizer.all_special_ids) - {tokenizer.eos_token_id, sentence_mark(tokenizer)})


def limit_decoding(model: PreTrainedModel) -> list[str]:
    """Keep only the decoding settings of a checkpoint that precis supports; return the names of the others.

    Raises:
        UserError: if `GenerationSettings` does not allow a number.
    """
    given = model.generation_config
    if given is None:
        return []
    try:
        _check_rules(given)
        settings_of(model)
        _check_ids(given, rows=int(cast(Any, model.get_input_embeddings()).weight.shape[0]))
    except (UserError, TypeError, ValueError) as error:
        raise UserError(f"unsupported decoding settings: {error}") from None
    default = GenerationConfig()
    kept = copy.deepcopy(given)
    dropped = []
    for name, usual in default.to_dict().items():
        given_value = getattr(kept, name, usual)
        if name.startswith("_") or name in _READ or given_value == usual:
            continue
        if given_value:  # False means off
            dropped.append(name)
        setattr(kept, name, usual)
    model.generation_config = kept
    return sorted(dropped)
