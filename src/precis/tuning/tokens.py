"""A prefix that starts as the keys and values of real words (Li & Liang, section 7.4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from precis.errors import UserError
from precis.tuning.hosts import Attention, Host
from precis.tuning.prefix import Prefix

_POSITIONS = (
    "max_position_embeddings",
    "max_encoder_position_embeddings",
    "max_decoder_position_embeddings",
    "decoder_positions",
)


@torch.no_grad()
def columns_from_tokens(host: Host, prefix: Prefix, ids: Sequence[int]) -> dict[str, Tensor]:
    """What the base makes of a text, read by the encoder and written by the decoder, as a prefix's tensors.

    Args:
        ids: repeated, or cut, to the prefix's length.

    Raises:
        UserError: an id is not in the base's vocabulary, or the prefix is longer than a text that the base can read.
    """
    vocabulary = host.model.get_input_embeddings().num_embeddings
    for token in ids:
        if not 0 <= token < vocabulary:
            raise UserError(f"FromTokens: id {token} is not in the base's vocabulary of {vocabulary}")
    longest = _positions(host.model.config)
    if longest is not None and prefix.length > longest:
        raise UserError(
            f"FromTokens: a prefix of {prefix.length} columns begins as a text of so many tokens, and the base has "
            f"positions for {longest}; use a shorter prefix, or begin without words"
        )
    device = next(host.model.parameters()).device
    row = torch.tensor([list(islice(cycle(ids), prefix.length))], device=device)
    found: dict[str, Tensor] = {}
    handles = [
        _keep(found, linear, attention, f"{site.value}.{layer}.{kind}", prefix.length)
        for site, attentions in host.attentions.items()
        for layer, attention in enumerate(attentions)
        for kind, linear in (("keys", attention.key), ("values", attention.value))
    ]
    modes = {module: module.training for module in host.model.modules()}
    host.model.eval()
    try:
        host.model(input_ids=row, decoder_input_ids=row, use_cache=False)
    finally:
        for module, training in modes.items():
            module.training = training
        for handle in handles:
            handle.remove()
    return found


def _positions(config: PreTrainedConfig) -> int | None:
    """The longest text that encoder and decoder have positions for; None: any length."""
    named = [getattr(config, name, None) for name in _POSITIONS]
    rows = min((count for count in named if isinstance(count, int) and count), default=None)
    if rows is not None and config.model_type.endswith("prophetnet"):
        return rows - 2  # row 0 is padding's, and predicting streams stand one ahead
    return rows


def _keep(found: dict[str, Tensor], linear: nn.Module, attention: Attention, name: str, length: int) -> Any:
    def keep(_: nn.Module, __: Any, output: Tensor) -> None:
        # chunks lie one behind the other, and predicting streams behind the main one: the first rows are the text's
        states = output.flatten(0, -2)[:length]
        if name not in found:  # position tables go through the same maps, later
            found[name] = states.unflatten(-1, (attention.heads, -1)).transpose(0, 1).float()

    return linear.register_forward_hook(keep)
