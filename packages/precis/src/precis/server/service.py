"""The path from a request's documents to their summaries: limits, queue, and clients that disconnect."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Unpack

from fastapi import Request

from precis.generation.model_metadata import Mode
from precis.generation.summarizer import Summary
from precis.phases.use.language_check import in_other_language, trained_on
from precis.server.engine import Ask, Engine, QueuedDocument
from precis.server.file_reader import FileReader
from precis.server.limits import ApiError, Limits
from precis.server.metrics import Metrics
from precis.server.model_pool import ModelPool
from precis.server.response_body import answer, plain
from precis.server.served_model import mode_of
from precis_text.documents.passages import NOWHERE, Passages, text_of
from precis_text.documents.subtitles import as_read
from precis_text.errors import UserError
from precis_text.forms.form import FormType
from precis_text.forms.form_choice import make_form
from precis_text.length import LengthOptions, make_length

_COUNTED_AT_ONCE = 8_192  # characters, whose tokens are counted in milliseconds
_PATIENCE = 10.0  # seconds of silence after which a stream sends a keep-alive


@dataclass(frozen=True)
class Service:
    """The state shared by the routes."""

    models: ModelPool
    engine: Engine
    limits: Limits
    metrics: Metrics
    files: FileReader
    counting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    def model(self, name: str | None) -> str:
        """Return the model that a request names, the first for None; raise `ApiError` if this server lacks it."""
        names = self.models.names
        if name is not None and name not in names:
            problem = f"unknown model; this server has {', '.join(map(repr, names))}"
            raise ApiError(404, "model_not_found", problem, param="model")
        return names[0] if name is None else name

    def ask(
        self,
        *,
        model: str | None,
        mode: Mode | None = None,
        instruction: str | None = None,
        type: FormType | None = None,  # noqa: A002  the name of the option
        about: str | None = None,
        beams: int | None = None,
        **lengths: Unpack[LengthOptions],
    ) -> Ask:
        """Return a request's options as a value; raise `ApiError` if the model is unknown or an option invalid."""
        named = self.model(model)
        try:
            length, form = make_length(**lengths), make_form(type=type, about=about)
            chosen = mode_of(self.models.modes(named), mode)
        except UserError as error:
            raise ApiError(422, "bad_option", str(error)) from None
        for option, value in (("instruction", instruction), ("beams", beams)):
            if value is not None and chosen == "extract":
                problem = f"this mode chooses sentences and does not use {option}; omit {option}"
                raise ApiError(422, "bad_option", problem, param=option)
        if beams is not None and beams > self.limits.beams:
            problem = f"beams={beams}: this server allows at most {self.limits.beams}"
            raise ApiError(422, "bad_option", problem, param="beams")
        if instruction is not None:
            try:
                instruction.encode()
            except UnicodeEncodeError:
                raise ApiError(422, "not_text", "instruction contains half of a character") from None
        return Ask(model=named, mode=chosen, instruction=instruction, length=length, form=form, beams=beams)

    @asynccontextmanager
    async def working(
        self,
        request: Request,
        texts: Sequence[str],
        ask: Ask,
        *,
        param: str = "text",
        passages: Sequence[Passages] = (),
    ) -> AsyncIterator[list[QueuedDocument]]:
        """Queue documents while the body runs; remove them at its end, however it ends."""
        found = passages or await asyncio.to_thread(lambda: [as_read(text) for text in texts])
        texts = [text_of(each) for each in found]
        passages = [each if isinstance(each, Passages) else NOWHERE for each in found]
        costs = await self._tokens(texts, ask.model, param)
        jobs = self.engine.submit([plain(text) for text in texts], costs, ask, passages=passages)
        request.state.facts = {"documents": len(jobs), "tokens": sum(costs), "mode": ask.mode}
        try:
            yield jobs
        finally:
            self.engine.forget([job for job in jobs if not job.done.done()])

    async def _tokens(self, texts: Sequence[str], model: str, param: str) -> list[int]:
        """Return the tokens of each document, at least 1; long ones are counted outside the event loop."""
        counter = self.models.counter(model)
        if sum(map(len, texts)) <= _COUNTED_AT_ONCE:
            self.limits.check(texts, counter, param=param)
            counts = counter.count(texts)
        else:
            await asyncio.to_thread(self.limits.check, texts, counter, param=param)
            async with self.counting:
                counts = await asyncio.to_thread(counter.count, texts)
        self.limits.check_tokens(counts, param=param)
        return [max(1, count) for count in counts]

    async def partial_summaries(self, job: QueuedDocument) -> AsyncIterator[str]:
        """Yield the first sentences of a summary whenever there are more, and "" after some seconds of silence."""
        while not job.done.done() and (left := job.deadline - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(job.news.wait(), min(left, _PATIENCE))
            except TimeoutError:
                yield ""
                continue
            job.news.clear()
            if job.written and not job.done.done():
                yield job.written

    async def result(self, job: QueuedDocument) -> Summary:
        """Wait for a summary; raise `ApiError` if it failed or is late."""
        try:
            left = max(0.0, job.deadline - time.monotonic()) + 1
            summary = await asyncio.wait_for(asyncio.shield(job.done), left)
        except TimeoutError:
            problem = f"the summary was not ready within {self.limits.seconds:g} seconds"
            raise ApiError(503, "too_late", problem, retry_after=30) from None  # the engine counts it
        if not summary.document_tokens:
            self.metrics.dropped("no_tokens")
            raise ApiError(422, "no_tokens", "the document contains no tokens that the model knows")
        self.metrics.summarized(summary.mode, read=summary.tokens_read, written=summary.summary_tokens)
        return summary

    async def answer(self, index: int, job: QueuedDocument, *, support: bool) -> dict[str, Any]:
        """Wait for a summary, and return it as JSON."""
        summary = await self.result(job)
        languages = self.models.languages(job.ask.model)
        seems = in_other_language(job.text, languages) if languages else ""
        other = f"The document {seems}: {trained_on(languages)}." if seems else ""
        if not support:
            return answer(index, job.text, summary, support=False, other=other)
        return await asyncio.to_thread(answer, index, job.text, summary, support=True, other=other)


class ClientLeftError(Exception):
    """The client closed the connection before its answer was ready."""


async def unless_left(request: Request, work: Any) -> Any:
    """Return the result of `work`; cancel it, and raise `ClientLeftError`, when the client leaves."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientLeftError
    finally:
        for one in (task, leaving):
            one.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
