"""The official client of OpenAI's interface can use the service."""

from collections.abc import Iterator
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from precis.generation.summarizer import Summarizer
from precis.generation.summary import Summary
from precis.server.served_model import ServedModel
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
