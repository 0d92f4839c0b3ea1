"""Requests beyond their bounds are refused; the first test is a short form of `python -m faults.service.refusals`."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from faults.service.refusals import Excess, excesses, refuse
from precis.server.openai_routes import ChatRequest, ResponsesRequest
from precis.server.schemas import SummarizeRequest
from tests.server_of_tests import Running


@pytest.mark.parametrize("excess", list(excesses("tiny")), ids=lambda excess: excess.name)
def test_what_is_far_too_much_is_refused(service: Running, excess: Excess) -> None:
    status, seconds = refuse(service.port, excess)
    assert status == excess.status
    assert seconds < 5  # the benchmark has the limit of 100 ms


def request_of(**options: Any) -> SummarizeRequest:
    return SummarizeRequest(text="a", **options)


def chat_of(**options: Any) -> ChatRequest:
    return ChatRequest(**{"model": "m", "messages": [USER], **options})


def response_of(**options: Any) -> ResponsesRequest:
    return ResponsesRequest(**{"model": "m", "input": "a", **options})


USER = {"role": "user", "content": "a"}
BOUNDS = [
    (request_of, "words", 1, 20_000),
    (request_of, "tokens", 1, 20_000),
    (request_of, "sentences", 1, 1000),
    (request_of, "min_words", 0, 20_000),
    (request_of, "beams", 1, 128),
    (chat_of, "words", 1, 20_000),
    (chat_of, "sentences", 1, 1000),
    (chat_of, "max_tokens", 1, 10_000_000),
    (chat_of, "max_completion_tokens", 1, 10_000_000),
    (chat_of, "n", 1, 1),
    (response_of, "max_output_tokens", 1, 10_000_000),
]


@pytest.mark.parametrize(("made", "name", "least", "most"), BOUNDS)
def test_a_number_is_accepted_within_its_bounds_and_refused_beyond(
    made: Callable[..., Any], name: str, least: int, most: int
) -> None:
    assert [getattr(made(**{name: value}), name) for value in (least, most, None)] == [least, most, None]
    for value in (least - 1, most + 1, str(least), True):
        with pytest.raises(ValidationError, match=name):
            made(**{name: value})


@pytest.mark.parametrize("name", ["about", "instruction"])
def test_a_question_and_an_instruction_have_at_most_2000_characters(name: str) -> None:
    assert getattr(request_of(**{name: "a" * 2000}), name) == "a" * 2000
    with pytest.raises(ValidationError, match="at most 2000 characters"):
        request_of(**{name: "a" * 2001})


def test_a_chat_has_up_to_a_thousand_messages() -> None:
    assert len(chat_of(messages=[USER] * 1000).messages) == 1000
    for messages in ([], [USER] * 1001):
        with pytest.raises(ValidationError, match="messages"):
            chat_of(messages=messages)


def test_streams_and_support_come_only_if_asked_for() -> None:
    assert (request_of().stream, request_of().support) == (False, False)
    assert (chat_of().stream, response_of().stream) == (False, False)
    assert (request_of().type, request_of().short) == ("paragraph", "keep")
    with pytest.raises(ValidationError, match=f"unknown field '{'w' * 50}';"):
        request_of(**{"w" * 60: 1})


def test_calls_of_tools_are_left_out_of_an_input_and_messages_are_not() -> None:
    call, message = {"type": "function_call", "call_id": "1"}, {"type": "message", **USER}
    assert len(response_of(input=[call, message, USER]).input) == 2
    for wrong in ({"type": "message"}, {"type": 5}, {}, "text"):
        with pytest.raises(ValidationError):
            response_of(input=[wrong, USER])
