"""Our generation settings in transformers' words, and back.

`max_length` of transformers counts the start token too, is 20 by default and is overruled by
`max_new_tokens`; here there is one limit, `max_tokens`, of tokens that are written.
"""

from __future__ import annotations

import copy
from typing import Literal

from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from precis.data.text.encoding import sentence_mark
from precis.decoding import GenerationSettings
from precis.generation.lean.rules import listed
from precis.models.prophetnet.config import ProphetNetConfig
from precis.models.zcodepp.config import ZCodePPConfig


def settings_of(model: PreTrainedModel) -> GenerationSettings:
    """How a checkpoint says that it wants to be decoded; greedy and 128 tokens where it says nothing."""
    given = model.generation_config
    assert given is not None
    default = GenerationSettings()
    longest, shortest = given.max_new_tokens, given.min_new_tokens
    if longest is None and given.max_length is not None and given.max_length > 20:
        longest = given.max_length - 1  # 20 is transformers' own default, never a wish
    if shortest is None and given.min_length:
        shortest = given.min_length - 1
    return GenerationSettings(
        beams=given.num_beams or default.beams,
        length_penalty=default.length_penalty if given.length_penalty is None else given.length_penalty,
        no_repeat_ngram=given.no_repeat_ngram_size or 0,
        min_tokens=max(0, shortest or 0),
        max_tokens=longest or default.max_tokens,
        early_stopping=_early_stopping(given) if (given.num_beams or 1) > 1 else default.early_stopping,
    )


def _early_stopping(given: GenerationConfig) -> bool | Literal["never"]:
    return "never" if given.early_stopping == "never" else bool(given.early_stopping)


def end_marks(config: GenerationConfig) -> list[int]:
    """The ids that end a summary under this configuration."""
    return listed(config.eos_token_id)


def generation_config(
    settings: GenerationSettings, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> GenerationConfig:
    """A complete configuration: `settings` over what the checkpoint needs (start and forced tokens).

    "Off" is written as 0: `generate` takes None for "as the checkpoint says".
    """
    config = copy.deepcopy(model.generation_config)
    assert config is not None
    beams = settings.beams
    config.update(
        max_length=None,
        min_length=None,
        max_new_tokens=settings.max_tokens,
        min_new_tokens=settings.min_tokens,
        num_beams=beams,
        length_penalty=settings.length_penalty if beams > 1 else None,
        early_stopping=settings.early_stopping if beams > 1 else False,
        no_repeat_ngram_size=settings.no_repeat_ngram,
        do_sample=False,
        temperature=None,
        top_k=None,
        top_p=None,
    )
    if isinstance(model.config, ZCodePPConfig | ProphetNetConfig):
        config.suppress_tokens = sorted(set(control_tokens(tokenizer)) - set(end_marks(config)))
    return config


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids that never belong into a summary: [PAD], [CLS], [UNK], [MASK], the sentinels; not the end mark, nor the mark
    between sentences.
    """
    return sorted(set(tokenizer.all_special_ids) - {tokenizer.eos_token_id, sentence_mark(tokenizer)})
