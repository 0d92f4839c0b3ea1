"""Training with what is n x n in memory: what it moves and keeps. Its numbers: test_recompute.py."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint
from transformers import DebertaV2Config
from transformers.models.deberta_v2 import modeling_deberta_v2

from precis.nn.attention import merge_heads, split_heads
from precis.nn.disentangled.bias import DisentangledBias
from precis.nn.disentangled.saved_scores import attend_keeping, attend_openly
from precis.nn.relative_positions import LogBuckets, OffsetRows
from tests.nn.disentangled.inputs import operands, random_inputs, saved_tensors


class Traffic(TorchDispatchMode):
    """Bytes read and written by torch's operations, views apart."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if not func.is_view and func.overloadpacket is not torch.ops.aten._unsafe_view:
            tensors = [x for x in tree_leaves((args, kwargs, out)) if isinstance(x, torch.Tensor)]
            # an expanded tensor is read where it lies
            self.bytes += sum(
                min(x.numel() * x.element_size(), x.untyped_storage().nbytes()) for x in tensors
            )
        return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("length", "batch"), [(64, 4), (512, 1), (1100, 1)])
def test_holding_all_scores_moves_fewer_bytes_than_transformers(
    length: int, batch: int, dtype: torch.dtype
) -> None:
    heads, width = 8, 16
    config = DebertaV2Config(
        hidden_size=heads * width,
        num_attention_heads=heads,
        relative_attention=True,
        position_buckets=256,
        max_relative_positions=512,
        pos_att_type=["c2p", "p2c"],
        share_att_key=True,
        attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0,
    )
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(batch, length, heads * width, generator=generator).to(dtype).requires_grad_()
    table = torch.randn(512, heads * width, generator=generator).to(dtype).requires_grad_()
    theirs = modeling_deberta_v2.DisentangledSelfAttention(config)
    for name in ("query_proj", "key_proj", "value_proj"):
        setattr(theirs, name, torch.nn.Identity())
    everything = torch.ones(batch, 1, length, length, dtype=torch.bool)
    relative = modeling_deberta_v2.build_relative_position(states, states, bucket_size=256, max_position=512)
    scale, offsets = (3 * width) ** -0.5, OffsetRows(LogBuckets(256, 512))
    offsets.descending(length - 1, states.device)  # worked out once a pass, as `relative` is

    def ours(states: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        split, rows = split_heads(states, heads), split_heads(table[None] * scale, heads)[0]
        bias = DisentangledBias(rows, rows, offsets)
        valid = everything[:, 0, 0]
        return merge_heads(
            attend_openly(bias.operands(split, split, split, valid=valid, scale=scale, dropout=0.0))
        )

    def measured(
        way: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    ) -> tuple[int, torch.Tensor, tuple[torch.Tensor, ...]]:
        with Traffic() as traffic:
            out = way(states, table)
            gradients = torch.autograd.grad(out.square().sum(), (states, table))
        return traffic.bytes, out, gradients

    most, right, gradients = measured(
        lambda states, table: theirs(states, everything, relative_pos=relative, rel_embeddings=table)[0]
    )
    found, out, ours_gradients = measured(ours)
    assert found <= most
    if length <= 512 and dtype == torch.float32:  # beyond, transformers leaves the clamp of distances out
        torch.testing.assert_close(out, right, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours_gradients, gradients, atol=1e-4, rtol=1e-4)


def test_of_all_that_is_n_by_n_only_the_weights_are_kept() -> None:
    inputs = [x.requires_grad_() for x in random_inputs(40, dtype=torch.float32)]
    saved = saved_tensors(attend_keeping(operands(inputs)))
    squares = [x for x in saved if x.shape[-2:] == (40, 40)]
    assert sum(x.numel() for x in squares) == 3 * 2 * 40 * 40


def test_under_checkpointing_the_gradients_are_the_same() -> None:
    inputs = [x.requires_grad_() for x in random_inputs(20)]
    found = []
    for kept in (True, False):
        given = operands(inputs)
        mixed = attend_keeping(given) if kept else checkpoint(attend_keeping, given, use_reentrant=False)
        found.append(torch.autograd.grad(mixed.square().sum(), inputs))
    for plain, again in zip(*found, strict=True):
        torch.testing.assert_close(again, plain)
