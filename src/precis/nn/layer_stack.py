"""How a stack runs its layers: as they are, computed twice to spare memory, or by code that was compiled once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from precis.errors import UserError

LayerCall = Callable[..., Tensor]


class LayerStack(nn.Module):
    """Base of whatever runs layers that differ in their weights alone.

    Attributes:
        gradient_checkpointing: set by PreTrainedModel.gradient_checkpointing_enable, together with the function that
            does it, which holds the options that were given there.
    """

    gradient_checkpointing = False
    _gradient_checkpointing_func: Callable[..., Tensor] = staticmethod(
        partial(checkpoint, use_reentrant=False)
    )
    _compiled: Callable[[nn.Module], LayerCall] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        """As of torch; transformers sets `_gradient_checkpointing_func` from the outside.

        Raises:
            UserError: it is the reentrant kind.
        """
        if name == "_gradient_checkpointing_func" and _is_reentrant(value):
            raise UserError(
                "gradient_checkpointing_kwargs={'use_reentrant': True}: layers share tensors (the source's states, "
                "the position table), whose gradients that kind would lose; leave it out or say False"
            )
        super().__setattr__(name, value)

    @property
    def compiled(self) -> bool:
        """Whether the next call in training mode goes through compiled code."""
        return self.training and self._compiled is not None

    def compile_layers(self, compiled: Callable[[nn.Module], LayerCall] | None) -> None:
        """In training mode call `compiled(layer)(layer, ...)` in the place of `layer(...)`; None ends that.

        The layer is an argument there: one graph then serves all layers, and none of them by its index.
        """
        self._compiled = compiled

    def expect_other_sizes(self, *tensors: Tensor | None) -> None:
        """Before the first layer: sizes of what all layers share and begin with, which differ from batch to batch.

        The first graph is then for all of them. What has one size for all batches (a width, the heads) is found out
        from the weights when it is compiled.
        """
        if self.compiled:
            for tensor in tensors:
                for dimension in range(tensor.dim() if tensor is not None else 0):
                    torch._dynamo.maybe_mark_dynamic(tensor, dimension)

    def run_layer(self, layer: nn.Module, *args: Any, **options: Any) -> Tensor:
        """What the layer makes of its arguments, the states first."""
        call: LayerCall = layer
        if self.training and self._compiled is not None:
            call = partial(self._compiled(layer), layer)
        if self.gradient_checkpointing and self.training:
            return self._gradient_checkpointing_func(partial(call, **options), *args)
        return call(*args, **options)


def _is_reentrant(function: Any) -> bool:
    return isinstance(function, partial) and bool(function.keywords.get("use_reentrant"))
