"""Tokenize chunks of documents in order: in this process, or shared out among several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from precis.data.text.document_tokens import Packed, tokenize
from precis.data.text.tokenizer import load_tokenizer
from precis.data.text.tokenizer_threads import one_thread
from precis.errors import RunError

Chunk = tuple[bool, list[str]]
"""Whether they are held out, and documents."""
Mapper = Callable[[Iterable[Chunk]], Iterator[tuple[bool, Packed]]]


@contextmanager
def tokenizing(tokenizer_folder: Path, workers: int, dtype: np.dtype[Any]) -> Iterator[Mapper]:
    """What turns chunks into ids, in the chunks' order, whatever the number of `workers`.

    At most two chunks a worker, and one, are held in memory.

    Raises:
        RunError: a worker died.
    """
    with one_thread():  # processes share out the work, not the tokenizer's threads
        if workers == 1:
            tokenizer = load_tokenizer(tokenizer_folder)
            yield lambda chunks: ((side, tokenize(texts, tokenizer, dtype)) for side, texts in chunks)
            return
        context = multiprocessing.get_context("spawn")  # forking a process with threads can hang
        pool = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_set_up, initargs=(str(tokenizer_folder),)
        )
        try:
            yield lambda chunks: _in_flight(chunks, pool, 2 * workers, dtype.str)
        finally:
            pool.shutdown(cancel_futures=True)


def _in_flight(
    chunks: Iterable[Chunk], pool: ProcessPoolExecutor, most: int, dtype: str
) -> Iterator[tuple[bool, Packed]]:
    flying: deque[tuple[bool, Future[Packed]]] = deque()
    try:
        for side, texts in chunks:
            flying.append((side, pool.submit(_tokenize_there, texts, dtype)))
            if len(flying) > most:
                side, future = flying.popleft()
                yield side, future.result()
        while flying:
            side, future = flying.popleft()
            yield side, future.result()
    except BrokenProcessPool as error:
        raise RunError("a process that tokenizes died (out of memory?); use fewer --workers") from error


_tokenizer_there: PreTrainedTokenizerBase | None = None  # in a worker process: set once, when it starts


def _set_up(folder: str) -> None:
    global _tokenizer_there
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _tokenizer_there = load_tokenizer(folder)


def _end_with_parent() -> None:
    """A pool's processes wait for work forever where the one that gives it out is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _tokenize_there(texts: list[str], dtype: str) -> Packed:
    assert _tokenizer_there is not None
    return tokenize(texts, _tokenizer_there, np.dtype(dtype))
