"""Decoding in steps that are all alike, so that a GPU can replay one: caches, rules and search of a fixed shape.

    packed decoder's read   ->   rules   ->   search   ->   one more place        one launch for all of it

A decoding step is a few hundred small kernels, and on a GPU their launching takes longer than their work. A graph is
launched at once. It needs a step that reads and writes the same memory each time and never waits for the device.

Batches are put into shapes that are a little larger, so that few of them are met: documents up to a power of two,
source and summary up to whole pieces. Each shape and kind of rules keeps its memory and its graph for the next batch,
the last used ones up to a limit. The host asks whether all rows are over every few steps, not after each.
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

from precis.generation.lean.cache import Keys, StaticSource, StaticTarget, source_keys
from precis.generation.lean.decoder import PackedDecoder
from precis.generation.lean.rules import TokenRules
from precis.generation.lean.search import BeamSettings, search_of

_logger = logging.getLogger("precis.generation")

_PIECE = 64  # tokens: room for a summary is a whole number of them
_SOURCE_PIECE, _LONG_SOURCE_PIECE, _LONG = 128, 512, 1024
_LOOK_EVERY = 4  # steps between two looks at what is over
_MOST_SHAPES = 8
_MOST_BYTES = 2 << 30  # of one shape's caches: with more a step's work is worth its launches
_MOST_BYTES_KEPT = 4 << 30  # of all shapes' together
_WARM_UP = 2  # steps before the capture: libraries choose and load their kernels at the first


class Capture(ABC):
    """Makes a step repeatable."""

    @abstractmethod
    def takes(self, device: torch.device) -> bool:
        """Whether steps on this device are to be repeated in this way."""

    @abstractmethod
    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        """A function that does one step each time it is called.

        Some steps may be taken at once, on whatever is in the step's memory; the caller fills it afterwards.

        Raises:
            RuntimeError: the step cannot be captured on this device, or there is no memory for it.
        """


@final
class Replayed(Capture):
    """Makes each step one CUDA graph.

    Graphs share memory for what they compute in between: they never run at the same time, and all that outlives a step
    is in memory of its own.
    """

    def __init__(self) -> None:
        # by device: memory is shared by captures on the same stream only
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
                # other threads may use the device meanwhile (batches that are copied ahead)
                with torch.cuda.graph(graph, pool=pool, stream=side, capture_error_mode="thread_local"):
                    step()
            finally:
                torch.cuda.set_stream(present)  # a capture that fails leaves its own as the present one
        return graph.replay


@final
@dataclass(frozen=True, kw_only=True)
class Shape:
    """What there is room for; all counts are at least 1."""

    documents: int
    beams: int
    source: int
    steps: int

    @classmethod
    def around(cls, *, documents: int, beams: int, source: int, steps: int) -> Self:
        """The shape that such a batch is put into."""
        piece = _SOURCE_PIECE if source <= _LONG else _LONG_SOURCE_PIECE
        return cls(
            documents=1 << (documents - 1).bit_length(),
            beams=beams,
            source=_whole(source, piece),
            steps=_whole(steps, _PIECE),
        )

    def bytes(self, packed: PackedDecoder) -> int:
        """The size of the caches."""
        attentions, number = packed.source_attentions, torch.finfo(packed.dtype).bits // 8
        slots = self.documents * (self.source + self.steps * self.beams)
        return 2 * len(attentions) * attentions[0].key.weight.shape[0] * slots * number


def _whole(count: int, piece: int) -> int:
    return -(-count // piece) * piece


@final
class StaticBatch:
    """Memory for the batches of one shape and one kind of rules, and the step that works in it.

    Args:
        rules: of the kind; their limits of length are replaced by each batch's.
        settings: of the beam search; if None, the search is greedy.
        keys: of a batch's source, for their heads, width, dtype and device.
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
        # a graph knows only addresses: what is at them must stay, though the model were moved
        self._held = [weight.detach() for table in packed.tables for weight in table.parameters()]

    def restart(self, keys: Keys, valid: Bool[Tensor, "b s"], rules: TokenRules) -> None:
        """Begin a batch of this shape or smaller, under rules of this kind."""
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
    """Decodes batches of one packed decoder; keeps what it captured until `release`."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()  # the last used one is the last
        self._failed: set[Hashable] = set()
        self._said = False

    def release(self) -> None:
        """Forget all shapes: their steps read weights that are no longer the model's."""
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
        """The tokens of each document; None if the batch has to be decoded in caches that grow.

        That is the case on a device that the capture does not take, with rules that ask for numbers on the host, with
        caches beyond a limit, and if the capture failed, which is said once.

        Args:
            packed: the same at each call, until `release`.
            settings: of the beam search; if None, the search is greedy.
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
        keys = source_keys(packed.source_attentions, source, packed.dtype)
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
        """The batch that is kept for this key, or one made now; None if that failed."""
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
                "a decoding step could not be captured (%s): its kernels are launched one by one, with the same "
                "summaries in more time",
                reason,
            )
        self._said = True
