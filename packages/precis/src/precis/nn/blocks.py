"""Building blocks of stacks: feed-forward networks, DeBERTa's layer, T5-1.0's layer, and the base class of stacks.

A stack runs layers plainly, with recomputation to save memory, or by code compiled once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from precis.nn.attention import DisentangledSelfAttention, FanInLinear, MultiHeadAttention
from precis.nn.attention_rows import OwnKeys
from precis.nn.dropout import Dropout, dropout
from precis.nn.packing import Packing
from precis.nn.prefix_columns import LayerPrefix, PrefixColumns
from precis.nn.relative_positions import HeadTable, PositionTable
from precis.nn.score_bias import ScoreBias
from precis_text.errors import UserError

NO_PREFIX = LayerPrefix()
Activation = Callable[[Tensor], Tensor]
LayerCall = Callable[..., Tensor]
Observer = Callable[[Float[Tensor, "b n d"]], None]
"""A function that receives the states of whole sequences."""
_ROWS = 1024
"""States per piece of a feed-forward network in CPU inference: hidden states are four times as wide as the others, and
for a long document they dominate memory."""
ACTIVATIONS: dict[str, Activation] = {
    "relu": F.relu,
    "gelu": F.gelu,  # exact erf, as DeBERTa
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """The network of DeBERTa and ProphetNet: down(activation(up(x))), with biases.

    Args:
        activation_dropout, dropout: probabilities of dropout between and after; 0 in DeBERTa.
    """

    def __init__(
        self,
        width: int,
        inner: int,
        *,
        activation: str,
        activation_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.activation = ACTIVATIONS[activation]
        self.activation_dropout = activation_dropout
        self.dropout = dropout

    def forward(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        if _keeps_all(states) or states.shape[:-1].numel() <= _ROWS:
            return self._of(states)
        parts = states.flatten(0, -2).split(_ROWS)
        return torch.cat([self._of(part) for part in parts]).view_as(states)

    def _of(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        hidden = dropout(self.activation(self.up(states)), self.activation_dropout, training=self.training)
        return dropout(self.down(hidden), self.dropout, training=self.training)


def _keeps_all(states: Tensor) -> bool:
    """Return whether pieces would be useless: backward keeps all states, and a graph cannot vary their number."""
    return torch.is_grad_enabled() or torch.compiler.is_compiling() or states.device.type != "cpu"


class FanInFeedForward(nn.Module):
    """T5-1.0's network: down(relu(up(x))), without biases, with dropout between."""

    def __init__(self, width: int, inner: int, *, dropout: float) -> None:
        super().__init__()
        self.up = FanInLinear(width, inner, std=width**-0.5)
        self.down = FanInLinear(inner, width, std=inner**-0.5)
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return self.down(self.dropout(F.relu(self.up(states))))


class GatedFeedForward(nn.Module):
    """T5-1.1's network: down(gelu(gate(x)) * up(x)), GELU in its tanh form, with dropout between."""

    def __init__(self, width: int, inner: int, *, dropout: float) -> None:
        super().__init__()
        self.gate = FanInLinear(width, inner, std=width**-0.5)
        self.up = FanInLinear(width, inner, std=width**-0.5)
        self.down = FanInLinear(inner, width, std=inner**-0.5)
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return self.down(self.dropout(F.gelu(self.gate(states), approximate="tanh") * self.up(states)))


class EncoderLayer(nn.Module):
    """A post-norm layer: x = LN(x + attention(x)); x = LN(x + feed_forward(x))."""

    def __init__(
        self,
        attention: DisentangledSelfAttention,
        feed_forward: FeedForward,
        *,
        width: int,
        norm_eps: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=norm_eps)
        self.feed_forward = feed_forward
        self.feed_forward_norm = nn.LayerNorm(width, eps=norm_eps)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "b n d"],
        mask: Bool[Tensor, "b 1 1 n"] | None,
        positions: PositionTable | HeadTable | None,
        query_states: Float[Tensor, "b n d"] | None = None,
        prefix: PrefixColumns | None = None,
        packing: Packing | None = None,
    ) -> Float[Tensor, "b n d"]:
        """Run the layer. If given, `query_states` attend to `states`, and the layer updates them instead.

        With `packing`, `states` are one row, and `mask` and `prefix` are ignored.
        """
        mixed = self.attention(
            states, positions=positions, mask=mask, query_states=query_states, prefix=prefix, packing=packing
        )
        carried = states if query_states is None else query_states
        states = self.attention_norm(carried + self.dropout(self.attention_output(mixed)))
        return self.feed_forward_norm(states + self.dropout(self.feed_forward(states)))


class DecoderLayer(nn.Module):
    """A pre-norm layer with RMS norms: self-attention, cross-attention, feed-forward, each added to its input."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FanInFeedForward | GatedFeedForward,
        *,
        width: int,
        norm_eps: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.self_norm = nn.RMSNorm(width, eps=norm_eps)
        self.cross_norm = nn.RMSNorm(width, eps=norm_eps)
        self.feed_forward_norm = nn.RMSNorm(width, eps=norm_eps)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "b t d"],
        memory: "Memory",
        bias: ScoreBias,
        mask: Bool[Tensor, "#b 1 t j"] | None,
    ) -> Float[Tensor, "b t d"]:
        mixed = memory.of_target(self.self_attention, self.self_norm(states), bias=bias, mask=mask)
        states = states + self.dropout(mixed)
        crossed = memory.of_source(self.cross_attention, self.cross_norm(states))
        states = states + self.dropout(crossed)
        return states + self.dropout(self.feed_forward(self.feed_forward_norm(states)))


@dataclass(kw_only=True)
class Memory:
    """The inputs of one decoder layer's attentions: the source, and its own past in step-by-step decoding.

    Without a cache, keys are those of this call; `decoder.py` has the version with a cache.

    Attributes:
        predicting: number of predicting states at the end (`streams.py`), whose keys are hidden from other states.
        prefix: keys and values before those of the target, and before those of the source.
    """

    source_states: Float[Tensor, "b s d"]
    source_mask: Bool[Tensor, "b 1 1 s"] | None
    predicting: int = 0
    prefix: LayerPrefix = NO_PREFIX

    def of_target(
        self,
        attention: MultiHeadAttention,
        states: Float[Tensor, "b t d"],
        *,
        bias: ScoreBias,
        mask: Bool[Tensor, "#b 1 t j"] | None,
    ) -> Float[Tensor, "b t d"]:
        """Attend to the target; predicting states have their own key in addition (ProphetNet Eqs. 7-9)."""
        keys, values = attention.project_keys(states)
        own = None
        if self.predicting:
            own, main = OwnKeys(keys, values), keys.shape[-2] - self.predicting
            keys, values = keys[..., :main, :], values[..., :main, :]
        keys, values = self.extend(keys, values)
        prefix = self.prefix.self_attention
        return attention(states, keys, values, bias=bias, mask=mask, own=own, prefix=prefix)

    def of_source(
        self, attention: MultiHeadAttention, states: Float[Tensor, "b t d"]
    ) -> Float[Tensor, "b t d"]:
        """Attend to the source."""
        prefix = self.prefix.cross_attention
        return attention(states, *self.source(attention), bias=None, mask=self.source_mask, prefix=prefix)

    def extend(
        self, keys: Float[Tensor, "b h t e"], values: Float[Tensor, "b h t e"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"]]:
        """Return keys and values of the target so far, including the given ones."""
        return keys, values

    def source(
        self, attention: MultiHeadAttention
    ) -> tuple[Float[Tensor, "b h s e"], Float[Tensor, "b h s e"]]:
        """Return keys and values of the source."""
        return attention.project_keys(self.source_states)


class LayerStack(nn.Module):
    """A stack whose layers differ only in their weights.

    Attributes:
        layers: a module list, if it runs more than one layer.
        gradient_checkpointing: set by PreTrainedModel.gradient_checkpointing_enable, together with the checkpointing
            function, which contains the options passed there.
    """

    layers: nn.ModuleList
    gradient_checkpointing = False
    _gradient_checkpointing_func: Callable[..., Tensor] = staticmethod(
        partial(checkpoint, use_reentrant=False)
    )
    _compiled: Callable[[nn.Module], LayerCall] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        """Set as torch does; raise `UserError` if transformers sets a reentrant `_gradient_checkpointing_func`."""
        if name == "_gradient_checkpointing_func" and _is_reentrant(value):
            raise UserError(
                "gradient_checkpointing_kwargs={'use_reentrant': True}: layers share tensors (the source's states, "
                "the position table), whose gradients it would lose; omit it or set it to False"
            )
        super().__setattr__(name, value)

    @property
    def compiled(self) -> bool:
        """True if the next call in training mode runs compiled code."""
        return self.training and self._compiled is not None

    def compile_layers(self, compiled: Callable[[nn.Module], LayerCall] | None) -> None:
        """Call `compiled(layer)(layer, ...)` instead of `layer(...)` in training mode; None reverts to `layer(...)`.

        The layer is an argument, so that one graph serves all layers.
        """
        self._compiled = compiled

    def expect_other_sizes(self, *tensors: Tensor | None) -> None:
        """Mark the sizes of tensors shared by all layers as variable; call it before the first layer.

        The first graph then serves all sizes. Sizes that are constant (a width, the heads) are inferred
        from the weights during compilation.
        """
        if self.compiled:
            for tensor in tensors:
                for dimension in range(tensor.dim() if tensor is not None else 0):
                    torch._dynamo.maybe_mark_dynamic(tensor, dimension)

    def run_layer(self, layer: nn.Module, *args: Any) -> Tensor:
        """Call a layer with the states and its other arguments."""
        call: LayerCall = layer
        if self.training and self._compiled is not None:
            call = partial(self._compiled(layer), layer)
        if self.gradient_checkpointing and self.training:
            return self._gradient_checkpointing_func(call, *args)
        return call(*args)

    def run_layers(
        self,
        states: Tensor,
        given: Callable[[int], tuple[Any, ...]],
        after: Callable[[int, Tensor, Tensor], Tensor],
        *,
        indices: range | None = None,
    ) -> Tensor:
        """Run some layers in sequence; all of them if `indices` is None.

        Args:
            given: returns the other arguments of a layer, by its index.
            after: returns the next layer's input, from a layer's index, its input and its output.
        """
        for index in range(len(self.layers)) if indices is None else indices:
            output = self.run_layer(self.layers[index], states, *given(index))
            states = after(index, states, output)
        return states


class EncoderStack(LayerStack):
    """An encoder's layers, each with one `attention`."""

    def self_attentions(self) -> tuple[nn.Module, ...]:
        """Return each layer's self-attention."""
        return tuple(layer.get_submodule("attention") for layer in self.layers)

    def cross_attentions(self) -> tuple[nn.Module, ...]:
        """Return an empty tuple: an encoder does not have cross-attention."""
        return ()


def _is_reentrant(function: Any) -> bool:
    return isinstance(function, partial) and bool(function.keywords.get("use_reentrant"))
