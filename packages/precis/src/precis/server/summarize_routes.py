"""The routes `/v1/summarize`, for JSON and for files as multipart/form-data, and `/v1/documents`, which reads files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.routing import Match

from precis.server.asgi_request import error_body
from precis.server.engine import QueuedDocument
from precis.server.file_reader import FileRequest
from precis.server.limits import ApiError
from precis.server.response_body import answer, sentences_of
from precis.server.schemas import SUMMARY, TEXT, DocumentsAnswer, SummarizeAnswer, SummarizeRequest, shown
from precis.server.service import Service, unless_left
from precis_text.documents.passages import Passages
from precis_text.length import LENGTH_OPTIONS
from precis_text.support.marks import SourceText

_Queued = AbstractAsyncContextManager[list[QueuedDocument]]
WORKING = ": working\n\n"  # a comment, which clients ignore
_NUMBERS = ("words", "sentences", "tokens", "min_words", "beams")
_SWITCHES = {"true": True, "false": False}
_FILES = {"type": "array", "items": {"type": "string", "format": "binary"}}
_SCHEMA = {"type": "object", "required": ["file"], "properties": {"file": _FILES}}
_FORM = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _SCHEMA}}}}


class _FormRoute(APIRoute):
    """A route only for forms; the one for JSON has the same path."""

    def matches(self, scope: Any) -> tuple[Match, Any]:
        match, child = super().matches(scope)
        kind = dict(scope.get("headers", ())).get(b"content-type", b"")
        return (match, child) if kind.lower().startswith(b"multipart/form-data") else (Match.NONE, {})


def routes(service: Service) -> APIRouter:
    """Return the native API of a service."""
    router = APIRouter()
    examples = shown(*_examples(service.model(None)))

    @router.post("/v1/documents", response_model=DocumentsAnswer, openapi_extra=_FORM)
    async def documents(request: Request) -> Any:
        """Read files of every kind that the command line reads, and return their texts."""
        form = await service.files.form(request)
        for name in form.options:
            raise ApiError(422, "bad_form", "this path takes only files", param=name[:50])
        found = await unless_left(request, service.files.read(form.files))
        return {"documents": _described(form, found)}

    async def summarize_files(request: Request) -> Any:
        """Summarize files; the options are fields of the form."""
        form = await service.files.form(request)
        body = _options(form)
        found = await unless_left(request, service.files.read(form.files))
        body.text = [one.text for one in found]
        return await _respond(service, request, body, documents=_described(form, found), passages=found)

    router.add_api_route(
        "/v1/summarize",
        summarize_files,
        methods=["POST"],
        include_in_schema=False,  # the route for JSON describes both
        route_class_override=_FormRoute,
    )

    @router.post(
        "/v1/summarize", response_model=SummarizeAnswer, response_model_exclude_unset=True, responses=examples
    )
    async def summarize(body: SummarizeRequest, request: Request) -> Any:
        """Summarize one or more documents. With `stream`, each sentence is an event.

        Files are sent as multipart/form-data: each in a field `file`, the options as further fields.
        """
        return await _respond(service, request, body)

    return router


async def _respond(
    service: Service,
    request: Request,
    body: SummarizeRequest,
    *,
    documents: Sequence[dict[str, Any]] = (),
    passages: Sequence[Passages] = (),
) -> Response:
    """Answer a request.

    Args:
        documents: the files that the texts of the request come from, which the answer names.
        passages: the same files with their headings and times.
    """
    lengths = body.model_dump(include={*LENGTH_OPTIONS})
    ask = service.ask(
        model=body.model, mode=body.mode, instruction=body.instruction, type=body.type, about=body.about,
        beams=body.beams, **lengths,
    )  # fmt: skip
    texts = [body.text] if isinstance(body.text, str) else body.text
    queued = service.working(request, texts, ask, passages=passages)
    identity, names = f"sum-{request.state.id}", [document["name"] for document in documents]
    try:
        if body.stream:
            return await streamed(_events(service, queued, identity, documents, support=body.support))
        found = await unless_left(request, _all(service, queued, names, support=body.support))
    except ApiError as refused:
        raise refused.of(names) from None
    if len(found) == 1 and isinstance(found[0], ApiError):
        raise found[0]
    summaries = [_one(index, each) for index, each in enumerate(found)]
    named = {"id": identity, "model": ask.model}
    files = {"documents": [*documents]} if documents else {}
    return JSONResponse({**named, **files, "summaries": summaries})


def _examples(model: str) -> tuple[dict[str, Any], str]:
    """Return an example answer, as JSON and as a stream of events."""
    one = answer(0, TEXT, SUMMARY, support=True)
    parts = [event("start", {"id": "sum-1", "documents": 1})]
    parts += [event("sentence", {"index": 0, **sentence}) for sentence in one["sentences"]]
    parts += [event("summary", one), event("done", {"documents": 1})]
    return {"id": "sum-1", "model": model, "summaries": [one]}, "".join(parts)


async def _all(service: Service, queued: _Queued, names: Sequence[str], *, support: bool) -> list[Any]:
    async with queued as jobs:
        answers = (service.answer(index, job, support=support) for index, job in enumerate(jobs))
        found = await asyncio.gather(*answers, return_exceptions=True)
    found = [
        each.of(names, index) if isinstance(each, ApiError) else each for index, each in enumerate(found)
    ]
    for each in found:
        if isinstance(each, BaseException) and not (isinstance(each, ApiError) and each.status == 422):
            raise each
    return found


def _one(index: int, found: Any) -> dict[str, Any]:
    return {"index": index, **error_body(found)} if isinstance(found, ApiError) else found


def event(name: str, value: Any) -> str:
    """Return one server-sent event."""
    return f"event: {name}\ndata: {json.dumps(value)}\n\n"


async def streamed(events: AsyncGenerator[str]) -> StreamingResponse:
    """Stream events. An error before the first one gets a normal answer."""
    first = await anext(events)

    async def parts() -> AsyncIterator[str]:
        async with aclosing(events):  # stop at once if the client leaves
            yield first
            async for part in events:
                yield part

    return StreamingResponse(parts(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _events(
    service: Service, queued: _Queued, identity: str, documents: Sequence[dict[str, Any]], *, support: bool
) -> AsyncGenerator[str]:
    async with queued as jobs:
        yield event("start", {"id": identity, "documents": len(jobs)})
        for index, document in enumerate(documents):
            yield event("document", {"index": index, **document})
        for index, job in enumerate(jobs):
            source, sent = None, 0
            try:
                async for beginning in service.partial_summaries(job):
                    if not beginning:
                        yield WORKING
                        continue
                    if support and source is None:
                        source = await asyncio.to_thread(SourceText, job.text)
                    known = await asyncio.to_thread(sentences_of, beginning, source)
                    for sentence in (one for one in known["sentences"] if one["start"] >= sent):
                        yield event("sentence", {"index": index, **sentence})
                    sent = len(beginning)
                found = await service.answer(index, job, support=support)
            except ApiError as refused:
                named = refused.of([one["name"] for one in documents], index)
                yield event("error", _one(index, named))
                continue
            for sentence in (one for one in found["sentences"] if one["start"] >= sent):
                yield event("sentence", {"index": index, **sentence})
            yield event("summary", found)
        yield event("done", {"documents": len(jobs)})


def _described(form: FileRequest, found: list[Passages]) -> list[dict[str, Any]]:
    """Return the name, the text and the omissions of each file."""
    return [
        {"name": name, "text": one.text, "notes": [*one.notes]}
        for (name, _), one in zip(form.files, found, strict=True)
    ]


def _options(form: FileRequest) -> SummarizeRequest:
    """Return a form's options, checked as JSON's; raise `RequestValidationError` for an unknown or invalid one."""
    if "text" in form.options:
        raise ApiError(422, "bad_form", "send files or text, not both", param="text")
    options = {name: _value(name, text) for name, text in form.options.items()}
    try:
        return SummarizeRequest(text="-", **options)
    except ValidationError as error:
        errors = [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_input=False)]
        raise RequestValidationError(errors) from None


def _value(name: str, text: str) -> Any:
    if name in _NUMBERS and text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return _SWITCHES.get(text, text) if name in ("support", "stream") else text
