"""Decoding in identical steps that a GPU can replay: caches, rules and search of a fixed shape.

    packed decoder's read   ->   rules   ->   search   ->   next position         one launch for all of it

A decoding step is a few hundred small kernels, which take longer to launch than to run on a GPU. A graph needs one
launch. Its step must read and write the same memory each time and never wait for the device.

Batches are padded to slightly larger shapes to limit their number: documents to a power of two, source and summary to
multiples of a length. Each shape and kind of rules keeps its memory and its graph for the next batch, the most recent
ones up to a limit. The host checks every few steps whether all rows are finished.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Self, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from precis.generation.fast.key_value_cache import Keys, StaticSource, StaticTarget
from precis.generation.fast.packed_decoder import PackedDecoder
from precis.generation.fast.token_rules import TokenRules
from precis.generation.fast.token_search import BeamSettings, search_of

_logger = logging.getLogger("precis.generation")

_PIECE = 64  # tokens: the room for a summary is a multiple of this
_SOURCE_PIECE, _LONG_SOURCE_PIECE, _LONG = 128, 512, 1024
_LOOK_EVERY = 4  # steps between two checks for finished rows
_MOST_SHAPES = 8
_MOST_BYTES = 2 << 30  # caches of one shape; above this, launches are cheap relative to a step's work
_MOST_BYTES_KEPT = 4 << 30  # caches of all shapes
_WARM_UP = 2  # steps before the capture, since libraries choose and load their kernels in the first


class Capture(ABC):
    """A way to make a step replayable."""

    @abstractmethod
    def takes(self, device: torch.device) -> bool:
        """Return whether it replays steps on this device."""

    @abstractmethod
    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        """Return a function that runs one step.

        It may run some steps immediately, on the current content of the step's memory; fill the memory afterwards.

        Raises:
            RuntimeError: if the step cannot be captured on this device, or memory is insufficient.
        """


@final
class Replayed(Capture):
    """Capture of each step as one CUDA graph.

    Graphs share memory for intermediate results, since they never run at the same time; results that outlive a step
    have their own memory.
    """

    def __init__(self) -> None:
        # by device, since only captures on the same stream share memory
        self._shared: dict[torch.device, tuple[Any, torch.cuda.Stream]] = {}

    def takes(self, device: torch.device) -> bool:
        return device.type == "cuda"

    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        with torch.cuda.device(device):
            if device not in self._shared:
                self._shared[device] = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
            pool, side = self._shared[device]
            present = torch.cuda.current_stream()
            side.wait_stream(present)
            with torch.cuda.stream(side):
                for _ in range(_WARM_UP):
                    step()
            present.wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            try:
                # other threads may use the device meanwhile (to copy batches in advance)
                with torch.cuda.graph(graph, pool=pool, stream=side, capture_error_mode="thread_local"):
                    step()
            finally:
                torch.cuda.set_stream(present)  # a failed capture leaves its own stream current
        return graph.replay


@final
@dataclass(frozen=True, kw_only=True)
class Shape:
    """The capacity of a batch; all counts are at least 1."""

    documents: int
    beams: int
    source: int
    steps: int

    @classmethod
    def around(cls, *, documents: int, beams: int, source: int, steps: int) -> Self:
        """Return the shape that a batch is padded to."""
        piece = _SOURCE_PIECE if source <= _LONG else _LONG_SOURCE_PIECE
        return cls(
            documents=1 << (documents - 1).bit_length(),
            beams=beams,
            source=_whole(source, piece),
            steps=_whole(steps, _PIECE),
        )

    def bytes(self, packed: PackedDecoder) -> int:
        """Return the size of the caches in bytes."""
        attentions, number = packed.source_attentions, torch.finfo(packed.dtype).bits // 8
        slots = self.documents * (self.source + self.steps * self.beams)
        return 2 * len(attentions) * attentions[0].key.weight.shape[0] * slots * number


def _whole(count: int, piece: int) -> int:
    return -(-count // piece) * piece


@final
class StaticBatch:
    """Memory for batches of one shape and one kind of rules, and the step that uses it.

    Args:
        rules: rules of this kind; each batch replaces their length limits.
        settings: settings of beam search; if None, the search is greedy.
        keys: keys of a batch's source, for their heads, width, dtype and device.
    """

    def __init__(
        self,
        packed: PackedDecoder,
        shape: Shape,
        rules: TokenRules,
        settings: BeamSettings | None,
        keys: Keys,
    ) -> None:
        key = keys[0][0]
        _, heads, _, width = key.shape
        self.device = key.device
        documents, room, layers = shape.documents, shape.steps, len(keys)
        place = torch.zeros(1, dtype=torch.long, device=self.device)
        self._source = StaticSource(key.new_zeros(layers, 2, documents, heads, shape.source, width))
        kept = key.new_zeros(layers, 2, documents, heads, room, shape.beams, width)
        self._target = StaticTarget(kept, packed.by_distance(room), place=place)

        def step(tokens: Tensor, parents: Tensor | None) -> Tensor:
            return packed.read(tokens, self._source, self._target, parents=parents)[0]

        here = rules.on_device(self.device)
        self.search = search_of(settings, step, here, place=place, documents=documents, room=room)
        # a graph stores only addresses, so the weights must stay there even if the model moves
        self._held = [weight.detach() for table in packed.tables for weight in table.parameters()]

    def restart(self, keys: Keys, valid: Bool[Tensor, "b s"], rules: TokenRules) -> None:
        """Start a batch of at most this shape, under rules of this kind."""
        self._source.fill(keys, valid)
        self._target.restart()
        self.search.restart(rules, documents=valid.shape[0])


@final
@dataclass(frozen=True)
class _Kept:
    batch: StaticBatch
    step: Callable[[], None]
    bytes: int


@final
class StaticLoop:
    """The decoding loop of one packed decoder; it keeps its captures until `release`."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()  # most recently used last
        self._failed: set[Hashable] = set()
        self._said = False

    def release(self) -> None:
        """Forget all shapes, since their steps use outdated weights."""
        self._kept.clear()
        self._failed.clear()

    def decode(
        self,
        packed: PackedDecoder,
        source: Float[Tensor, "b s d"],
        valid: Bool[Tensor, "b s"],
        rules: TokenRules,
        settings: BeamSettings | None,
    ) -> list[list[int]] | None:
        """Return the tokens of each document; None if the batch must use caches that grow.

        The reason is a device that the capture does not support, rules that need numbers on the host, caches above a
        limit, or a failed capture, which is logged once.

        Args:
            packed: the same at each call, until `release`.
            settings: settings of beam search; if None, the search is greedy.
        """
        signature = rules.signature() if self._capture.takes(source.device) else None
        if signature is None:
            return None
        steps = int(rules.max_tokens)
        packed.check(steps)
        (documents, length), beams = valid.shape, 1 if settings is None else settings.beams
        shape = Shape.around(documents=documents, beams=beams, source=length, steps=steps)
        size = shape.bytes(packed)
        if size > _MOST_BYTES:
            return None
        keys = packed.source_keys(source)
        key = (shape, settings, signature)
        kept = self._of(key, size, lambda: StaticBatch(packed, shape, rules, settings, keys))
        if kept is None:
            return None
        kept.batch.restart(keys, valid, rules)
        outcome = kept.batch.search.outcome
        for done in range(1, steps + 1):
            kept.step()
            if done % _LOOK_EVERY == 0 and bool(outcome.over.all()):
                break
        return outcome.rows(documents)

    def _of(self, key: Hashable, size: int, make: Callable[[], StaticBatch]) -> _Kept | None:
        """Return the batch for this key, or create it; None if that fails."""
        if key in self._failed:
            return None
        if key not in self._kept:
            self._make_room(size)
            try:
                batch = make()
                self._kept[key] = _Kept(batch, self._capture(batch.search, batch.device), size)
            except RuntimeError as error:
                self._failed.add(key)
                self._say(error)
                return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def _make_room(self, size: int) -> None:
        def full() -> bool:
            return (
                len(self._kept) >= _MOST_SHAPES
                or sum(kept.bytes for kept in self._kept.values()) + size > _MOST_BYTES_KEPT
            )

        while self._kept and full():
            self._kept.popitem(last=False)

    def _say(self, error: RuntimeError) -> None:
        if not self._said:
            reason = str(error).partition("\n")[0]
            _logger.warning(
                "cannot capture a decoding step (%s): launching its kernels one by one, which is slower and writes the "
                "same summaries",
                reason,
            )
        self._said = True
