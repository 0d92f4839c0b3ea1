"""Decoding outside of autocast: what is written must not hang on where it is asked for.

A validation of a bf16 run writes under autocast, and so does whoever calls a `Summarizer` inside `torch.autocast`.
There products would come out in bf16 while caches and packed weights keep the model's own dtype: on a CPU that is an
error, elsewhere other tokens. Who wants bf16 holds the model in it (`model.bfloat16()`), or asks for `BFloat16()`.
"""

from contextlib import AbstractContextManager

import torch


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """Inside, operators on `device` compute in the dtype of what they are given."""
    return torch.autocast(device.type, enabled=False)
