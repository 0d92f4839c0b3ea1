"""The web page of a study and its interface.

    POST /api/enter         the token of a link -> a cookie that scripts cannot read
    GET  /api/state         the questions, and the judge's progress
    GET  /api/page/N        a source with two summaries, without names
    GET  /api/passages/N    the source passages that support the summaries' sentences
    POST /api/verdict       saved to disk before the answer

A page of another site can neither read nor send anything. The cookie is SameSite=Strict, and every call needs our own
header. The Host header must be an address that the server was started for; otherwise a name rebound to 127.0.0.1 would
pass. Text is never inserted as HTML: the page sets it as text.
"""

from __future__ import annotations

import asyncio
import hmac
import math
from collections.abc import Awaitable, Callable, Collection
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from precis.server.listener import page_headers
from precis_judge.judging_study import JudgingStudy
from precis_judge.verdicts import VerdictStore
from precis_text.bounded_io import JsonError, parse_json
from precis_text.errors import RunError, UserError
from precis_text.support.marks import SourceText

_MOST_BODY = 1 << 18
_BODY_SECONDS = 20.0  # for a whole body
_JUDGE = "x-precis-judge"  # the number of the judge that the page was opened for; other sites cannot send it
_HEADERS = page_headers()
_FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}

Answer = Callable[[Request], Awaitable[Response]]


class _RefusedError(Exception):
    """An answer other than 200, with a message for the judge."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def make_app(
    store: VerdictStore, *, hosts: Collection[str], on_failure: Callable[[RunError], None] = lambda _: None
) -> FastAPI:
    """Create the application.

    Args:
        hosts: accepted values of the Host header, such as "127.0.0.1:8477".
        on_failure: called when no verdict can be saved any more, so that the server can stop.
    """
    study = store.study
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    cookie = _cookie_name(study)
    judges = study.design.judges

    _guard(app, hosts)

    @app.exception_handler(RunError)
    async def stopped(_: Request, error: RunError) -> Response:
        on_failure(error)
        return _error(503, "cannot save the verdict, and the server stops; contact the owner of the study")

    def judge_of(request: Request) -> str:
        judge = _by_token(study, request.cookies.get(cookie, ""))
        if judge is None:
            raise _RefusedError(401, "open the link that you received")
        if request.headers.get(_JUDGE) != str(judges.index(judge)):
            raise _RefusedError(409, "this browser opened another judge's link; open yours again")
        return judge

    def page_of(request: Request, number: int) -> tuple[str, int]:
        judge = judge_of(request)
        if not 0 <= number <= store.next_page(judge) or number >= len(study.layout.pages[judge]):
            raise _RefusedError(404, "this page does not exist, or an earlier page needs a verdict first")
        return judge, number

    @app.post("/api/enter")
    async def enter(request: Request) -> Response:
        token = (await _body(request)).get("token")
        judge = _by_token(study, token) if isinstance(token, str) else None
        if judge is None:
            raise _RefusedError(401, "this link does not belong to this study; ask for a new one")
        response = JSONResponse({"number": judges.index(judge)})
        response.set_cookie(cookie, study.links[judge], max_age=30 * 86400, httponly=True, samesite="strict")
        return response

    @app.get("/api/state")
    def state(request: Request) -> dict[str, Any]:
        judge = _by_token(study, request.cookies.get(cookie, ""))
        if judge is None:
            raise _RefusedError(401, "open the link that you received")
        criteria = [
            {"key": one.key, "name": one.name, "question": one.question} for one in study.protocol.criteria
        ]
        return {
            "judge": judge, "number": judges.index(judge), "instructions": study.protocol.instructions,
            "criteria": criteria, "pages": len(study.layout.pages[judge]), "next": store.next_page(judge),
        }  # fmt: skip

    @app.get("/api/page/{number}")
    def page(request: Request, number: int) -> dict[str, Any]:
        judge, number = page_of(request, number)
        document, left, right = study.shown(study.layout.pages[judge][number])
        said = store.verdicts.get((judge, number))
        return {
            "page": number, "document": document, "left": left, "right": right,
            "truth": study.truth(study.layout.pages[judge][number]), "choices": said.choices if said else {},
            "reasons": said.reasons if said else {},
        }  # fmt: skip

    @app.get("/api/passages/{number}")
    def passages(request: Request, number: int) -> dict[str, Any]:
        judge, number = page_of(request, number)
        document, left, right = study.shown(study.layout.pages[judge][number])
        source = SourceText(document)
        return {
            side: [
                {
                    "sentence": (one.start, one.end),
                    "sources": [(found.start, found.end) for found in one.aligned],
                }
                for one in source.support(summary).sentences
            ]
            for side, summary in (("left", left), ("right", right))
        }

    @app.post("/api/verdict")
    async def verdict(request: Request) -> dict[str, int]:
        record = await _body(request)
        number = record.get("page")
        judge, number = page_of(request, number if isinstance(number, int) else -1)
        seconds = record.get("seconds")
        kept = isinstance(seconds, int | float) and math.isfinite(seconds)
        await run_in_threadpool(
            store.add, {**record, "judge": judge, "page": number, "seconds": seconds if kept else 0.0}
        )
        return {"next": store.next_page(judge)}

    for path, (name, kind) in _FILES.items():
        content = files(__package__).joinpath("page", name).read_bytes()
        app.add_api_route(path, _sending(content, kind), include_in_schema=False)
    return app


def _guard(app: FastAPI, hosts: Collection[str]) -> None:
    """Accept only requests to `hosts` from our own pages, and answer errors with one line."""

    @app.middleware("http")
    async def guarded(request: Request, answer: Answer) -> Response:
        if request.headers.get("host") not in hosts:
            response: Response = _error(421, "unknown host name; open the address that the server printed")
        elif not _is_own(request, hosts):
            response = _error(403, "requests from other sites are not allowed")
        else:
            response = await answer(request)
        response.headers.update(_HEADERS)
        return response

    @app.exception_handler(_RefusedError)
    async def refused(_: Request, error: _RefusedError) -> Response:
        return _error(error.status, str(error))

    @app.exception_handler(UserError)
    async def unusable(_: Request, error: UserError) -> Response:
        return _error(422, str(error))

    @app.exception_handler(OSError)
    async def unwritten(_: Request, error: OSError) -> Response:
        return _error(503, f"cannot save the verdict: {error.strerror or error}")


def _sending(content: bytes, kind: str) -> Callable[[], Response]:
    def send() -> Response:
        return Response(content, media_type=f"{kind}; charset=utf-8")

    return send


def _cookie_name(study: JudgingStudy) -> str:
    """Return a cookie name for the study: cookies ignore ports, and two studies may be open at once."""
    digest = hmac.new(b"precis", min(study.links.values()).encode(), "sha256").hexdigest()
    return f"precis-judge-{digest[:12]}"


def _is_own(request: Request, hosts: Collection[str]) -> bool:
    """Return whether a call of the interface comes from our page; browsers name the origin."""
    if not request.url.path.startswith("/api/"):
        return True
    origin = request.headers.get("origin")
    if origin is not None and origin not in {f"http://{host}" for host in hosts}:
        return False
    return request.headers.get("sec-fetch-site", "same-origin") == "same-origin" and _JUDGE in request.headers


def _by_token(study: JudgingStudy, token: str) -> str | None:
    """Return the judge of a token, compared in constant time."""
    found = None
    for judge, own in study.links.items():
        if hmac.compare_digest(own.encode(), token.encode("utf-8", "replace")):
            found = judge
    return found


async def _body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise _RefusedError(415, "send JSON")
    content = b""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                content += chunk
                if len(content) > _MOST_BODY:
                    raise _RefusedError(413, f"the request is larger than {_MOST_BODY:,} bytes")
        record = parse_json(content)
    except TimeoutError:
        raise _RefusedError(408, f"the request was not complete after {_BODY_SECONDS:g} s") from None
    except JsonError as error:
        raise _RefusedError(400, f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise _RefusedError(400, "send a JSON object")
    return record


def _error(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=status)
