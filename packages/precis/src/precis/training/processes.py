"""Several processes: barriers, and models sharded with FSDP2.

Accelerate's own barrier uses the machine's accelerator. Processes on the CPU of a machine with a GPU
(``ACCELERATE_USE_CPU=true``) lack that process group, and torch fails: "No backend type associated with device type
cuda". Our barrier uses the CPU's group for them.

`accelerate launch` enables FSDP2 through the environment: parameters, gradients and optimizer state are sharded, and
each process holds one shard. We shard a copy: the caller's model stays whole, on the CPU, and is updated for uses that
need a whole one (validation, where `generate` calls a model part by part; checkpoints, which any number of processes
can resume; export).

We call `fully_shard` ourselves, because Accelerate gives token tables their own group: other modules that read the
table (Z-Code++ Eq. 4, tied heads) would find it sharded. Our groups are the single layers and one for the rest, which
is whole while the model runs.
"""

import copy
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, distributed, nn, optim
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from precis_text.errors import UserError

_ON = ("true", "1", "yes")


def wait_for_everyone(accelerator: Accelerator) -> None:
    """Return when every process of the run has called this."""
    if accelerator.device.type != "cpu":
        accelerator.wait_for_everyone()
    elif distributed.is_initialized():
        distributed.barrier()


@contextmanager
def main_process_first(accelerator: Accelerator) -> Iterator[None]:
    """Run the body in the main process first, then in the others: a download, a file that all need."""
    if not accelerator.is_main_process:
        wait_for_everyone(accelerator)
    yield
    if accelerator.is_main_process:
        wait_for_everyone(accelerator)


def sharding_is_asked_for() -> bool:
    """Return whether the variables of `accelerate launch` enable FSDP2.

    Raises:
        UserError: they enable an option of FSDP that the loop does not support.
    """
    if not _is_on("ACCELERATE_USE_FSDP"):
        return False
    if os.environ.get("FSDP_VERSION", "1") != "2":
        raise UserError(
            "FSDP version 1 is not supported; set fsdp_version: 2 in the configuration of accelerate"
        )
    for variable, setting, instead in (
        ("FSDP_OFFLOAD_PARAMS", "fsdp_offload_params", "more processes make each shard smaller"),
        ("FSDP_CPU_RAM_EFFICIENT_LOADING", "fsdp_cpu_ram_efficient_loading", "every process loads the model"),
        ("FSDP_ACTIVATION_CHECKPOINTING", "fsdp_activation_checkpointing", "the run has its own setting"),
    ):
        if _is_on(variable):
            raise UserError(
                f"{setting} is on; set it to false in the configuration of accelerate ({instead})"
            )
    return True


def shard(model: nn.Module, accelerator: Accelerator) -> nn.Module:
    """Return a sharded copy of `model` in training mode, on the processes' devices."""
    pieces = copy.deepcopy(model).train()
    mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
    free = _is_on("FSDP_RESHARD_AFTER_FORWARD", default="true")
    for layer in layers_of(pieces):
        fully_shard(layer, mesh=mesh, reshard_after_forward=free)
    fully_shard(pieces, mesh=mesh, reshard_after_forward=False)  # in place, like the layers
    return pieces


def in_pieces(model: nn.Module) -> bool:
    """Return whether `shard` made this model."""
    return isinstance(model, FSDPModule)


def whole(tensor: Tensor) -> Tensor:
    """Return the full tensor, gathered if it is sharded: every process must make this call together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


class Pieces:
    """A link that copies weights and optimizer state between a whole model and its shards. Every process takes part."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        *,
        pieces: nn.Module,
        pieces_optimizer: optim.Optimizer,
        accelerator: Accelerator,
    ) -> None:
        """Link `model` and `optimizer`, which are whole and never stepped, to `pieces`, the result of `shard`."""
        self._model, self._optimizer = model, optimizer
        self._pieces, self._pieces_optimizer = pieces, pieces_optimizer
        self._accelerator = accelerator

    def scatter(self) -> None:
        """Copy the whole model and optimizer state, equal in every process, to the shards."""
        values = self._model.state_dict()
        with torch.no_grad():
            for name, piece in self._pieces.state_dict().items():
                piece.copy_(_piece_of(values[name], like=piece))
        for parameter, piece in self._pairs():
            state = self._optimizer.state.pop(parameter, {})
            if state:
                self._pieces_optimizer.state[piece] = _pieces_of(state, parameter, like=piece)

    @contextmanager
    def weights_gathered(self) -> Iterator[None]:
        """Give the whole model the current weights, and move it to this process's device while the body runs."""
        self._gather_weights()
        home = next(self._model.parameters()).device
        self._model.to(self._accelerator.device)
        try:
            yield
        finally:
            self._model.to(home)

    @contextmanager
    def state_gathered(self) -> Iterator[None]:
        """Give the whole model the current weights and, in the main process, the whole optimizer its state."""
        self._gather_weights()
        for parameter, piece in self._pairs():
            state = {kind: whole(value) for kind, value in self._pieces_optimizer.state[piece].items()}
            if self._accelerator.is_main_process and state:
                self._optimizer.state[parameter] = {kind: value.cpu() for kind, value in state.items()}
        try:
            yield
        finally:
            self._optimizer.state.clear()

    def _gather_weights(self) -> None:
        values = self._model.state_dict()
        with torch.no_grad():
            for name, piece in self._pieces.state_dict().items():
                values[name].copy_(whole(piece))

    def _pairs(self) -> Iterator[tuple[nn.Parameter, nn.Parameter]]:
        return zip(self._model.parameters(), self._pieces.parameters(), strict=True)


def layers_of(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the members of the outermost module lists, where our models and transformers' have their layers."""
    for child in model.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from layers_of(child)


def _piece_of(value: Tensor, *, like: Tensor) -> Tensor:
    """Return this process's shard of `value`, without communication: every process has all of it."""
    value = value.to(like.device)
    if not isinstance(like, DTensor):
        return value
    return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None)


def _pieces_of(state: Mapping[str, Any], parameter: Tensor, *, like: Tensor) -> dict[str, Tensor]:
    """Split AdamW's state of a parameter: the moments like the parameter, the step count not at all."""
    return {
        kind: _piece_of(value, like=like) if value.shape == parameter.shape else value.to(like.device)
        for kind, value in state.items()
    }


def _is_on(variable: str, *, default: str = "false") -> bool:
    return os.environ.get(variable, default).lower() in _ON
