"""Training steps through `torch.compile`: one graph a kind of layer, for all layers and all lengths.

A stack's layers differ in their weights alone, so that one of them is compiled and the others use its code; what lies
between the stacks runs as it is. A model without stacks of ours is compiled whole, once for each shape of a batch.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import nn

from precis.nn.blocks import LayerStack


def stacks_of(model: nn.Module) -> list[LayerStack]:
    """The stacks whose layers can be compiled one for all."""
    return [module for module in model.modules() if isinstance(module, LayerStack)]


@contextmanager
def compiled_layers(
    model: nn.Module, backend: str | Callable[..., Any], *, whole: bool = False
) -> Iterator[None]:
    """While the body runs, the layers of `model` go through compiled code in training mode.

    Args:
        backend: of `torch.compile`; ``none`` changes nothing.
        whole: a layer that cannot be one graph is an error, for tests.
    """
    stacks = [] if backend == "none" else stacks_of(model)
    made: dict[type[nn.Module], Callable[..., Any]] = {}

    def of(layer: nn.Module) -> Callable[..., Any]:
        kind = type(layer)
        if kind not in made:
            made[kind] = torch.compile(kind.forward, backend=backend, fullgraph=whole)
        return made[kind]

    for stack in stacks:
        stack.compile_layers(of)
    try:
        yield
    finally:
        for stack in stacks:
            stack.compile_layers(None)


class CompileClock:
    """Seconds that torch compiles for, in this process, while the context lasts; backward passes and new shapes too."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> Self:
        from torch._dynamo.callback import callback_handler  # a second to import

        callback_handler.register_start_callback(self._start)
        callback_handler.register_end_callback(self._end)
        return self

    def __exit__(self, *_: object) -> None:
        from torch._dynamo.callback import callback_handler

        callback_handler.remove_start_callback(self._start)
        callback_handler.remove_end_callback(self._end)

    def take(self) -> float:
        """Seconds since it was asked last."""
        taken, self._seconds = self._seconds, 0.0
        return taken

    def _start(self, _: object) -> None:
        self._began = time.perf_counter()

    def _end(self, _: object) -> None:
        self._seconds += time.perf_counter() - self._began
