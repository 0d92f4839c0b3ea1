"""The routes for files: `/v1/documents` reads them, and `/v1/summarize` takes them as multipart/form-data."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.routing import Match

from precis.server.file_reader import FileRequest
from precis.server.limits import ApiError
from precis.server.schemas import DocumentsAnswer, SummarizeRequest
from precis.server.service import Service, unless_left
from precis.server.summarize_routes import respond
from precis_text.documents.passages import Passages

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
    """Return the routes for files of a service."""
    router = APIRouter()

    @router.post("/v1/documents", response_model=DocumentsAnswer, openapi_extra=_FORM)
    async def documents(request: Request) -> Any:
        """Read files of every kind that the command line reads, and return their texts."""
        form = await service.files.form(request)
        for name in form.options:
            raise ApiError(422, "bad_form", "this path takes only files", param=name[:50])
        found = await unless_left(request, service.files.read(form.files))
        return {"documents": described(form, found)}

    async def summarize(request: Request) -> Any:
        """Summarize files; the options are fields of the form."""
        form = await service.files.form(request)
        body = _options(form)
        found = await unless_left(request, service.files.read(form.files))
        body.text = [one.text for one in found]
        return await respond(service, request, body, documents=described(form, found), passages=found)

    router.add_api_route(
        "/v1/summarize",
        summarize,
        methods=["POST"],
        include_in_schema=False,  # the route for JSON describes both
        route_class_override=_FormRoute,
    )
    return router


def described(form: FileRequest, found: list[Passages]) -> list[dict[str, Any]]:
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
