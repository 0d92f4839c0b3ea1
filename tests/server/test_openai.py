"""The official client of OpenAI's interface can use the service."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI
from pydantic import ValidationError

from precis.generation.summarizer import Summarizer
from precis.generation.summary import Summary
from precis.server.engine import Ask
from precis.server.limits import ApiError, Limits
from precis.server.openai_routes import ChatRequest, InputItem, _ask, _Chat, _deltas, _parts, _Responses
from precis.server.served_model import ServedModel
from precis.server.service import Service
from precis_text.length import make_length
from tests.server_of_tests import Running
from tests.tiny_models import documents

TEXT = documents(1)[0]


@pytest.fixture(scope="module")
def client(service: Running) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def alone(served_model: ServedModel, **options: Any) -> Summary:
    assert isinstance(served_model.writer, Summarizer)
    return served_model.writer.summarize([TEXT], **options)[0]


def test_a_chat_summarizes_its_last_user_message(client: OpenAI, served_model: ServedModel) -> None:
    messages: list[Any] = [
        {"role": "user", "content": "Something else."},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": [{"type": "text", "text": TEXT}]},
    ]
    made = client.chat.completions.create(model="tiny", messages=messages, extra_body={"words": 12})
    expected = alone(served_model, words=12)
    assert made.choices[0].message.content == expected.text
    assert made.usage is not None
    assert made.usage.prompt_tokens == expected.tokens_read
    assert made.usage.total_tokens == expected.tokens_read + expected.summary_tokens


def test_a_system_message_is_the_instruction(client: OpenAI, served_model: ServedModel) -> None:
    messages: list[Any] = [{"role": "system", "content": "shorten:"}, {"role": "user", "content": TEXT}]
    made = client.chat.completions.create(model="tiny", messages=messages, max_tokens=9)
    assert made.choices[0].message.content == alone(served_model, instruction="shorten:", tokens=9).text


def test_a_chat_streams(client: OpenAI, served_model: ServedModel) -> None:
    messages: list[Any] = [{"role": "user", "content": TEXT}]
    chunks = list(
        client.chat.completions.create(
            model="tiny", messages=messages, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == alone(served_model).text
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == alone(served_model).tokens_read


def test_responses_summarize_their_input(client: OpenAI, served_model: ServedModel) -> None:
    made = client.responses.create(model="tiny", input=TEXT)
    assert made.output_text == alone(served_model).text
    assert made.usage is not None
    assert made.usage.input_tokens == alone(served_model).tokens_read


def test_the_model_gets_the_instruction_and_the_limit_that_the_request_names(
    client: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Ask] = []

    def watched(_: ServedModel, texts: Any, ask: Ask, *__: Any) -> list[Summary]:
        asked.append(ask)
        return [MADE for _ in texts]

    monkeypatch.setattr(ServedModel, "make", watched)
    items: list[Any] = [{"role": "system", "content": "shorten:"}, {"role": "user", "content": "Ann sings."}]
    client.responses.create(model="tiny", input="Ann sings.", instructions="tell:", max_output_tokens=9)
    client.responses.create(model="tiny", input=items, instructions="tell:", max_output_tokens=9)
    client.responses.create(model="tiny", input=items, max_output_tokens=9)
    client.chat.completions.create(model="tiny", messages=items, max_tokens=9)
    client.chat.completions.create(model="tiny", messages=items, max_tokens=9, max_completion_tokens=7)
    assert [ask.instruction for ask in asked] == ["tell:", "tell:", "shorten:", "shorten:", "shorten:"]
    assert [ask.length for ask in asked] == [make_length(tokens=tokens) for tokens in (9, 9, 9, 9, 7)]


def test_responses_stream(client: OpenAI, served_model: ServedModel) -> None:
    events = list(client.responses.create(model="tiny", input=TEXT, stream=True))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == alone(served_model).text
    last: Any = events[-1]  # the whole response
    assert last.response.output_text == text
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_errors_are_those_that_the_client_knows(client: OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": TEXT}]
    with pytest.raises(NotFoundError, match="unknown model"):
        client.chat.completions.create(model="gpt", messages=messages)
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model="tiny", messages=messages, n=2)
    assert caught.value.param == "n"
    with pytest.raises(BadRequestError, match="lacks a user message"):
        client.chat.completions.create(model="tiny", messages=[{"role": "system", "content": "a"}])
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").owned_by == "precis"
    with pytest.raises(NotFoundError, match="unknown model"):
        client.models.retrieve("org/gpt")


def test_a_response_that_was_cut_says_why_and_a_whole_one_does_not(client: OpenAI) -> None:
    cut = client.responses.create(model="tiny", input=TEXT, max_output_tokens=5)
    whole = client.responses.create(model="tiny", input="Ann sings.")
    assert cut.incomplete_details is not None
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert (whole.status, whole.incomplete_details) == ("completed", None)


MADE = Summary(text="It rains. Bob left.", document_tokens=9, tokens_read=7, summary_tokens=4)


def events_of(parts: Iterable[str]) -> list[Any]:
    return [json.loads(part.partition("data: ")[2]) for part in parts if "[DONE]" not in part]


def test_a_limit_beyond_any_summary_is_accepted_up_to_ten_million_tokens() -> None:
    messages: list[Any] = [{"role": "user", "content": "x"}]
    assert ChatRequest(model="m", messages=messages, max_tokens=10_000_000).max_tokens == 10_000_000
    with pytest.raises(ValidationError):
        ChatRequest(model="m", messages=messages, max_tokens=10_000_001)


@pytest.mark.parametrize(("finished", "status"), [(True, "completed"), (False, "incomplete")])
def test_the_events_of_a_response_are_numbered_and_have_one_place(finished: bool, status: str) -> None:
    form = _Responses("1", "m", 5)
    summary = replace(MADE, finished=finished)
    events = events_of([*form.begin(), form.delta("It rains."), *form.end(summary, usage=True)])
    assert [event["sequence_number"] for event in events] == list(range(9))
    assert {event.get("output_index", 0) for event in events} == {0}
    assert {event["content_index"] for event in events if "part" in event or "delta" in event} == {0}
    whole = events[-1]["response"]
    assert (events[-1]["type"], whole["status"]) == (f"response.{status}", status)
    assert whole["usage"] == {
        "input_tokens": 7, "output_tokens": 4, "total_tokens": 11, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    assert [item["content"][0]["text"] for item in whole["output"]] == [MADE.text]
    assert (whole["created_at"], whole["parallel_tool_calls"]) == (5, False)
    failed = events_of([form.failed(ApiError(503, "too_late", "late"))])[0]
    assert (failed["response"]["status"], failed["response"]["error"]["message"]) == ("failed", "late")


@pytest.mark.parametrize("usage", [True, False])
def test_the_chunks_of_a_chat_are_those_of_one_choice_and_count_tokens_if_asked(usage: bool) -> None:
    form = _Chat("1", "m", 5)
    chunks = events_of(
        [*form.begin(), form.delta("It rains."), *form.end(replace(MADE, finished=False), usage=usage)]
    )
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    assert [(choice["index"], choice["finish_reason"]) for choice in choices] == [
        (0, None), (0, None), (0, "length"),
    ]  # fmt: skip
    assert [choice["delta"].get("content") for choice in choices] == ["", "It rains.", None]
    counts = {"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11}
    assert [chunk["usage"] for chunk in chunks if "usage" in chunk] == [counts] * usage
    whole = form.whole(MADE)
    assert (whole["choices"][0]["index"], whole["choices"][0]["finish_reason"]) == (0, "stop")
    assert (whole["created"], whole["usage"]) == (5, counts)


def asked(
    *, system: str = "", tokens: int | None = None, modes: tuple[str, ...] = ("abstract",), **body: Any
) -> Ask:
    """The options of a chat with a model of these modes."""
    unused: Any = None
    pool: Any = SimpleNamespace(names=["m"], modes=lambda _: modes)
    service = Service(pool, unused, Limits(), unused, unused, counting=unused)
    messages: list[Any] = [{"role": "user", "content": TEXT}]
    return _ask(service, ChatRequest(model="m", messages=messages, **body), system, tokens)


def test_tokens_cap_a_summary_unless_words_or_sentences_do() -> None:
    assert asked(tokens=9).length == make_length(tokens=9)
    assert asked(tokens=10_000_000).length == make_length(tokens=20_000)
    assert asked(tokens=9, words=5).length == make_length(words=5)
    assert asked(tokens=9, sentences=2).length == make_length(sentences=2)
    assert asked().length == make_length()


def test_an_instruction_is_for_models_that_write_and_has_at_most_2000_characters() -> None:
    assert asked(system="s" * 2000).instruction == "s" * 2000
    with pytest.raises(ApiError, match="at most 2,000 characters"):
        asked(system="s" * 2001)
    assert asked(system="shorten", modes=("extract", "abstract")).instruction is None
    assert asked(system="shorten", modes=("extract", "abstract"), mode="abstract").instruction == "shorten"
    assert asked().instruction is None


def test_system_messages_are_joined_and_the_last_user_message_is_the_document() -> None:
    roles = ("system", "user", "developer", "assistant", "user", "tool")
    items = [InputItem(role=role, content=f"{place}") for place, role in enumerate(roles)]  # type: ignore[arg-type]
    assert _parts(items, "messages") == ("0\n2", "4")
    parts: list[Any] = [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]
    assert InputItem(role="user", content=parts).read("input") == "a\nb"
    for wrong in ({"type": "image", "text": "a"}, {"type": "text"}):
        content: list[Any] = [*parts, wrong]
        with pytest.raises(ApiError, match="only text can be summarized"):
            InputItem(role="user", content=content).read("input")


def test_the_unsent_rest_of_a_summary_goes_out_sentence_by_sentence() -> None:
    assert _deltas(TEXT, MADE, 0) == ["It rains. ", "Bob left."]
    assert _deltas(TEXT, MADE, len("It rains.")) == [" Bob left."]
    assert _deltas(TEXT, MADE, len(MADE.text)) == []
