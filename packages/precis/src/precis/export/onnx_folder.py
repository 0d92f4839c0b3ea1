"""The settings of an exported model, with which a runtime reads and writes without transformers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from transformers import GenerationConfig

from precis.data.text.encoding import sentence_mark
from precis.extract.unit_encoder import around
from precis.generation.fast.token_rules import listed, unsupported
from precis.generation.generation_settings import generation_config, settings_of
from precis.generation.input_plan import assumed_limit, fusion_limit, input_limit, output_limit
from precis.generation.model_loader import LoadedModel
from precis.models.family import FamilyConfig
from precis_text.errors import UserError

SETTINGS = "onnx.json"
FORMAT = 1
LONGEST = 4096
"""Maximum input tokens of a Z-Code++ or ProphetNet: a layer stores the scores of all pairs, 3.4 GB for 6 heads."""


def source_limits(loaded: LoadedModel) -> tuple[int, int]:
    """Return the longest input in tokens that is read whole, and the longest that fusion-in-encoder reads."""
    config = loaded.model.config
    declared = input_limit(config, loaded.tokenizer, trained=loaded.use.max_source)
    whole = assumed_limit(config) if declared is None else declared
    fused = fusion_limit(config)
    if fused and config.local_chunk is not None:  # its own chunks, unless equal to fusion-in-encoder's
        encoder: Any = loaded.model.get_encoder()
        own = encoder.stack.plan
        with encoder.fused():
            fused = fused if encoder.stack.plan == own else 0
    longest = min(max(whole, fused), LONGEST) if isinstance(config, FamilyConfig) else whole
    return min(whole, longest), longest


def settings_for(loaded: LoadedModel) -> dict[str, Any]:
    """Return the content of `onnx.json`.

    Raises:
        UserError: if the checkpoint needs a search rule that the runtime does not have.
    """
    tokenizer, whole, longest = loaded.tokenizer, *source_limits(loaded)
    before, after = around(tokenizer)
    found: dict[str, Any] = {
        "format": FORMAT, "modes": list(loaded.use.modes), "languages": list(loaded.use.languages),
        "instruction": loaded.use.instruction, "max_source": whole, "longest_source": longest,
        "before": before, "after": after, "special": sorted(tokenizer.all_special_ids),
        "unknown": tokenizer.unk_token_id,
        "separator": tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id,
        "padding": tokenizer.pad_token_id or 0, "sentence_mark": sentence_mark(tokenizer),
    }  # fmt: skip
    if "abstract" in loaded.use.modes:
        found["search"] = _search(loaded)
    return found


def _search(loaded: LoadedModel) -> dict[str, Any]:
    settings = settings_of(loaded.model)
    config: GenerationConfig = generation_config(settings, loaded.model, loaded.tokenizer)
    unknown = unsupported(config)
    if unknown:
        raise UserError(
            f"{loaded.source}: generation_config.json sets {', '.join(unknown)}, which an exported model does not "
            "support; remove that setting"
        )
    start = config.decoder_start_token_id
    return {
        **asdict(settings), "longest_target": output_limit(loaded.model.config),
        "start": config.bos_token_id if start is None else start, "end_marks": listed(config.eos_token_id),
        "forced_first": config.forced_bos_token_id, "forced_last": listed(config.forced_eos_token_id),
        "never": listed(config.suppress_tokens), "never_first": listed(config.begin_suppress_tokens),
    }  # fmt: skip
