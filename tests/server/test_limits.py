"""What is as large as a limit is accepted, and what is one larger is refused with a code and its place."""

from collections.abc import Sequence
from typing import Any

import pytest

from precis.server.asgi_request import error_body
from precis.server.limits import ApiError, Limits
from precis.server.token_counter import ByBytes
from precis_text.errors import UserError

LIMITS = Limits(documents=3, tokens=4, queue=10)


def refused(call: Any, *values: Any) -> tuple[Any, ...]:
    with pytest.raises(ApiError) as error:
        call(*values, param="text")
    return error.value.status, error.value.code, error.value.param, error.value.document


@pytest.mark.parametrize("counts", [[4], [4, 4, 2], []])
def test_documents_up_to_the_limits_are_accepted(counts: Sequence[int]) -> None:
    LIMITS.check_tokens(counts, param="text")
    if counts:
        LIMITS.check(["a " * count for count in counts], ByBytes(), param="text")


def test_documents_beyond_the_limits_are_refused() -> None:
    assert refused(LIMITS.check_tokens, [4, 5]) == (413, "document_too_long", "text", 2)
    assert refused(LIMITS.check_tokens, [4, 4, 3]) == (413, "documents_too_long", "text", None)

    def check(texts: Sequence[str], *, param: str) -> None:
        LIMITS.check(texts, ByBytes(), param=param)

    assert refused(check, ["a"] * 4) == (413, "too_many_documents", "text", None)
    assert refused(check, ["a", "a b c d e"]) == (413, "document_too_long", "text", 2)
    assert refused(check, ["a", "\ud800"]) == (422, "not_text", "text", 2)
    assert refused(check, [" ", "\n"])[1] == "empty_document"
    check([" ", "a"], param="text")


def test_a_queue_holds_at_least_one_document_of_the_largest_size() -> None:
    assert Limits(tokens=7, queue=7).queue == 7
    with pytest.raises(UserError, match="a queue of 7 tokens is too small for a document of 8"):
        Limits(tokens=8, queue=7)


def test_bodies_of_files_have_their_own_limit_and_all_together_have_one() -> None:
    limits = Limits(body=100, files=1000)
    assert limits.body_of(b"application/json") == 100
    assert limits.body_of(b"Multipart/Form-Data; boundary=x") == 1000
    assert limits.all_bodies == 2000
    assert Limits(body=1000, files=100).all_bodies == 16_000


def test_an_error_of_a_file_has_its_name() -> None:
    second = ApiError(422, "c", "is empty", param="p", retry_after=3, document=2)
    of_second = second.of(["a.txt", "b.txt"])
    assert (of_second.message, of_second.retry_after, of_second.param) == ("b.txt: is empty", 3, "p")
    assert ApiError(422, "c", "is empty").of(["a.txt", ""], 1).message == "the file: is empty"
    assert ApiError(422, "c", "is empty").of(["a.txt"], 0).message == "a.txt: is empty"
    assert second.of([]) is second


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "authentication_error"), (429, "rate_limit_error"), (422, "invalid_request_error"),
        (499, "invalid_request_error"), (500, "server_error"), (503, "server_error"),
    ],
)  # fmt: skip
def test_the_type_of_an_error_is_openais(status: int, kind: str) -> None:
    assert error_body(ApiError(status, "code", "text", param="p"))["error"] == {
        "message": "text",
        "type": kind,
        "param": "p",
        "code": "code",
    }
