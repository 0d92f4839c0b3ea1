"""The models of a service, by their names; those that fit the bound are in memory.

    request's model -> loaded already, or loaded now -> the least recently used ones leave until the rest fits

Only the engine's thread loads and drops models; the event loop reads what each one offers.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import torch

from precis.generation.model_metadata import Mode
from precis.generation.summarizer import Summary
from precis.messages import OnPartial, OnProgress
from precis.process import trim_heap
from precis.server.engine import Ask, TextSummarizer
from precis.server.limits import ApiError
from precis.server.token_counter import TokenCounter
from precis_text.documents.passages import Passages
from precis_text.errors import UserError

_MEGABYTE = 1_000_000


class Served(TextSummarizer, Protocol):
    """A loaded model: `precis.server.served_model.ServedModel`, or a fake in tests."""

    @property
    def name(self) -> str:
        """Its name in requests."""

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that it was trained for, the default first."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Those in which it chooses well; see `ServedModel`."""

    @property
    def size(self) -> int:
        """Bytes of its weights."""

    def counter(self) -> TokenCounter:
        """Return a counter of its tokens, which outlives it."""


class ModelPool:
    """Loaded models and how to load the others.

    Args:
        loaders: load a model, by its name in requests; the first one answers requests that name none.
        memory: most bytes of weights in memory; if None, all models stay. A model that is loaded for the first time
            is measured then, so for that moment it comes on top.
    """

    def __init__(self, loaders: Mapping[str, Callable[[], Served]], *, memory: int | None = None) -> None:
        self._loaders, self._memory = dict(loaders), memory
        self._loaded: dict[str, Served] = {}  # the least recently used first
        self._modes: dict[str, tuple[Mode, ...]] = {}
        self._languages: dict[str, tuple[str, ...]] = {}
        self._counters: dict[str, TokenCounter] = {}
        self._sizes: dict[str, int] = {}

    @classmethod
    def of(cls, *models: Served) -> ModelPool:
        """Return a pool of loaded models."""
        pool = cls({model.name: partial(lambda loaded: loaded, model) for model in models})
        pool.load_all()
        return pool

    def load_all(self) -> None:
        """Load each model once, the first one last, so that errors show before the first request.

        Raises:
            UserError: if a model cannot be loaded, or is larger than the bound on its own.
        """
        for name in reversed(self._loaders):
            self._get(name)

    @property
    def names(self) -> list[str]:
        """The names, the default first."""
        return list(self._loaders)

    @property
    def loaded(self) -> list[str]:
        """The names of the models in memory, the least recently used first."""
        return list(self._loaded)

    def modes(self, name: str) -> tuple[Mode, ...]:
        """Return the modes of a model, the default first."""
        return self._modes[name]

    def languages(self, name: str) -> tuple[str, ...]:
        """Return the languages in which a model chooses well; see `ServedModel`."""
        return self._languages[name]

    def counter(self, name: str) -> TokenCounter:
        """Return the counter of a model's tokens, whether the model is in memory or not."""
        return self._counters[name]

    def make(
        self, texts: Sequence[str | Passages], ask: Ask, on_progress: OnProgress, on_partial: OnPartial | None
    ) -> list[Summary]:
        """Return the summaries that the model of the request makes; see `ServedModel.make`.

        Raises:
            ApiError: if the model was dropped and cannot be loaded again.
        """
        try:
            model = self._get(ask.model)
        except UserError as error:
            problem = f"the model {ask.model!r} cannot be loaded again; the server's log says why"
            raise ApiError(503, "model_not_loaded", problem, retry_after=60) from error
        return model.make(texts, ask, on_progress, on_partial)

    def _get(self, name: str) -> Served:
        """Return a model, which is now the most recently used one; load it if it is not in memory."""
        model = self._loaded.pop(name, None)
        if model is None:
            self._make_room(self._sizes.get(name, 0))
            model = self._loaders[name]()
            self._modes[name], self._languages[name] = model.modes, model.languages
            if name not in self._counters:
                self._counters[name] = model.counter()
            if self._memory is not None:
                self._sizes[name] = model.size
                self._check_size(name)
                self._make_room(model.size)
        self._loaded[name] = model
        return model

    def _check_size(self, name: str) -> None:
        size, most = self._sizes[name], self._memory
        if most is not None and size > most:
            raise UserError(
                f"--model-memory {most // _MEGABYTE}: the model {name!r} has {-(-size // _MEGABYTE):,} MB of weights; "
                "allow more memory or serve a smaller model"
            )

    def _make_room(self, size: int) -> None:
        """Drop the least recently used models until `size` more bytes fit."""
        if self._memory is None:
            return
        dropped = False
        while self._loaded and size + sum(self._sizes[name] for name in self._loaded) > self._memory:
            del self._loaded[next(iter(self._loaded))]
            dropped = True
        if dropped:
            gc.collect()  # a model's parts refer to each other
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            trim_heap()
