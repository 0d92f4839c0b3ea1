"""Training steps with `torch.compile`: one graph per kind of layer, for all layers and lengths.

The layers of a stack differ only in their weights, so one is compiled and the others use its code; the model's other
parts run eagerly. A model without a `LayerStack` is compiled as a whole, once for each batch shape.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import nn

from precis.nn.blocks import LayerStack


def stacks_of(model: nn.Module) -> list[LayerStack]:
    """Return the stacks whose layers can share compiled code."""
    return [module for module in model.modules() if isinstance(module, LayerStack)]


@contextmanager
def compiled_layers(
    model: nn.Module, backend: str | Callable[..., Any], *, whole: bool = False
) -> Iterator[None]:
    """Run the layers of `model` as compiled code in training mode while the body runs.

    Args:
        backend: the one for `torch.compile`; ``none`` changes nothing.
        whole: fail if a layer cannot be one graph, for tests.
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
    """A clock of the seconds that torch compiles in this process in the context, backward and new shapes included."""

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
        """Return the seconds since the last call, and reset the clock."""
        taken, self._seconds = self._seconds, 0.0
        return taken

    def _start(self, _: object) -> None:
        self._began = time.perf_counter()

    def _end(self, _: object) -> None:
        self._seconds += time.perf_counter() - self._began
