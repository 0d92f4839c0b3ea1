"""The application: routes, errors, the page, and the gate in front of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import anyio
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from precis.server import openai_routes, summarize_routes
from precis.server.asgi_request import App, Receive, Scope, Send, error_body, note_code
from precis.server.engine import Engine
from precis.server.file_reader import FileReader
from precis.server.limits import ApiError, Limits, server_failed
from precis.server.logs import fault
from precis.server.metrics import Metrics
from precis.server.middleware import OPEN, Access, Gate
from precis.server.model_pool import ModelPool
from precis.server.service import ClientLeftError, Service
from precis.version import __version__
from precis_text.documents.file_kinds import KINDS

_PAGE = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
_OPENAI = ("/v1/chat/completions", "/v1/responses")
_EXAMPLE = error_body(ApiError(413, "document_too_long", "document 1 has about 200,000 tokens"))
_ERROR = {
    "description": "An error; its message says what is wrong and how to fix it.",
    "content": {"application/json": {"example": _EXAMPLE}},
}


def make_app(
    models: ModelPool, *, limits: Limits, access: Access, grace: float = 30.0, prefix: str = ""
) -> App:
    """Return the service as an ASGI application.

    Args:
        models: the models, each loaded once (`ModelPool.load_all`).
        grace: seconds for queued work to finish when the service stops.
        prefix: the path under which a proxy shows the service, as "/precis"; the proxy may remove it or not.
    """
    metrics = Metrics()
    engine = Engine(models, limits, metrics, fault, loaded=lambda name: name in models.loaded)
    files = FileReader(limits)
    service = Service(models, engine, limits, metrics, files)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        engine.start()
        yield
        files.stop()
        await anyio.to_thread.run_sync(lambda: engine.stop(seconds=grace))

    statuses: Any = dict.fromkeys((400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503), _ERROR)
    app = FastAPI(
        title="precis", version=__version__, description="Summaries of documents, created on this machine.",
        lifespan=life, docs_url=None, redoc_url=None, responses=statuses,
        servers=[{"url": prefix}] if prefix else None,
    )  # fmt: skip
    app.include_router(summarize_routes.routes(service))
    app.include_router(openai_routes.routes(service))
    _add_facts(app, service)
    _add_page(app)
    _add_errors(app)
    if access.keys is not None:
        _say_that_keys_are_needed(app)
    routes = (
        frozenset(str(getattr(route, "path", "")) for route in app.routes) | app.openapi()["paths"].keys()
    )
    gate = Gate(app, access=access, limits=limits, metrics=metrics, routes=routes)
    guarded = _open_to(access.origins, gate) if access.origins else gate
    return under(prefix, guarded) if prefix else guarded


def _open_to(origins: frozenset[str], app: App) -> App:
    """Let pages of other sites send requests and see the answers."""
    shared: Any = CORSMiddleware(
        app, allow_origins=sorted(origins), allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type"], expose_headers=["retry-after", "x-request-id"],
    )  # fmt: skip
    return shared


def _say_that_keys_are_needed(app: FastAPI) -> None:
    """Add keys to the complete schema; the gate enforces them."""
    schema = app.openapi()
    schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            operation["security"] = [] if path in OPEN else [{"key": []}]


def _add_facts(app: FastAPI, service: Service) -> None:
    limits = service.limits

    def entry(name: str) -> dict[str, Any]:
        modes = service.models.modes(name)
        facts = {
            "modes": list(modes), "takes_instruction": "abstract" in modes,
            "max_document_tokens": limits.tokens, "max_body_bytes": limits.body,
            "max_files_bytes": limits.files,
            "file_endings": sorted({ending for kind in KINDS for ending in kind.endings}),
            "max_documents": limits.documents, "max_beams": limits.beams,
            "loaded": name in service.models.loaded,
        }  # fmt: skip
        return {"id": name, "object": "model", "created": 0, "owned_by": "precis", "precis": facts}

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Report that the process is running."""
        return {"status": "ok"}

    @app.get("/ready")
    async def ready() -> dict[str, str]:
        """Report whether the service accepts documents."""
        if not service.engine.ready:
            raise ApiError(503, "not_ready", "the server does not accept documents now", retry_after=5)
        return {"status": "ready"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """Return the models, their modes, and the limits of this server; the first one is the default."""
        return {"object": "list", "data": [entry(name) for name in service.models.names]}

    @app.get("/v1/models/{model:path}")
    async def model(model: str) -> dict[str, Any]:
        """Return one entry of /v1/models."""
        return entry(service.model(model))

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Return counters for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_page(app: FastAPI) -> None:
    folder = files("precis.server") / "page"
    for path, (name, kind) in _PAGE.items():
        app.add_api_route(path, _fixed((folder / name).read_bytes(), kind), include_in_schema=False)


def _fixed(content: bytes, kind: str) -> Any:
    async def give() -> Response:
        return Response(content, media_type=kind)

    return give


def _add_errors(app: FastAPI) -> None:
    async def refused(request: Request, error: Any) -> Response:
        note_code(request.scope, error)
        status = 400 if error.status == 422 and request.url.path in _OPENAI else error.status
        headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return JSONResponse(error_body(error), status_code=status, headers=headers)

    async def invalid(request: Request, error: Any) -> Response:
        # The error of the matching type is the most useful. Do not show `input`, which may contain a document.
        first = min(error.errors(), key=lambda one: one["type"].endswith(("_type", "json_invalid")))
        place = ".".join(str(part) for part in first["loc"][1:] if "[" not in str(part))[:200]
        text = f"{place}: {first['msg']}" if place else first["msg"]
        if not place and first["type"] == "model_attributes_type":
            text = "the body is not a JSON object; send one with the header Content-Type: application/json"
        if first["type"] == "json_invalid":
            place, text = "", f"the body is not valid JSON: {first['ctx']['error']} at character {place}"
        return await refused(request, ApiError(422, first["type"], text, param=place or None))

    async def http(request: Request, error: Any) -> Response:
        message = {404: "this path does not exist", 405: "this path does not support this method"}
        text = message.get(error.status_code, "the request is not valid JSON")
        answer = await refused(request, ApiError(error.status_code, "bad_request", text))
        answer.headers.update(error.headers or {})
        return answer

    async def left(request: Request, error: Any) -> Response:
        note_code(request.scope, ApiError(499, "client_left", "the client left"))
        return Response(status_code=499)  # only for metrics and logs

    async def failed(request: Request, error: Any) -> Response:
        return await refused(request, server_failed())

    app.add_exception_handler(ApiError, refused)
    app.add_exception_handler(Exception, failed)  # the gate logs it
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(ClientLeftError, left)


def under(prefix: str, app: App) -> App:
    """Return the application under a prefix, as "/precis"; its paths without the prefix stay.

    A request of the prefix itself is sent to the prefix with a slash, so that relative links of the page hold.
    """

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and path == prefix:
            headers = [(b"location", f"{prefix}/".encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 307, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        if path.startswith(f"{prefix}/"):
            rest = path[len(prefix) :]
            scope = {**scope, "path": rest, "raw_path": rest.encode()}
        await app(scope, receive, send)

    return asked
