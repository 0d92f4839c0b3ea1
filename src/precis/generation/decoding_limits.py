"""How a checkpoint may ask to be decoded: a search that `GenerationSettings` allows, and nothing besides."""

from __future__ import annotations

import copy
import logging
from pathlib import Path

from transformers import GenerationConfig, PreTrainedModel

from precis.errors import UserError
from precis.generation.settings import settings_of

_logger = logging.getLogger("precis.models")
#: What is read of a checkpoint's own settings; the rest has transformers' defaults.
_READ = (
    "max_length",
    "max_new_tokens",
    "min_length",
    "min_new_tokens",
    "num_beams",
    "length_penalty",
    "early_stopping",
    "no_repeat_ngram_size",
    "repetition_penalty",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "renormalize_logits",
    "remove_invalid_values",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "decoder_start_token_id",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "use_cache",
    "transformers_version",
)


def limit_decoding(model: PreTrainedModel, place: Path | str) -> None:
    """Keep of a model's decoding settings those that a search has, after looking at their size.

    Raises:
        UserError: a number is beyond what `GenerationSettings` allows; the message names the file.
    """
    given = model.generation_config
    if given is None:
        return
    file = place / "generation_config.json" if isinstance(place, Path) else place
    try:
        settings_of(model)
    except (UserError, TypeError) as error:
        raise UserError(f"{file}: asks for a search that is not made: {error}") from None
    default = GenerationConfig()
    kept = copy.deepcopy(given)
    dropped = []
    for name, usual in default.to_dict().items():
        given_value = getattr(kept, name, usual)
        if name.startswith("_") or name in _READ or given_value == usual:
            continue
        if given_value:  # False is as good as not said
            dropped.append(name)
        setattr(kept, name, usual)
    if dropped:
        _logger.warning("%s: is not followed in %s", file, ", ".join(sorted(dropped)))
    model.generation_config = kept
