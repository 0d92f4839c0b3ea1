"""Opens a writer by the name of its model: a causal language model, or an endpoint."""

from __future__ import annotations

from pathlib import Path

import torch

from precis.generation.model_location import ModelLocation, locate
from precis.generation.model_metadata import PACKAGES
from precis.generation.writers.causal_model import CausalModel
from precis.generation.writers.chat import ChatModel
from precis.generation.writers.endpoint import Endpoint
from precis.generation.writers.writer import Check, Writer
from precis.generation.writers.writer_input import Choose, by_centrality
from precis_text.errors import UserError
from precis_text.language import languages
from precis_text.support.write_or_quote import SMALL_CLOSENESS


def open_writer(
    model: str | Path | ModelLocation,
    *,
    choose: Choose = by_centrality,
    check: Check = "strict",
    language: str | None = None,
    allow_remote: bool = False,
    context: int | None = None,
    device: str | torch.device | None = None,
) -> Writer:
    """Return a writer with a model.

    Args:
        model: a folder, GGUF file or hub name of a causal language model, or the address of an endpoint
            (`http://127.0.0.1:11434/v1#qwen3:4b`).
        choose, check, language: see `Writer`.
        allow_remote: whether an endpoint may be on another machine.
        context: the most tokens of prompt and reply together; if None, the model's own.
        device: the device of a causal language model; if None, the accelerator, else the CPU.

    Raises:
        UserError: if the model cannot be loaded or reached, or prompts in the language are missing.
    """
    if language is not None and language not in languages():
        raise UserError(
            f"precis does not have prompts for language {language!r}; use one of {', '.join(sorted(languages()))}"
        )
    found = locate(model)
    chat: ChatModel
    short = None
    if found.is_endpoint:
        chat = Endpoint.at(str(found.place), allow_remote=allow_remote, context=context)
    else:
        chat = CausalModel.from_pretrained(found, device=device, context=context)
        short = None if found.short is None else chat.with_adapter(found.short)
    closeness = SMALL_CLOSENESS if found.base in PACKAGES else -1.0
    instruction = found.use.instruction
    return Writer(
        chat, short=short, choose=choose, check=check, closeness=closeness, language=language, instruction=instruction
    )  # fmt: skip
