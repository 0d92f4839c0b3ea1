"""DeBERTa's encoder, 768 wide with heads of 64, three ways: ours, transformers', and disentangled-flash's on
transformers' model, put in by its own public functions. Random weights, no dropout, no padding.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.compare.peers import VOCABULARY, Size, build, deberta_config, states_of
from benchmarks.gpu.device import Device, Pass
from benchmarks.gpu.machine import SEED
from precis.nn.attention import DisentangledSelfAttention
from precis.nn.relative_positions import LogBuckets, OffsetRows, PositionTable
from precis_text.errors import UserError

OURS, THEIRS, FLASH, FLOOR = "precis", "transformers", "disentangled-flash", "without positions"
SIZE, TOY_SIZE = Size(width=768, layers=3, heads=12), Size(width=64, layers=1, heads=2)
TOKENS, TOY_TOKENS = 16_384, 64  # in a batch

Layer = Callable[[Tensor, Tensor], Tensor]  # states (b n d) and position table (r d) -> mixed values (b n d)


def deberta(size: Size, device: Device, dtype: torch.dtype) -> Any:
    """Build transformers' model, with the same weights at every call."""
    from transformers import DebertaV2Model

    torch.manual_seed(SEED)
    return DebertaV2Model(deberta_config(size)).to(device.kind, dtype)


def flashed(model: Any, *, length: int, learns: bool, device: Device) -> Any:
    """Put disentangled-flash's attention, set to expect no padding, into the model.

    It uses its Triton kernels on a card, and its torch code on the CPU.

    Raises:
        UserError: it is not installed, or cannot do this here.
    """
    try:
        from disentangled_flash import optimize_deberta
    except ImportError as error:
        raise UserError(f"disentangled-flash is not installed ({error})") from error
    backend = "triton" if device.on_card else "torch"
    model.train(learns)
    lengths = {} if learns else {"sequence_lengths": [length]}
    optimize_deberta(model, backend=backend, inference=not learns, assume_unpadded=True, **lengths)
    taken = getattr(model.encoder, "backend", None)
    if taken != backend:
        raise UserError(f"disentangled-flash took {taken} and not {backend}")
    return model


def layers(
    size: Size, *, batch: int, length: int, learns: bool, device: Device, dtype: torch.dtype
) -> dict[str, Callable[[], Layer]]:
    """Return builders of one self-attention layer, with projections of states and positions and with equal weights."""

    def theirs() -> tuple[Any, Any]:
        model = deberta(size, device, dtype)
        module = model.encoder.layer[0].attention.self
        _spread(module, size)
        return model, module

    def by_transformers() -> Layer:
        from transformers.models.deberta_v2.modeling_deberta_v2 import build_relative_position

        module = theirs()[1].train(learns)
        everything = torch.ones(batch, 1, length, length, dtype=torch.bool, device=device.kind)
        sample = torch.empty(batch, length, 1, device=device.kind)
        relative = build_relative_position(sample, sample, bucket_size=256, max_position=512)
        return lambda states, table: module(states, everything, relative_pos=relative, rel_embeddings=table)[
            0
        ]

    def by_flash() -> Layer:
        model = flashed(theirs()[0], length=length, learns=learns, device=device)
        module = model.encoder.layer[0].attention.self
        if not learns:
            module.clear_inference_cache()  # of the model's own position table: another one is given
        everything = torch.ones(batch, length, dtype=torch.bool, device=device.kind)
        return lambda states, table: module(states, everything, rel_embeddings=table)[0]

    def ours(*, positions: bool = True) -> Layer:
        module = our_layer(theirs()[1], size).to(device.kind, dtype).train(learns)
        buckets = LogBuckets(256, 512)
        return lambda states, table: module(
            states, positions=PositionTable(table, OffsetRows(buckets)) if positions else None, mask=None
        )

    return {OURS: ours, THEIRS: by_transformers, FLASH: by_flash, FLOOR: lambda: ours(positions=False)}


def _spread(module: Any, size: Size) -> None:
    """Draw weights that give queries and keys a spread of 1, so that scores matter.

    With DeBERTa's first weights all values would be mixed alike, and a wrong way would not show.
    """
    torch.manual_seed(SEED)
    for name in ("query", "key", "value"):
        nn.init.normal_(getattr(module, f"{name}_proj").weight, std=size.width**-0.5)


def our_layer(theirs: Any, size: Size) -> DisentangledSelfAttention:
    """Build our layer with the weights of transformers' self-attention."""
    module = DisentangledSelfAttention(size.width, heads=size.heads)
    for mine, name in ((module.query, "query"), (module.key, "key"), (module.value, "value")):
        mine.load_state_dict(getattr(theirs, f"{name}_proj").state_dict())
    return module


def layer_pass(
    layer: Layer, size: Size, *, batch: int, length: int, learns: bool, device: Device, dtype: torch.dtype
) -> Pass:
    """Return a pass over a layer: values without gradients, or with `learns` gradients of states and position table."""
    draw = torch.Generator().manual_seed(SEED)
    shapes = ((batch, length, size.width), (batch, length, size.width), (512, size.width))
    states, upstream, table = (torch.randn(s, generator=draw).to(device.kind, dtype) for s in shapes)
    # transformers gives keys beyond the table a row more at either end: alike, so that all compute the same
    table[0], table[-1] = table[1], table[-2]

    def forward() -> Tensor:
        with torch.no_grad():
            return layer(states, table)

    def both() -> tuple[Tensor, ...]:
        asked = [states.requires_grad_(), table.requires_grad_()]
        return torch.autograd.grad(layer(states, table), asked, upstream, allow_unused=True)

    return both if learns else forward


def encoders(
    size: Size, *, length: int, learns: bool, device: Device, dtype: torch.dtype
) -> dict[str, Callable[[], nn.Module]]:
    """Return builders of whole encoders, token table included."""

    def ours() -> nn.Module:
        torch.manual_seed(SEED)
        return build("precis", size).to(device.kind, dtype).train(learns)

    def by_flash() -> nn.Module:
        model: nn.Module = flashed(deberta(size, device, dtype), length=length, learns=learns, device=device)
        return model

    return {OURS: ours, THEIRS: lambda: deberta(size, device, dtype).train(learns), FLASH: by_flash}


def encoder_pass(encoder: nn.Module, *, batch: int, length: int, learns: bool, device: Device) -> Pass:
    """Return a pass over an encoder: states without gradients, or with `learns` the gradients of all weights."""
    draw = torch.Generator().manual_seed(SEED)
    ids = torch.randint(4, VOCABULARY, (batch, length), generator=draw).to(device.kind)

    def forward() -> Tensor:
        with torch.no_grad():
            return states_of(encoder, ids, None)

    def both() -> object:
        encoder.zero_grad(set_to_none=True)
        return states_of(encoder, ids, None).sum().backward()

    return both if learns else forward
