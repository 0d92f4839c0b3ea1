"""Whether a model's modules are those that a packed decoder knows: what adapters, hooks or training change is not."""

from __future__ import annotations

from collections.abc import Collection

from torch import nn
from transformers import PreTrainedModel

from precis.nn.attention import MultiHeadAttention
from precis.nn.normalizers import Softmax


def why_not_as_known(model: PreTrainedModel, known: Collection[type[nn.Module]]) -> str | None:
    """Why a step of this model would not be what its modules do; None where it is.

    Args:
        model: one with `model.encoder`, `model.decoder` and `lm_head`.
        known: the kinds of modules that its decoder may have.
    """
    if model.training:
        return "the model is in training mode"
    body, head, decoder = model.model, model.lm_head, model.get_decoder()
    strange = {type(m).__name__ for m in decoder.modules() if type(m) not in known}
    if strange:
        return f"its decoder has {', '.join(sorted(strange))}"
    if _children(model) != {"model", "lm_head"} or _children(body) != {"encoder", "decoder"}:
        return "something was attached to the model"
    if type(head) is not nn.Linear or head.bias is not None:
        return "its head is no plain matrix"
    if any(is_changed(module) for module in (model, body, head, *decoder.modules())):
        return "its modules have hooks or another forward"
    attentions = [m for m in decoder.modules() if isinstance(m, MultiHeadAttention)]
    if not all(isinstance(m.normalize, Softmax) for m in attentions):
        return "its attention is not softmax"
    tensors = [head.weight, *decoder.parameters()]
    if len({(tensor.device, tensor.dtype) for tensor in tensors}) != 1:
        return "its weights are of several dtypes or on several devices"
    return None if all(type(t) is nn.Parameter for t in tensors) else "its weights are no plain tensors"


def _children(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}


def is_changed(module: nn.Module) -> bool:
    """Whether it does something else than its class says: hooks, or a `forward` of its own."""
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))
