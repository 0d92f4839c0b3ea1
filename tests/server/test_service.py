"""What `/v1/summarize` promises: answers equal to those made alone, limits, and nothing lost or leaked."""

import asyncio
import inspect
import json
import logging
import random
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from fastapi import FastAPI

from precis.cli.commands import serve_command
from precis.generation.summarizer import Summarizer, Summary
from precis.server import asgi_app
from precis.server.connections import ConnectionLimits
from precis.server.engine import Ask, Engine, QueuedDocument
from precis.server.limits import ApiError, Limits
from precis.server.listener import Address
from precis.server.metrics import Metrics
from precis.server.middleware import Access
from precis.server.schemas import SummarizeAnswer, SummarizeRequest
from precis.server.served_model import ServedModel
from precis.server.service import ClientLeftError, Service, plain  # type: ignore[attr-defined]
from precis.server.summarize_routes import _all, _one, _respond
from precis_text.documents.subtitles import as_read
from precis_text.errors import UserError
from tests.server.conftest import Serve, SlowModel
from tests.server_of_tests import Running
from tests.tiny_models import documents, save


def post(service: Running, value: object, path: str = "/v1/summarize", **options: Any) -> httpx.Response:
    with service.client(**options) as client:
        return client.post(path, json=value)


@pytest.mark.long
def test_summaries_of_a_loaded_service_equal_those_made_alone(
    serve: Serve, served_model: ServedModel
) -> None:
    service = serve(limits=Limits(batch=6))
    texts = [text[: random.Random(n).randint(40, len(text))] for n, text in enumerate(documents(24))]
    assert isinstance(served_model.writer, Summarizer)
    alone = [served_model.writer.summarize([text], words=12)[0] for text in texts]

    def one(text: str) -> dict:
        return post(service, {"text": text, "words": 12}).json()["summaries"][0]

    with ThreadPoolExecutor(24) as pool:
        made = list(pool.map(one, texts))
    assert [one["summary"] for one in made] == [summary.text for summary in alone]
    assert [one["read"]["tokens_read"] for one in made] == [summary.tokens_read for summary in alone]
    with service.client() as client:
        text = client.get("/metrics").text
    batches = float(text.split("precis_batch_documents_count ")[1].split()[0])
    assert batches < len(texts)  # some were made together


def test_a_list_keeps_its_order_and_says_which_has_no_summary(service: Running) -> None:
    one, two = documents(2)
    answer = post(service, {"text": [one, two], "words": 10}).json()
    assert [each["index"] for each in answer["summaries"]] == [0, 1]
    alone = post(service, {"text": two, "words": 10}).json()["summaries"][0]
    assert answer["summaries"][1]["summary"] == alone["summary"]


def test_a_stream_gives_each_sentence_and_then_the_whole(service: Running) -> None:
    text = documents(1)[0]
    whole = post(service, {"text": text, "words": 20, "support": True}).json()["summaries"][0]
    lines = post(service, {"text": text, "words": 20, "support": True, "stream": True}).text
    events = [part.split("\n") for part in lines.strip().split("\n\n")]
    names = [name.removeprefix("event: ") for name, _ in events]
    assert (names[0], names[-2:]) == ("start", ["summary", "done"])
    said = [json.loads(data.removeprefix("data: ")) for name, data in events if name == "event: sentence"]
    assert [{**each, "index": 0} for each in whole["sentences"]] == said
    assert json.loads(events[-2][1].removeprefix("data: ")) == whole


def test_subtitles_that_are_sent_as_text_are_read_like_their_file(service: Running) -> None:
    said = documents(1)[0].split(". ")
    cues = [f"{n}\n00:0{n}:00,000 --> 00:0{n}:05,000\nAnn: {each}.\n" for n, each in enumerate(said[:9])]
    sent = [
        post(service, {"text": text, "words": 15})
        for text in ("\n".join(cues), as_read("\n".join(cues)).text)
    ]
    assert sent[0].json()["summaries"] == sent[1].json()["summaries"]


def test_support_names_passages_of_the_document_as_it_was_sent(service: Running) -> None:
    text = documents(1)[0].replace(" ", " \U0001f600", 1) + "\x1f\x1e end"
    made = post(service, {"text": text, "words": 15, "support": True}).json()["summaries"][0]
    passages = [passage for sentence in made["sentences"] for passage in sentence["support"]]
    for passage in passages:
        assert " ".join(plain(text)[passage["start"] : passage["end"]].split()) == passage["text"]


@pytest.mark.parametrize(
    ("value", "status", "code"),
    [
        ({"text": "a", "words": 10**9}, 422, "less_than_equal"),
        ({"text": "a", "words": 0}, 422, "greater_than_equal"),
        ({"text": "a", "words": 3, "sentences": 2}, 422, "bad_option"),
        ({"text": " \n"}, 422, "empty_document"),
        ({"text": []}, 422, "too_short"),
        ({"text": ["a"] * 65}, 413, "too_many_documents"),
        ({"text": "a b " * 200_000}, 413, "document_too_long"),
        ({"text": ["a b " * 50_000] * 6}, 413, "documents_too_long"),
        ({"text": "a", "mode": "extract"}, 422, "bad_option"),
        ({"text": "a", "model": "other"}, 404, "model_not_found"),
        ({"text": "a", "colour": 1}, 422, "extra_forbidden"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    service: Running, value: dict[str, Any], status: int, code: str
) -> None:
    started = time.monotonic()
    answer = post(service, value)
    assert time.monotonic() - started < 5
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert len(error["message"]) > 10


def test_an_empty_text_of_a_list_has_an_error_in_its_place(service: Running) -> None:
    text = documents(1)[0]
    answer = post(service, {"text": [text, " ", text], "words": 15})
    assert answer.status_code == 200
    first, second, third = answer.json()["summaries"]
    assert second["index"] == 1
    assert second["error"]["message"] == "document 2 is empty"
    assert first["summary"] == third["summary"]
    assert post(service, {"text": ["", ""]}).json()["error"]["code"] == "empty_document"


def test_a_body_that_is_not_json_is_refused_with_its_place(service: Running) -> None:
    with service.client() as client:
        answer = client.post("/v1/summarize", content=b"{bad", headers={"content-type": "application/json"})
    said = "the body is not valid JSON: Expecting property name enclosed in double quotes at character 1"
    assert answer.json()["error"]["message"] == said
    assert answer.json()["error"]["param"] is None


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[" * 100_000, b'{"text": "\\ud800 is half"}', b'{"text": NaN}', b"\xff\xfe", b"1" * 5000],
)
def test_no_body_breaks_it(service: Running, body: bytes) -> None:
    with service.client() as client:
        answer = client.post("/v1/summarize", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert "error" in answer.json()


@pytest.mark.parametrize(
    ("path", "begin", "mistake", "count", "end"),
    [
        ("summarize", '{"text": [', "1,", 500_000, "1]}"),
        ("summarize", "{", '"k%d": 1,', 100_000, '"words": 3}'),
        ("chat/completions", '{"model": "tiny", "messages": [', "1,", 500_000, "1]}"),
        (
            "chat/completions",
            '{"model": "tiny", "messages": [{"role": "user", "content": [',
            "1,",
            500_000,
            "1]}]}",
        ),
        ("responses", '{"model": "tiny", "input": [', "{},", 300_000, "{}]}"),
    ],
)
def test_a_body_full_of_mistakes_is_answered_as_soon_as_one(
    service: Running, path: str, begin: str, mistake: str, count: int, end: str
) -> None:
    mistakes = mistake * count if "%" not in mistake else "".join(mistake % number for number in range(count))
    with service.client() as client:
        started = time.monotonic()
        answer = client.post(
            f"/v1/{path}", content=begin + mistakes + end, headers={"content-type": "application/json"}
        )
    assert answer.status_code in (400, 422)
    assert len(answer.content) < 1000
    assert time.monotonic() - started < 15  # minutes, where all are listed


def test_a_body_that_is_not_called_json_gets_that_said(service: Running) -> None:
    with service.client() as client:
        answer = client.post("/v1/summarize", content=b'{"text": "a"}')
    assert answer.status_code == 422
    assert "Content-Type: application/json" in answer.json()["error"]["message"]


def test_100_mb_are_refused_before_they_are_sent(service: Running) -> None:
    host, port = httpx.URL(service.url).host, httpx.URL(service.url).port
    quickest = 9.0
    for _ in range(5):  # other work on the machine may take one turn
        with socket.create_connection((host, port)) as connection:
            head = (
                f"POST /v1/summarize HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {100 << 20}\r\n\r\n"
            )
            started = time.monotonic()
            connection.sendall(head.encode() + b'{"text": "')
            answer = connection.recv(4096)
            quickest = min(quickest, time.monotonic() - started)
        assert answer.startswith(b"HTTP/1.1 413")
    assert quickest < 0.1


def test_a_body_without_a_length_is_stopped_at_the_limit(service: Running) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(200):
            yield b" " * 65_536

    with service.client() as client:
        answer = client.post("/v1/summarize", content=parts(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def test_a_full_queue_says_when_to_come_again(serve: Serve, slow: SlowModel) -> None:
    text = "word " * 60
    (tokens,) = slow.counter().count([text])
    service = serve(slow, limits=Limits(queue=tokens, tokens=tokens))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(post, service, {"text": text})
        until = time.monotonic() + 10
        while not slow.batches and time.monotonic() < until:
            time.sleep(0.01)
        refused = post(service, {"text": text})
        slow.go.set()
        assert first.result().status_code == 200
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "queue_full")
    assert int(refused.headers["retry-after"]) >= 1
    assert post(service, {"text": text}).status_code == 200  # there is room again


def test_work_for_a_client_that_left_is_given_up(serve: Serve, slow: SlowModel) -> None:
    service = serve(slow)
    with pytest.raises(httpx.ReadTimeout), service.client() as client:
        client.post("/v1/summarize", json={"text": "one two three"}, timeout=0.5)
    until = time.monotonic() + 10
    text = ""
    while time.monotonic() < until and 'reason="client_left"' not in text:
        with service.client() as client:
            text = client.get("/metrics").text
    assert 'precis_dropped_total{reason="client_left"} 1.0' in text
    assert "precis_queue_tokens 0.0" in text


def test_a_stream_whose_client_left_gives_its_place_to_others(serve: Serve, slow: SlowModel) -> None:
    service = serve(slow)
    value = {"text": "one two three", "stream": True}
    with service.client() as client, client.stream("POST", "/v1/summarize", json=value) as answer:
        assert next(answer.iter_lines()) == "event: start"
    until = time.monotonic() + 10
    text = ""
    while time.monotonic() < until and "precis_queue_tokens 0.0" not in text:
        with service.client() as client:
            text = client.get("/metrics").text
    assert 'precis_dropped_total{reason="client_left"} 1.0' in text
    assert "precis_queue_tokens 0.0" in text


def test_too_late_is_said_in_time(serve: Serve, slow: SlowModel) -> None:
    service = serve(slow, limits=Limits(seconds=0.3))
    answer = post(service, {"text": "one two three"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_late")
    assert answer.headers["retry-after"] == "1"  # a second more than the limit, whose fraction does not count


def test_stopping_finishes_what_was_begun(serve: Serve, slow: SlowModel) -> None:
    service = serve(slow)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(post, service, {"text": text}) for text in documents(3)]
        until = time.monotonic() + 10
        while not slow.batches and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
        threading.Timer(0.3, slow.go.set).start()
        service.stop()
        assert [one.result().status_code for one in waiting] == [200, 200, 200]


def _ours(caplog: pytest.LogCaptureFixture) -> list[dict]:
    return [vars(record) for record in caplog.records if record.name == "precis.server"]


def test_logs_hold_no_text(service: Running, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        post(service, {"text": "Zanzibar secret. " * 5, "words": 3})
        post(service, {"text": ["Zanzibar"], "words": "Zanzibar"})
        post(service, {}, path="/Zanzibar")
        until = time.monotonic() + 10
        while len(ours := _ours(caplog)) < 3 and time.monotonic() < until:  # a line comes behind its answer
            time.sleep(0.01)
    assert "request" in caplog.text
    assert len(ours) >= 3
    assert "Zanzibar" not in json.dumps(ours, default=str)


def test_the_log_line_of_a_refusal_has_its_status_and_code(
    service: Running, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    small = serve(limits=Limits(tokens=300, queue=300))
    with caplog.at_level(logging.INFO, "precis.server"):
        post(service, {"text": "one two three", "words": "many"})
        post(service, {"text": " "})
        post(service, {"text": "one", "model": "other"})
        post(service, {"text": "one"}, headers={"Host": "evil.example"})
        post(service, {}, path="/nowhere")
        post(small, {"text": "one " * 900})
        until = time.monotonic() + 10
        while len(ours := _ours(caplog)) < 6 and time.monotonic() < until:  # a line comes behind its answer
            time.sleep(0.01)
    told = sorted((one["fields"]["status"], one["fields"]["code"]) for one in ours)
    assert told == [
        (403, "unknown_host"), (404, "bad_request"), (404, "model_not_found"), (413, "document_too_long"),
        (422, "empty_document"), (422, "int_type"),
    ]  # fmt: skip


def test_a_page_of_another_site_cannot_use_a_service_without_keys(service: Running) -> None:
    value = {"text": "one two three"}
    assert post(service, value, headers={"Host": "evil.example"}).status_code == 403
    assert post(service, value, headers={"Origin": "https://evil.example"}).status_code == 403
    assert post(service, value, headers={"Origin": service.url}).status_code == 200


def test_the_schema_names_each_status_of_an_error(service: Running) -> None:
    sources = Path(str(files("precis.server"))).glob("*.py")
    sent = {
        int(number) for file in sources for number in re.findall(r"ApiError\(\s*(\d{3})", file.read_text())
    }
    with service.client() as client:
        schema = client.get("/openapi.json").json()
    named = {int(status) for status in schema["paths"]["/v1/summarize"]["post"]["responses"]}
    assert {408, 429, 500} <= sent
    assert sent - {499} <= named  # nobody is there to read that one


def test_every_path_of_the_interface_answers(service: Running) -> None:
    with service.client() as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/ready").json() == {"status": "ready"}
        assert client.get("/v1/models").json()["data"][0]["id"] == "tiny"
        schema = client.get("/openapi.json").json()
        page = client.get("/")
    bodies = schema["components"]["schemas"]
    for name in ("SummarizeRequest", "ChatRequest", "ResponsesRequest"):
        assert bodies[name]["examples"]
    for path in ("/v1/summarize", "/v1/chat/completions", "/v1/responses"):
        shown = schema["paths"][path]["post"]["responses"]["200"]["content"]
        assert "The harbour" in json.dumps(shown["application/json"]["example"])
        assert "The harbour" in shown["text/event-stream"]["example"]
    SummarizeAnswer.model_validate(
        schema["paths"]["/v1/summarize"]["post"]["responses"]["200"]["content"]["application/json"]["example"]
    )
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert schema["paths"]["/v1/documents"]["post"]["requestBody"]["required"] is True
    assert not {"/", "/page.js"} & schema["paths"].keys()


def test_a_model_tells_what_it_takes_and_within_which_limits(service: Running) -> None:
    limits = Limits()
    with service.client() as client:
        (model,) = client.get("/v1/models").json()["data"]
        assert client.get("/v1/models/tiny").json() == model
    facts = model.pop("precis")
    assert model == {"id": "tiny", "object": "model", "created": 0, "owned_by": "precis"}
    assert (facts["modes"], facts["takes_instruction"], facts["loaded"]) == (["abstract"], True, True)
    told = ("max_document_tokens", "max_body_bytes", "max_files_bytes", "max_documents", "max_beams")
    assert [facts[name] for name in told] == [
        limits.tokens, limits.body, limits.files, limits.documents, limits.beams
    ]  # fmt: skip


def test_a_wrong_path_and_a_wrong_method_are_told_apart(service: Running) -> None:
    with service.client() as client:
        unknown, wrong = client.get("/v1/nothing"), client.delete("/v1/summarize")
    assert [(each.status_code, each.json()["error"]["message"]) for each in (unknown, wrong)] == [
        (404, "this path does not exist"),
        (405, "this path does not support this method"),
    ]
    assert wrong.headers["allow"] == "POST"


def test_whoever_left_has_a_status_of_their_own() -> None:
    app = FastAPI()
    asgi_app._add_errors(app)

    @app.get("/left")
    async def left() -> None:
        raise ClientLeftError

    async def asked() -> int:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/left")).status_code

    assert asyncio.run(asked()) == 499


def test_turns_are_only_for_models_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Callable[[str], bool]] = []

    class Watched(Engine):
        def __init__(self, *given: Any, loaded: Callable[[str], bool]) -> None:
            asked.append(loaded)
            super().__init__(*given, loaded=loaded)

    monkeypatch.setattr(asgi_app, "Engine", Watched)
    pool: Any = SimpleNamespace(names=["a", "b"], loaded=["a"], modes=lambda _: ("extract",))
    asgi_app.make_app(pool, limits=Limits(), access=Access())
    assert [asked[0](name) for name in pool.names] == [True, False]


def test_a_request_asks_for_beams_within_the_bound_of_the_server(
    serve: Serve, served_model: ServedModel
) -> None:
    service, (text, *_) = serve(limits=Limits(beams=3)), documents(1)
    assert isinstance(served_model.writer, Summarizer)
    assert served_model.writer.settings.beams == 1
    settings = replace(served_model.writer.settings, beams=3)
    (wide,) = served_model.writer.summarize([text], words=12, settings=settings)
    (narrow,) = served_model.writer.summarize([text], words=12)
    assert wide.text != narrow.text
    for beams, expected in ((3, wide.text), (1, narrow.text), (None, narrow.text)):
        answer = post(service, {"text": text, "words": 12, "beams": beams}).json()
        assert answer["summaries"][0]["summary"] == expected
    refused = post(service, {"text": text, "beams": 4})
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == "beams=4: this server allows at most 3"
    with service.client() as client:
        assert client.get("/v1/models").json()["data"][0]["precis"]["max_beams"] == 3
        form = client.post("/v1/summarize", files=[("file", ("a.txt", text.encode()))], data={"beams": "4"})
    assert form.json()["error"]["param"] == "beams"


def test_a_model_that_chooses_sentences_has_no_beams() -> None:
    chooser = ServedModel("chooser", ("extract",), None, None, 8)
    pool = SimpleNamespace(names=["chooser"], modes=lambda _: chooser.modes)
    unused: Any = None
    service = Service(cast(Any, pool), unused, Limits(), unused, unused, counting=unused)
    with pytest.raises(ApiError, match="does not use beams; omit beams"):
        service.ask(model=None, beams=2)


def test_the_operator_sets_the_beams_of_requests_that_name_none(tmp_path: Path) -> None:
    model = str(save("zcodepp", tmp_path / "tiny"))
    served = ServedModel.load(model, name="tiny", beams=5)
    assert served.writer is not None
    assert served.writer.settings.beams == 5
    with pytest.raises(UserError, match=r"--beams does not apply to default"):
        ServedModel.load("default", name="default", beams=5)


def _alone(limits: Limits | None = None) -> Service:
    """A service that waits for its documents; nothing is behind it."""
    unused: Any = None
    return Service(unused, unused, limits or Limits(), Metrics(), unused, counting=unused)


def _queued(seconds: float) -> QueuedDocument:
    """A document whose deadline is that far away."""
    loop = asyncio.get_running_loop()
    ask = Ask(model="m", mode="abstract")
    return QueuedDocument("Ann sings.", ask, 1, time.monotonic() + seconds, loop, loop.create_future())


MADE = Summary(text="It rains.", document_tokens=3, tokens_read=3, summary_tokens=3)


def test_of_a_summary_that_is_done_no_beginning_is_sent_any_more() -> None:
    async def run() -> list[str]:
        job, found = _queued(60), []

        async def listen() -> None:
            async for beginning in _alone().partial_summaries(job):
                found.append(beginning)

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0)  # it waits now
        job._begin("It rained.")
        await asyncio.sleep(0.01)
        job._begin("It rained. Bob sang.")
        job._settle(MADE)  # before the listener had its turn
        await asyncio.wait_for(listening, 5)
        return found

    assert asyncio.run(run()) == ["It rained."]


@pytest.mark.parametrize("seconds", [-60.0, 60.0])
def test_a_summary_is_waited_for_until_a_second_after_its_deadline(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience: list[float] = []
    wait_for = asyncio.wait_for

    async def watched(awaited: Any, timeout: float) -> Any:
        patience.append(timeout)
        return await wait_for(awaited, timeout)

    async def run() -> Summary:
        job = _queued(seconds)
        asyncio.get_running_loop().call_later(0.01, job._settle, MADE)
        return await _alone().result(job)

    monkeypatch.setattr(asyncio, "wait_for", watched)
    assert asyncio.run(run()) == MADE
    assert patience == [pytest.approx(max(0.0, seconds) + 1, abs=0.5)]


def test_the_limits_of_the_command_are_those_of_the_library() -> None:
    limits = Limits()
    usual = inspect.signature(serve_command.serve).parameters
    batch, beams = usual["batch_size"].default, usual["max_beams"].default
    assert serve_command.LimitOptions().limits(batch=batch, beams=beams) == limits
    assert serve_command.LimitOptions().connections() == ConnectionLimits()
    assert Address(host=usual["host"].default, port=usual["port"].default) == Address()


def test_batches_are_counted_in_powers_of_two() -> None:
    metrics = Metrics()
    metrics.batch(4, 0.1)
    text = metrics.text().decode()
    counts = re.findall(r'precis_batch_documents_bucket{le="(\d+)\.0"} (\d)', text)
    assert counts == [(str(2**n), "0" if n < 2 else "1") for n in range(7)]
    seconds = re.findall(r'precis_batch_seconds_bucket{le="(\d+\.\d+)"} (\d)', text)
    bounds = [0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, Limits().seconds]
    assert [(float(bound), int(number)) for bound, number in seconds] == [
        (bound, int(bound >= 0.1)) for bound in bounds
    ]


class SecondFails:
    """A service of two documents, the second of which gets an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @asynccontextmanager
    async def working(self, *_: object, **__: object) -> AsyncIterator[list[str]]:
        yield ["a", "b"]

    async def answer(self, index: int, job: str, *, support: bool) -> dict[str, str]:
        if job == "b":
            raise self.error
        return {"summary": job}


@pytest.mark.parametrize(
    ("error", "is_listed"),
    [
        (ApiError(422, "cannot_be_summarized", "is odd"), True),
        (ApiError(503, "too_late", "is late"), False),
        (ZeroDivisionError(), False),
    ],
)
def test_only_what_is_wrong_with_a_document_stands_in_its_place(error: Exception, is_listed: bool) -> None:
    service: Any = SecondFails(error)
    work = _all(service, service.working(), ["a.txt", "b.txt"], support=False)
    if not is_listed:
        with pytest.raises(type(error)):
            asyncio.run(work)
        return
    first, second = asyncio.run(work)
    assert (first, second.message) == ({"summary": "a"}, "b.txt: is odd")
    assert _one(1, second)["index"] == 1


def _beginnings(job_of: Callable[[], QueuedDocument], *begun: str) -> list[str]:
    """Return what a stream hears of a document that is never done, if these beginnings come."""

    async def run() -> list[str]:
        job = job_of()
        for beginning in begun:
            job._begin(beginning)
        return [beginning async for beginning in _alone().partial_summaries(job)]

    return asyncio.run(asyncio.wait_for(run(), 5))


def test_a_stream_hears_beginnings_until_the_deadline_and_no_longer() -> None:
    assert _beginnings(lambda: _queued(0.1), "It rained.") == ["It rained.", ""]
    assert _beginnings(lambda: _queued(-1), "It rained.") == []


def test_a_silent_stream_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precis.server.service._PATIENCE", 0.01)
    silence = _beginnings(lambda: _queued(0.2))
    assert set(silence) == {""}
    assert 2 < len(silence) < 25


class WhereCounted:
    """A counter of tokens that notes the threads in which it counts; a text without words has none."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def at_least(self, text: str) -> int:
        self.threads.add(threading.get_ident())
        return 0

    def count(self, texts: Sequence[str]) -> list[int]:
        self.threads.add(threading.get_ident())
        return [len(text.split()) for text in texts]


@pytest.mark.parametrize(("characters", "is_elsewhere"), [(8192, False), (8193, True)])
def test_the_tokens_of_long_documents_are_counted_beside_the_answers_to_others(
    characters: int, is_elsewhere: bool
) -> None:
    counter, unused = WhereCounted(), cast(Any, None)
    pool: Any = SimpleNamespace(counter=lambda _: counter)

    async def run() -> list[int]:
        service = Service(pool, unused, Limits(), unused, unused)
        return await service._tokens(["a b", "\x1f" * (characters - 3)], "m", "text")

    assert asyncio.run(run()) == [2, 1]  # at least one, so that the queue counts it
    assert (threading.get_ident() not in counter.threads) is is_elsewhere
    assert (counter.threads == {threading.get_ident()}) is not is_elsewhere


class FirstFails(SecondFails):
    """The same, but the first of the documents gets the error."""

    @asynccontextmanager
    async def working(self, *_: object, **__: object) -> AsyncIterator[list[str]]:
        yield ["b", "a"]

    def ask(self, **_: object) -> Ask:
        return Ask(model="m", mode="abstract")


def test_what_is_wrong_with_the_first_of_several_documents_stands_in_its_place() -> None:
    service: Any = FirstFails(ApiError(422, "cannot_be_summarized", "is odd"))

    async def respond() -> Any:
        request: Any = SimpleNamespace(receive=asyncio.Event().wait, state=SimpleNamespace(id="7"))
        body = SummarizeRequest.model_validate({"text": ["b", "a"]})
        return json.loads(bytes((await _respond(service, request, body)).body))

    answer = asyncio.run(respond())
    assert (answer["id"], answer["model"]) == ("sum-7", "m")
    assert "documents" not in answer
    first, second = answer["summaries"]
    assert (first["index"], first["error"]["message"], second) == (0, "is odd", {"summary": "a"})


class OnlyOneFails(SecondFails):
    """The same, of one document, which gets the error."""

    @asynccontextmanager
    async def working(self, *_: object, **__: object) -> AsyncIterator[list[str]]:
        yield ["b"]

    def ask(self, **_: object) -> Ask:
        return Ask(model="m", mode="abstract")


def test_what_is_wrong_with_the_only_document_is_the_answer() -> None:
    service: Any = OnlyOneFails(ApiError(422, "cannot_be_summarized", "is odd"))

    async def respond() -> None:
        request: Any = SimpleNamespace(receive=asyncio.Event().wait, state=SimpleNamespace(id="7"))
        await _respond(service, request, SummarizeRequest.model_validate({"text": "b"}))

    with pytest.raises(ApiError, match="is odd"):
        asyncio.run(respond())
