"""The routes `/v1/chat/completions` and `/v1/responses`, for programs written for OpenAI's API.

The last user message is the document. A system message is the instruction, if the model supports one. Parameters that
do not apply to summaries (temperature, empty tools, ...) are ignored; a request for more than one answer is refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Iterator
from itertools import count, pairwise
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, field_validator

from precis.generation.summarizer import Summary
from precis.server.asgi_request import error_body
from precis.server.engine import Ask
from precis.server.limits import ApiError
from precis.server.response_body import answer
from precis.server.schemas import SUMMARY, TEXT, Count, shown
from precis.server.service import Service, unless_left
from precis.server.summarize_routes import WORKING, event, streamed

_MOST_TOKENS = 20_000
Most = Annotated[StrictInt | None, Field(ge=1, le=10_000_000)]
"""A limit of tokens. Programs send more than the length of any summary, which limits nothing."""


class ContentPart(BaseModel):
    """A part of a message; only text is supported."""

    type: StrictStr
    text: StrictStr | None = None


class InputItem(BaseModel):
    """A message. A call of a tool lacks content, and its answer has the role tool; neither is the document."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: StrictStr | Annotated[list[ContentPart], Field(fail_fast=True)] | None = None

    def read(self, param: str) -> str:
        """Return the message's text; raise `ApiError` if a part is not text."""
        if self.content is None:
            problem = f"the {self.role} message lacks content"
            raise ApiError(400, "no_document", problem, param=param)
        if isinstance(self.content, str):
            return self.content
        for part in self.content:
            if part.type not in ("text", "input_text", "output_text") or part.text is None:
                raise ApiError(400, "unsupported_content", "only text can be summarized", param=param)
        return "\n".join(part.text or "" for part in self.content)


class _Common(BaseModel):
    model: StrictStr
    stream: StrictBool | None = False
    words: Count = None
    sentences: Annotated[StrictInt | None, Field(ge=1, le=1000)] = None
    mode: Literal["abstract", "extract"] | None = None


class ChatStreamOptions(BaseModel):
    """Options of a stream: with `include_usage`, its last chunk counts tokens."""

    include_usage: StrictBool | None = None


class ChatRequest(_Common):
    """A chat; the service summarizes its last user message."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "default", "messages": [{"role": "user", "content": TEXT}]}]
        }
    )
    messages: Annotated[list[InputItem], Field(min_length=1, max_length=1000, fail_fast=True)]
    max_tokens: Most = None
    max_completion_tokens: Most = None
    n: Annotated[StrictInt | None, Field(ge=1, le=1)] = None
    stream_options: ChatStreamOptions | None = None


class ResponsesRequest(_Common):
    """An input to summarize."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "default", "input": TEXT}]})
    input: StrictStr | Annotated[list[InputItem], Field(min_length=1, max_length=1000, fail_fast=True)]
    instructions: StrictStr | None = None
    max_output_tokens: Most = None

    @field_validator("input", mode="before")
    @classmethod
    def _without_tools(cls, value: Any) -> Any:
        """Leave out calls of tools, their answers and reasoning, which are not messages."""
        return [item for item in value if not _is_of_tool(item)] if isinstance(value, list) else value


def _is_of_tool(item: Any) -> bool:
    kind = item.get("type") if isinstance(item, dict) and "role" not in item else None
    return isinstance(kind, str) and kind != "message"


def routes(service: Service) -> APIRouter:
    """Return the OpenAI-compatible API of a service."""
    router = APIRouter()

    @router.post("/v1/chat/completions", responses=_examples(_Chat("chatcmpl-1", service.model(None), 0)))
    async def chat(body: ChatRequest, request: Request) -> Any:
        """Summarize the last user message."""
        system, document = _parts(body.messages, "messages")
        limit = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
        ask = _ask(service, body, system, limit)
        chunks = _Chat(f"chatcmpl-{request.state.id}", ask.model, int(time.time()))
        if body.stream:
            usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            return await streamed(_stream(service, request, document, ask, chunks, usage=usage))
        summary = await unless_left(request, _summary(service, request, document, ask))
        return JSONResponse(chunks.whole(summary))

    @router.post("/v1/responses", responses=_examples(_Responses("1", service.model(None), 0)))
    async def responses(body: ResponsesRequest, request: Request) -> Any:
        """Summarize the input."""
        items = [InputItem(role="user", content=body.input)] if isinstance(body.input, str) else body.input
        system, document = _parts(items, "input")
        ask = _ask(service, body, body.instructions or system, body.max_output_tokens)
        events = _Responses(request.state.id, ask.model, int(time.time()))
        if body.stream:
            return await streamed(_stream(service, request, document, ask, events, usage=True))
        summary = await unless_left(request, _summary(service, request, document, ask))
        return JSONResponse(events.whole(summary))

    return router


def _examples(form: _Chat | _Responses) -> dict[int | str, dict[str, Any]]:
    parts = [*form.begin(), form.delta(SUMMARY.text), *form.end(SUMMARY, usage=True)]
    return shown(form.whole(SUMMARY), "".join(parts))


def _parts(items: list[InputItem], param: str) -> tuple[str, str]:
    """Return the instruction and the document of a chat."""
    user = [item for item in items if item.role == "user"]
    if not user:
        raise ApiError(400, "no_document", "the request lacks a user message to summarize", param=param)
    system = [item.read(param) for item in items if item.role in ("system", "developer")]
    return "\n".join(system), user[-1].read(param)


def _ask(service: Service, body: _Common, system: str, tokens: int | None) -> Ask:
    """Build the options: extraction ignores the instruction, and words or sentences override tokens."""
    mode = body.mode or service.models.modes(service.model(body.model))[0]
    is_free = body.words is None and body.sentences is None
    capped = min(tokens, _MOST_TOKENS) if tokens is not None and is_free else None
    if len(system) > 2000:
        raise ApiError(400, "bad_option", "an instruction has at most 2,000 characters")
    instruction = system if system and mode == "abstract" else None
    return service.ask(
        model=body.model, mode=mode, instruction=instruction, words=body.words, sentences=body.sentences,
        tokens=capped,
    )  # fmt: skip


async def _summary(service: Service, request: Request, document: str, ask: Ask) -> Summary:
    async with service.working(request, [document], ask, param="messages") as (job,):
        return await service.result(job)


async def _stream(
    service: Service, request: Request, document: str, ask: Ask, form: _Chat | _Responses, *, usage: bool
) -> AsyncGenerator[str]:
    async with service.working(request, [document], ask, param="messages") as (job,):
        for part in form.begin():
            yield part
        sent = ""
        try:
            async for beginning in service.partial_summaries(job):
                yield form.delta(beginning[len(sent) :]) if beginning else WORKING
                sent = beginning or sent
            summary = await service.result(job)
        except ApiError as refused:
            yield form.failed(refused)
            return
        for delta in _deltas(job.text, summary, len(sent)):
            yield form.delta(delta)
        for part in form.end(summary, usage=usage):
            yield part


def _deltas(document: str, summary: Summary, sent: int) -> list[str]:
    """Return the unsent rest of a summary, sentence by sentence."""
    text = summary.text
    starts = (one["start"] for one in answer(0, document, summary, support=False)["sentences"])
    cuts = [sent, *(start for start in starts if text[sent:start].strip()), len(text)]
    return [text[start:stop] for start, stop in pairwise(cuts) if start < stop]


def _usage(summary: Summary, names: tuple[str, str]) -> dict[str, int]:
    read, written = summary.tokens_read, summary.summary_tokens
    return {names[0]: read, names[1]: written, "total_tokens": read + written}


_CHAT_USAGE = ("prompt_tokens", "completion_tokens")


class _Chat:
    """The answers of /v1/chat/completions."""

    def __init__(self, identity: str, model: str, created: int) -> None:
        self._named = {"id": identity, "created": created, "model": model}

    def whole(self, summary: Summary) -> dict[str, Any]:
        message = {"role": "assistant", "content": summary.text, "refusal": None}
        reason = "stop" if summary.finished else "length"
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        usage = _usage(summary, _CHAT_USAGE)
        return {**self._named, "object": "chat.completion", "choices": [choice], "usage": usage}

    def begin(self) -> Iterator[str]:
        yield self._chunk({"role": "assistant", "content": ""})

    def delta(self, text: str) -> str:
        return self._chunk({"content": text})

    def end(self, summary: Summary, *, usage: bool) -> Iterator[str]:
        yield self._chunk({}, "stop" if summary.finished else "length")
        if usage:
            counted = {"choices": [], "usage": _usage(summary, _CHAT_USAGE)}
            yield _data({**self._named, "object": "chat.completion.chunk", **counted})
        yield "data: [DONE]\n\n"

    def failed(self, refused: ApiError) -> str:
        return _data(error_body(refused))

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _data({**self._named, "object": "chat.completion.chunk", "choices": [choice]})


def _data(value: Any) -> str:
    return f"data: {json.dumps(value)}\n\n"


class _Responses:
    """The answers of /v1/responses."""

    def __init__(self, identity: str, model: str, created: int) -> None:
        self._id, self._model, self._created = identity, model, created
        self._numbers = count()
        self._place = {"item_id": f"msg_{identity}", "output_index": 0, "content_index": 0}

    def whole(self, summary: Summary) -> dict[str, Any]:
        usage: dict[str, Any] = _usage(summary, ("input_tokens", "output_tokens"))
        usage |= {
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        status = "completed" if summary.finished else "incomplete"
        more = {} if summary.finished else {"incomplete_details": {"reason": "max_output_tokens"}}
        return {
            **self._response(status),
            **more,
            "output": [self._item(summary.text, status)],
            "usage": usage,
        }

    def begin(self) -> Iterator[str]:
        yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))
        item = {**self._item("", "in_progress"), "content": []}
        yield self._event("response.output_item.added", output_index=0, item=item)
        yield self._event("response.content_part.added", **self._place, part=_output(""))

    def delta(self, text: str) -> str:
        return self._event("response.output_text.delta", **self._place, delta=text, logprobs=[])

    def end(self, summary: Summary, *, usage: bool) -> Iterator[str]:
        whole, text = self.whole(summary), summary.text
        yield self._event("response.output_text.done", **self._place, text=text, logprobs=[])
        yield self._event("response.content_part.done", **self._place, part=_output(text))
        yield self._event("response.output_item.done", output_index=0, item=whole["output"][0])
        yield self._event(f"response.{whole['status']}", response=whole)

    def failed(self, refused: ApiError) -> str:
        error = {"code": "server_error", "message": refused.message}
        return self._event("response.failed", response={**self._response("failed"), "error": error})

    def _event(self, name: str, **values: Any) -> str:
        return event(name, {"type": name, "sequence_number": next(self._numbers), **values})

    def _item(self, text: str, status: str) -> dict[str, Any]:
        named = {"id": self._place["item_id"], "type": "message", "status": status, "role": "assistant"}
        return {**named, "content": [_output(text)]}

    def _response(self, status: str) -> dict[str, Any]:
        return {
            "id": f"resp_{self._id}", "object": "response", "created_at": self._created, "status": status,
            "model": self._model, "output": [], "error": None, "incomplete_details": None,
            "instructions": None, "metadata": {}, "parallel_tool_calls": False, "temperature": None,
            "tool_choice": "none", "tools": [], "top_p": None,
        }  # fmt: skip


def _output(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
