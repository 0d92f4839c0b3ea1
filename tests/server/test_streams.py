"""A stream sends the sentences of a summary while the model writes it."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from openai import OpenAI

from precis.generation.summarizer import Summary
from precis.messages import OnPartial, OnProgress
from precis.server.engine import Ask
from precis.server.limits import Limits
from precis.server.summarize_routes import WORKING, _events
from tests.server.conftest import Serve
from tests.server_of_tests import ByWords, Running

WRITTEN = ["Ann sings in Rome.", "Bob pays 3 coins.", "It rains."]
TEXT = "Ann sings in the hall. Bob pays 3 coins to her. It rains all day, and the hall stays cold."


@dataclass
class Writer:
    """Writes a sentence, and goes on when it is let go."""

    told: list[str] = field(default_factory=lambda: WRITTEN)
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    patience: float = 10  # seconds
    name: str = "tiny"
    modes: tuple = ("abstract",)
    languages: tuple[str, ...] = ()

    def counter(self) -> ByWords:
        return ByWords()

    def make(
        self, texts: Sequence[str], ask: Ask, on_progress: OnProgress, on_partial: OnPartial
    ) -> list[Summary]:
        for count in range(1, len(self.told)):
            for place in range(len(texts)):
                on_partial(place, " ".join(self.told[:count]))
            self.go.acquire(timeout=self.patience)
            on_progress(0, 1, count)
        text = " ".join(WRITTEN)
        return [Summary(text=text, document_tokens=9, tokens_read=9, summary_tokens=9) for _ in texts]


def events_of(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """(name, value) of each event, as it comes."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize("support", [False, True])
def test_a_sentence_is_sent_before_the_next_one_is_written(serve: Serve, support: bool) -> None:
    writer = Writer()
    service = serve(writer)
    value = {"text": TEXT, "stream": True, "support": support}
    with service.client() as client, client.stream("POST", "/v1/summarize", json=value) as answer:
        events = events_of(answer.iter_lines())
        assert next(events)[0] == "start"
        found = []
        for text in WRITTEN[:-1]:
            name, sentence = next(events)  # comes while the writer waits to be let go
            assert (name, sentence["text"]) == ("sentence", text)
            found.append(sentence)
            writer.go.release()
        found.append(next(events)[1])
        assert [sentence["text"] for sentence in found] == WRITTEN
        name, summary = next(events)
        assert (name, summary["sentences"]) == ("summary", [_without(s, "index") for s in found])
        assert next(events)[0] == "done"
    if support:
        assert [mark["text"] for mark in found[0]["marks"]] == ["Rome"]
        assert found[1]["support"][0]["text"].startswith("Bob pays")


def _without(value: dict, name: str) -> dict:
    return {key: each for key, each in value.items() if key != name}


def test_sentences_of_a_list_come_in_its_order(serve: Serve) -> None:
    writer = Writer()
    writer.go.release(9)
    with serve(writer).client() as client:
        text = client.post("/v1/summarize", json={"text": [TEXT, TEXT], "stream": True}).text
    events = list(events_of(text.splitlines()))
    told = [(value["index"], value["text"]) for name, value in events if name == "sentence"]
    assert told == [(index, text) for index in (0, 1) for text in WRITTEN]


def test_openai_clients_get_a_delta_before_the_next_sentence_is_written(serve: Serve) -> None:
    writer = Writer()
    service = serve(writer)
    with OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client:
        chunks = client.chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": TEXT}], stream=True
        )
        deltas = []
        for chunk in chunks:
            if chunk.choices[0].delta.content:
                deltas.append(chunk.choices[0].delta.content)
                writer.go.release()
        writer.go = threading.Semaphore(9)
        events = client.responses.create(model="tiny", input=TEXT, stream=True)
        written = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert [delta.strip() for delta in deltas] == WRITTEN
    assert "".join(deltas) == "".join(written) == " ".join(WRITTEN)


def test_a_stream_that_is_late_says_so(serve: Serve) -> None:
    service = serve(writer := Writer(patience=1), limits=Limits(seconds=0.5))
    with service.client() as client:
        text = client.post("/v1/summarize", json={"text": TEXT, "stream": True}).text
    events = list(events_of(text.splitlines()))
    writer.go.release(9)
    assert [name for name, _ in events] == ["start", "sentence", "error", "done"]
    assert events[2][1]["error"]["code"] == "too_late"


def test_the_example_of_a_stream_counts_the_summaries_that_it_has(service: Running) -> None:
    with service.client() as client:
        schema = client.get("/openapi.json").json()
    shown = schema["paths"]["/v1/summarize"]["post"]["responses"]["200"]["content"]["text/event-stream"]
    events = list(events_of(shown["example"].splitlines()))
    summaries = [value for name, value in events if name == "summary"]
    told = [value["documents"] for name, value in events if name in ("start", "done")]
    assert told == [len(summaries)] * 2
    (summary,) = summaries
    assert {value["index"] for name, value in events if "index" in value} == {0}
    (sentence,) = summary["sentences"]
    assert [passage["text"] for passage in sentence["support"]] == [sentence["text"]] == [summary["summary"]]
    read = summary["read"]
    assert (read["document_tokens"], read["tokens_read"], read["complete"]) == (38, 38, True)
    chat = schema["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"]
    assert '"usage"' in chat["text/event-stream"]["example"]


@pytest.mark.parametrize("begun", [[], ["", "Ann sings."], ["Ann sings. "], ["Ann sings. It rains."]])
def test_each_sentence_is_sent_once_whenever_it_came(begun: list[str]) -> None:
    text = "Ann sings. It rains."
    sentences = [{"start": 0, "text": "Ann sings."}, {"start": 11, "text": "It rains."}]

    class Begun:
        """A service that has written these beginnings."""

        @asynccontextmanager
        async def working(self, *_: object, **__: object) -> AsyncIterator[list[Any]]:
            yield [SimpleNamespace(text=text)]

        async def partial_summaries(self, job: object) -> AsyncIterator[str]:
            for beginning in begun:
                yield beginning

        async def answer(self, index: int, job: object, *, support: bool) -> dict[str, Any]:
            return {"sentences": sentences}

    async def sent() -> list[str]:
        service: Any = Begun()
        events = _events(service, service.working(), "sum-7", (), support=False)
        return [each async for each in events]

    parts = asyncio.run(sent())
    assert parts.count(WORKING) == begun.count("")
    told = list(events_of("".join(part for part in parts if part != WORKING).splitlines()))
    assert [value["text"] for name, value in told if name == "sentence"] == ["Ann sings.", "It rains."]
