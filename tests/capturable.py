"""Whether a CUDA graph could hold a step, asked without a GPU: the operators of each call are written down.

A graph replays the same kernels on the same addresses with the same numbers, and cannot wait for the device. So every
call has to give the same trace, and no operator may read a number of a tensor's, make a shape out of what is in one,
draw, or bring one to another device.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# by the operator's name without its overload; asking for one of them makes the host wait, or asks another device
_REFUSED = (
    "_local_scalar_dense",
    "is_nonzero",
    "equal",
    "nonzero",
    "nonzero_static",
    "argwhere",
    "masked_select",
    "unique_consecutive",
    "_unique",
    "_unique2",
    "isin",  # with many elements it sorts and makes them unique
    "bincount",
    "histc",
    "repeat_interleave",
    "lift_fresh",  # a tensor made of a list or a number of the host's
    "multinomial",
    "bernoulli",
    "native_dropout",
)
_BY_INDEX = ("index", "index_put", "index_put_")


class Trace(TorchDispatchMode):
    """Inside, operators are refused or listed.

    Attributes:
        calls: of each operator its name, its plain arguments, and place, shape and strides of each tensor; tensors that
            were made inside have no place.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []
        self._made: dict[int, Tensor] = {}  # by storage; kept, so that no storage is given twice

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        given = tree_leaves((args, kwargs or {}))
        if name in _REFUSED:
            raise AssertionError(f"{name} cannot be captured")
        tensors = [one for one in given if isinstance(one, Tensor)]
        if name in _BY_INDEX and any(one.dtype in (torch.bool, torch.uint8) for one in tensors[1:]):
            raise AssertionError(f"{name} by a boolean mask cannot be captured")
        result = func(*args, **(kwargs or {}))
        made = [one for one in tree_leaves(result) if isinstance(one, Tensor)]
        devices = {one.device for one in (*tensors, *made)}
        if len(devices) > 1:
            raise AssertionError(f"{name} mixes devices: {devices}")
        known = {_storage(one) for one in tensors}
        self._made.update({_storage(one): one for one in made if _storage(one) not in known})
        plain = tuple(one for one in given if not isinstance(one, Tensor))
        self.calls.append((name, plain, *map(self._seen, tensors), *map(self._seen, made)))
        return result

    def _seen(self, tensor: Tensor) -> tuple[Any, ...]:
        place = None if _storage(tensor) in self._made else (_storage(tensor), tensor.storage_offset())
        return (place, tensor.shape, tensor.stride(), tensor.dtype)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
