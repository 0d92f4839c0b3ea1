"""The Triton kernel gives the plain path's numbers: on a GPU, or in Triton's interpreter (TRITON_INTERPRET=1)."""

import os

import pytest
import torch

from precis.nn.attention import attention_weights
from precis.nn.relative_positions import LogBuckets
from precis.nn.score_bias import DisentangledBias

pytest.importorskip("triton", reason="Triton comes with torch's CUDA builds")
interpreted = os.environ.get("TRITON_INTERPRET") == "1"
if not interpreted and not torch.cuda.is_available():
    pytest.skip("needs a CUDA device or TRITON_INTERPRET=1", allow_module_level=True)

pytestmark = pytest.mark.gpu
BUCKETS = LogBuckets(8, 16)
SCALE = 0.3


def random_inputs(length, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, 2, length, 16)] * 3 + [(2, BUCKETS.rows, 16)] * 2
    device = "cpu" if interpreted else "cuda"
    return [torch.randn(shape, generator=generator).to(device, dtype) for shape in shapes]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kept", ["both", "c2p", "p2c"])
@pytest.mark.parametrize("length", [1, 64, 150, 257])
def test_kernel_equals_the_plain_path(length, kept, masked):
    from precis.nn.disentangled_triton import attend_triton

    q, k, v, position_keys, position_queries = random_inputs(length)
    bias = DisentangledBias(
        queries=q,
        keys=k,
        position_keys=None if kept == "p2c" else position_keys,
        position_queries=None if kept == "c2p" else position_queries,
        buckets=BUCKETS,
    )
    valid = None
    if masked:
        valid = torch.rand(2, length, generator=torch.Generator().manual_seed(1)).to(q.device) > 0.4
        valid[1] = False  # a document of padding gives the mean of all values
    mask = None if valid is None else valid[:, None, None]
    expected = attention_weights(q, k, scores=bias.rows(0, length), mask=mask, scale=SCALE) @ v
    found = attend_triton(q, k, v, bias, valid=valid, scale=SCALE)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_head_widths_that_the_kernel_cannot_take_are_refused():
    from precis.nn.disentangled_triton import attend_triton

    q, k, v, position_keys, position_queries = (x[..., :12] for x in random_inputs(5))
    bias = DisentangledBias(
        queries=q, keys=k, position_keys=position_keys, position_queries=position_queries, buckets=BUCKETS
    )
    with pytest.raises(ValueError, match="head width 12"):
        attend_triton(q, k, v, bias, valid=None, scale=SCALE)
