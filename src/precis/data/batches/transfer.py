"""Copies of tensors on a device, without making the host wait for it."""

import torch
from torch import Tensor


def on_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on `device`, copied there if it lies elsewhere.

    From ordinary memory a copy to a GPU waits until all that was asked of it before is done. From pinned memory it is
    one more task in its stream. Torch keeps a pinned block until the copies from it are over (it notes an event with
    each), so the block needs no owner here.
    """
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
