"""One thread that owns the models, and a bounded queue in front of it.

    request -> a job for each document -> queue, counted in tokens -> batch -> model -> answers

Between two pieces of a long document, a batch of short documents gets a turn, so none waits for the rest of a long one.
The oldest job starts a batch. Jobs with the same options that fit its passes join it. A summary depends only on its own
document (`precis.generation.decoder_batches`, `precis.extract.unit_encoder`), so batching affects only the speed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from precis.generation.model_metadata import Mode
from precis.generation.summarizer import Summary
from precis.messages import OnPartial, OnProgress
from precis.server.limits import ApiError, Limits, empty_document, server_failed
from precis.server.metrics import Metrics
from precis_text.documents.passages import NOWHERE, Passages
from precis_text.errors import RunError, UserError
from precis_text.forms.form import Form
from precis_text.forms.form_choice import PARAGRAPH
from precis_text.length import ANY_LENGTH, Length

MODEL_THREAD = "model"  # the name of the thread that computes
_ALIKE = 2  # the longest document of a batch has at most this many times the tokens of the shortest


@dataclass(frozen=True, kw_only=True)
class Ask:
    """The options of a summary, and the model's name. Documents with equal options may share a batch."""

    model: str
    mode: Mode
    length: Length = ANY_LENGTH
    form: Form = PARAGRAPH
    instruction: str | None = None
    beams: int | None = None


class TextSummarizer(Protocol):
    """A summarizer: a model, all models of a service (`precis.server.model_pool.ModelPool`), or a fake in tests."""

    def make(
        self, texts: Sequence[str | Passages], ask: Ask, on_progress: OnProgress, on_partial: OnPartial | None
    ) -> list[Summary]:
        """Return the summaries of `texts`, in order; `on_partial` receives their first sentences."""


@dataclass(eq=False)
class QueuedDocument:
    """One document in the queue or in a batch.

    Attributes:
        given_up: the reason that it gets no summary: "client_left", "too_late" or an error's code; else "".
        written: the first sentences of its summary; `news` is set when there are more, or it is done.
        passages: the text with its headings and times, if it comes from a file that has any.
        holds_place: whether the queue's limit counts it.
    """

    text: str
    ask: Ask
    cost: int
    deadline: float
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Summary]
    given_up: str = ""
    written: str = ""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    passages: Passages = NOWHERE
    holds_place: bool = True

    @property
    def document(self) -> str | Passages:
        """The text, with its headings and times if it has any."""
        return self.passages if self.passages.places and self.passages.text == self.text else self.text

    @property
    def late(self) -> bool:
        """True if its deadline has passed."""
        return time.monotonic() > self.deadline

    @property
    def useless(self) -> bool:
        """True if no client waits for its summary."""
        return bool(self.given_up) or self.late

    def finish(self, result: Summary | Exception) -> None:
        """Hand the result to the waiting event loop, from any thread."""
        self._soon(self._settle, result)

    def report_partial(self, beginning: str) -> None:
        """Hand over the first sentences of the summary, from any thread."""
        self._soon(self._begin, beginning)

    def _soon(self, call: Callable[..., None], *given: object) -> None:
        with suppress(RuntimeError):  # a closed loop does not wait
            self.loop.call_soon_threadsafe(call, *given)

    def _begin(self, beginning: str) -> None:
        if len(beginning) > len(self.written):  # may be shorter when the document is retried on its own
            self.written = beginning
            self.news.set()

    def _settle(self, result: Summary | Exception) -> None:
        self.news.set()
        if self.done.done():
            return
        if isinstance(result, Exception):
            self.done.set_exception(result)
            self.done.exception()  # read once, so that asyncio does not log it if the client left
        else:
            self.done.set_result(result)


class _NobodyWaits(BaseException):
    """No client waits for the running batch any longer. No `except Exception` of a model's libraries catches it."""


class Engine:
    """The queue and its thread.

    Args:
        summarizer: makes the summaries; only the engine's thread calls it.
        metrics: receives events, from that thread and from the event loop.
        fault: logs an exception that is a bug of the service.
        loaded: whether a model is in memory, so that a turn between two pieces never loads one.
    """

    def __init__(
        self,
        summarizer: TextSummarizer,
        limits: Limits,
        metrics: Metrics,
        fault: Callable[[BaseException], None],
        *,
        loaded: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._loaded, self._in_turn = loaded, False
        self._summarizer, self._limits, self._metrics, self._fault = summarizer, limits, metrics, fault
        self._queue: list[QueuedDocument] = []
        self._changed = threading.Condition()
        self._tokens = self._documents = 0  # of queued and running jobs
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name=MODEL_THREAD, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def ready(self) -> bool:
        """True if it is running and accepts documents."""
        return self._thread.is_alive() and not self._stopping

    def submit(
        self, texts: Sequence[str], costs: Sequence[int], ask: Ask, *, passages: Sequence[Passages] = ()
    ) -> list[QueuedDocument]:
        """Queue all or none of the documents; an empty one fails at once. Call it in an event loop.

        Args:
            passages: the files that the texts come from, if they do.

        Raises:
            ApiError: if the queue is full, or the service is stopping.
        """
        loop = asyncio.get_running_loop()
        with self._changed:
            if not self.ready:
                raise ApiError(503, "stopping", "the server is stopping", retry_after=5)
            if self._tokens + sum(costs) > self._limits.queue:
                for _ in texts:
                    self._metrics.dropped("queue_full")
                problem = f"the queue is full: {self._documents:,} documents with {self._tokens:,} tokens"
                again = 1 + self._documents // self._limits.batch
                raise ApiError(503, "queue_full", problem, retry_after=again)
            deadline = time.monotonic() + self._limits.seconds
            jobs = [
                QueuedDocument(text, ask, cost, deadline, loop, loop.create_future(), passages=places)
                for text, cost, places in zip(texts, costs, passages or [NOWHERE] * len(texts), strict=True)
            ]
            queued = [job for job in jobs if job.text.strip()]
            self._queue += queued
            self._count(len(queued), sum(job.cost for job in queued))
            self._changed.notify()
        for number, job in enumerate(jobs, start=1):
            if job not in queued:
                self._fail(job, empty_document(number))
        return jobs

    def forget(self, jobs: Sequence[QueuedDocument]) -> None:
        """Drop jobs that no client waits for: remove queued ones, and stop a batch of only such jobs."""
        with self._changed:
            for job in jobs:
                self._give_up(job)
            gone = [job for job in self._queue if job.given_up]
            self._queue = [job for job in self._queue if not job.given_up]
            self._release(gone)

    def stop(self, *, seconds: float) -> bool:
        """Refuse new jobs, finish the queue, and stop; return False if that takes longer than `seconds`."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)
        with self._changed:
            late, self._queue = self._queue, []
        for job in late:
            problem = "the server stopped before this document's turn"
            self._fail(job, ApiError(503, "stopping", problem, retry_after=5))
        return not self._thread.is_alive()

    def _release(self, jobs: Sequence[QueuedDocument]) -> None:
        """Give back the places of jobs in the queue's limit, of each job once."""
        with self._changed:
            held = [job for job in jobs if job.holds_place]
            for job in held:
                job.holds_place = False
            self._count(-len(held), -sum(job.cost for job in held))

    def _count(self, documents: int, tokens: int) -> None:
        self._documents += documents
        self._tokens += tokens
        self._metrics.queued(self._documents, self._tokens)

    def _work(self) -> None:
        while batch := self._next():
            self._finish(batch)

    def _finish(self, batch: list[QueuedDocument]) -> None:
        """Answer the jobs of a batch, whatever happens."""
        started = time.monotonic()
        try:
            self._make(batch)
        except BaseException as error:  # keep serving the others, whatever a library raises
            self._fault(error)
            for job in batch:
                self._fail(job, server_failed())
        finally:
            self._release(batch)
            self._metrics.batch(len(batch), time.monotonic() - started)

    def _take_turn(self, running: list[QueuedDocument]) -> None:
        """Make a batch of short documents while a long one is between two pieces."""
        most = min(max(job.cost for job in running) // _ALIKE, self._limits.together)
        with self._changed:
            short = [
                job
                for job in self._queue
                if job.cost <= most and not job.useless and self._loaded(job.ask.model)
            ]
            if not short:
                return
            batch = self._taken(short)
        self._in_turn = True
        try:
            self._finish(batch)
        finally:
            self._in_turn = False

    def _next(self) -> list[QueuedDocument]:
        """Wait for a batch; return an empty one if the engine has stopped."""
        with self._changed:
            while True:
                late = [job for job in self._queue if job.useless]
                for job in late:
                    self._queue.remove(job)
                    self._release([job])
                    self._give_up(job)
                if self._queue:
                    return self._taken(self._queue)
                if self._stopping:
                    return []
                self._changed.wait()

    def _taken(self, jobs: Sequence[QueuedDocument]) -> list[QueuedDocument]:
        """Take a batch of these jobs out of the queue."""
        batch = _alike(jobs, self._limits)
        taken = set(map(id, batch))
        self._queue = [job for job in self._queue if id(job) not in taken]
        return batch

    def _give_up(self, job: QueuedDocument) -> None:
        """Fail a job because its client left or its deadline has passed."""
        if job.late:
            problem = f"the summary was not ready within {self._limits.seconds:g} seconds"
            again = int(min(60, self._limits.seconds)) + 1
            self._fail(job, ApiError(503, "too_late", problem, retry_after=again))
        else:
            self._fail(job, ApiError(499, "client_left", "the client left"))

    def _fail(self, job: QueuedDocument, refused: ApiError) -> None:
        """Fail a job; only the first reason is reported and counted."""
        with self._changed:
            if job.given_up:
                return
            job.given_up = refused.code
        self._metrics.dropped(refused.code)
        job.finish(refused)

    def _make(self, batch: list[QueuedDocument]) -> None:
        def on_progress(done: int, known: int, written: int) -> None:
            if all(job.useless for job in batch):
                raise _NobodyWaits
            if done < known and not written and not self._in_turn:  # between two pieces
                self._take_turn(batch)

        def on_partial(place: int, beginning: str) -> None:
            batch[place].report_partial(beginning)

        try:
            made = self._summarizer.make(
                [job.document for job in batch], batch[0].ask, on_progress, on_partial
            )
        except _NobodyWaits:
            for job in batch:
                self._give_up(job)
        except Exception as error:
            if len(batch) == 1:
                self._fail(batch[0], self._answer_to(error))
                return
            for job in batch:  # isolate the document that fails
                self._make([job])
        else:
            self._release(batch)  # before the answers: whoever has one may send the next document at once
            for job, summary in zip(batch, made, strict=True):
                job.finish(summary)

    def _answer_to(self, error: Exception) -> ApiError:
        """Return the error for a document that the model could not summarize."""
        if isinstance(error, (UserError, RunError)):
            return ApiError(422, "cannot_be_summarized", str(error))
        self._fault(error)
        return error if isinstance(error, ApiError) else server_failed()


def _alike(queue: Sequence[QueuedDocument], limits: Limits) -> list[QueuedDocument]:
    """Return the oldest job, and later jobs that have the same options and fit its batch.

    Written summaries need documents of similar length, so that none waits for another's steps. Extracts need one pass
    of the encoder for any lengths (`precis.extract.unit_encoder`).
    """
    first = queue[0]
    writes = first.ask.mode == "abstract"
    shortest = longest = total = first.cost
    batch = [first]
    for job in queue[1:]:
        if writes and len(batch) == limits.batch:
            break
        low, high = min(shortest, job.cost), max(longest, job.cost)
        fits = high <= _ALIKE * low if writes else total + job.cost <= limits.together
        if job.ask == first.ask and fits:
            batch.append(job)
            shortest, longest, total = low, high, total + job.cost
    return batch
