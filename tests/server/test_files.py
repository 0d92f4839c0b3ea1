"""Files are read by the service as by the command line, within its limits; pages of other sites need leave."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from precis.server.client_keys import Keys
from precis.server.file_reader import FileReader
from precis.server.limits import Limits
from precis.server.listener import Address
from precis.server.server_run import access_to
from precis.server.summarize_routes import _value
from precis_text.documents import reader
from precis_text.errors import UserError
from tests.document_files import lines_of, pdf, word
from tests.server.conftest import Serve
from tests.server_of_tests import Running

TEXT = "The harbour was closed on Monday. A storm had damaged two cranes."
PDF = pdf([lines_of([TEXT])])
MAIL = b"From: ann@example.org\r\nSubject: Quay\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nThe quay is open.\r\n"


def made_word() -> bytes:
    return word(lambda document: document.add_paragraph(TEXT))


def test_the_reader_of_files_stops_at_once_while_it_reads() -> None:
    files, end = FileReader(Limits()), threading.Event()
    reading, waiting = files._thread.submit(end.wait, 5), files._thread.submit(end.wait, 5)
    time.sleep(0.01)
    assert (reading.running(), waiting.running()) == (True, False)  # one file at a time
    files.stop()
    assert not reading.done()
    assert waiting.cancelled()
    end.set()


def form(*files: tuple[str, bytes]) -> list:
    return [("file", file) for file in files]


def test_files_of_every_kind_become_text_in_order(service: Running) -> None:
    with service.client() as client:
        files = form(("a.pdf", PDF), ("b.docx", made_word()), ("c.eml", MAIL), ("d.txt", b"Ann sings."))
        answer = client.post("/v1/documents", files=files)
    assert answer.status_code == 200
    found = answer.json()["documents"]
    assert [one["name"] for one in found] == ["a.pdf", "b.docx", "c.eml", "d.txt"]
    assert found[0]["text"] == found[1]["text"] == TEXT
    assert "The quay is open." in found[2]["text"]
    assert found[3] == {"name": "d.txt", "text": "Ann sings.", "notes": []}


def test_files_are_summarized_and_the_answer_has_their_texts(service: Running) -> None:
    with service.client() as client:
        answer = client.post(
            "/v1/summarize",
            files=form(("a.pdf", PDF), ("b.txt", TEXT.encode())),
            data={"words": "8", "short": "write", "support": "true"},
        )
        alone = client.post("/v1/summarize", json={"text": TEXT, "words": 8, "short": "write"}).json()
    found = answer.json()
    assert answer.status_code == 200
    assert [one["text"] for one in found["documents"]] == [TEXT, TEXT]
    assert [one["summary"] for one in found["summaries"]] == [alone["summaries"][0]["summary"]] * 2
    assert "documents" not in alone


def test_a_stream_of_files_begins_with_their_texts(service: Running) -> None:
    with service.client() as client:
        answer = client.post("/v1/summarize", files=form(("a.pdf", PDF)), data={"stream": "true"})
    events = [part.split("\ndata: ") for part in answer.text.strip().split("\n\n")]
    assert [name for name, _ in events[:2]] == ["event: start", "event: document"]
    assert json.loads(events[1][1]) == {"index": 0, "name": "a.pdf", "text": TEXT, "notes": []}
    assert events[-1][0] == "event: done"


@pytest.mark.parametrize(
    ("files", "data", "code", "told"),
    [
        ([("file", ("a.pdf", b"%PDF-1.4\nnonsense"))], {}, "unreadable_file", "a.pdf: is damaged: "),
        ([("file", ("a.txt", b"\xff\xfe\xfd"))], {}, "unreadable_file", "a.txt: "),
        (
            [("file", ("../../a.csv", b"document\nx"))],
            {},
            "unreadable_file",
            "a.csv: has a document in each row",
        ),
        ([("upload", ("a.txt", b"A."))], {}, "bad_form", "a.txt: name the field of each file: file"),
        ([("file", ("a.txt", b"A."))], {"text": "B."}, "bad_form", "send files or text, not both"),
        ([("file", ("a.txt", b"A."))], {"wrods": "3"}, "extra_forbidden", "unknown field 'wrods'"),
        (
            [("file", ("a.txt", b"A."))],
            {"words": "many"},
            "int_type",
            "words: Input should be a valid integer",
        ),
        ([("file", ("a.txt", b"A."))], {"words": ["3", "4"]}, "bad_form", "gives this option twice"),
        ([("file", ("a.txt", b"  "))], {}, "empty_document", "a.txt: document 1 is empty"),
    ],
)
def test_a_wrong_form_is_refused_in_one_line(
    service: Running,
    files: list[tuple[str, tuple[str, bytes]]],
    data: dict[str, str | list[str]],
    code: str,
    told: str,
) -> None:
    with service.client() as client:
        answer = client.post("/v1/summarize", files=files, data=data)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == code
    assert told in error["message"]
    assert "\n" not in error["message"]


@pytest.mark.parametrize("stream", ["true", "false"])
def test_a_refused_document_is_named_by_its_file(serve: Serve, stream: str) -> None:
    good, empty, long = (
        ("a.txt", TEXT.encode()),
        ("empty.txt", b" "),
        ("long.txt", b"The mill turned. " * 900),
    )
    with serve(limits=Limits(tokens=300, queue=2000)).client() as client:
        refused = client.post("/v1/summarize", files=form(good, long), data={"stream": stream})
        some = client.post("/v1/summarize", files=form(good, empty), data={"stream": stream})
    assert refused.status_code == 413
    assert refused.json()["error"]["message"].startswith("long.txt: document 2 has ")
    assert some.status_code == 200
    assert '"message": "empty.txt: document 2 is empty"' in some.text.replace('":"', '": "')


@pytest.mark.parametrize(
    "body",
    [
        b"--x--\r\n",
        b"",
        b"nonsense",
        b"--x\r\n",
        b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nA.',
    ],
)
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "multipart/form-data", "text/plain"])
def test_a_broken_form_is_refused(service: Running, body: bytes, kind: str) -> None:
    with service.client() as client:
        answer = client.post("/v1/documents", content=body, headers={"content-type": kind})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


def test_files_have_a_limit_of_their_own(serve: Serve) -> None:
    limits = Limits(body=20_000, files=60_000)
    with serve(limits=limits).client() as client:
        assert client.post("/v1/documents", files=form(("a.txt", b"a " * 20_000))).status_code == 200
        late = client.post("/v1/documents", files=form(("a.txt", b"a " * 40_000)))
        assert (late.status_code, late.json()["error"]["code"]) == (413, "body_too_large")
        assert client.post("/v1/summarize", json={"text": "a " * 20_000}).status_code == 413
        facts = client.get("/v1/models").json()["data"][0]["precis"]
    assert facts["max_files_bytes"] == 60_000
    assert {".pdf", ".docx", ".eml"} <= set(facts["file_endings"])


def test_too_many_files_are_refused(serve: Serve) -> None:
    with serve(limits=Limits(documents=2)).client() as client:
        answer = client.post("/v1/documents", files=form(*[(f"{n}.txt", b"A.") for n in range(3)]))
    assert answer.status_code == 422
    assert "2" in answer.json()["error"]["message"]


def test_a_file_that_takes_too_long_is_refused_and_the_next_one_is_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    read = reader.read_content

    def slowly(content: bytes, **options: Any) -> Any:
        if content == b"slow":
            go.wait(20)
        return read(content, **options)

    monkeypatch.setattr("precis.server.file_reader.read_content", slowly)
    with serve(limits=Limits(seconds=1)).client() as client:
        late = client.post("/v1/documents", files=form(("a.txt", b"slow")))
        assert late.status_code == 503
        assert "not read within 1 seconds" in late.json()["error"]["message"]
        assert late.headers["retry-after"]
        go.set()
        assert client.post("/v1/documents", files=form(("b.txt", b"Ann sings."))).status_code == 200


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("words", "12", 12),
        ("beams", "123456789", 123_456_789),
        ("tokens", "1234567890", "1234567890"),  # which the schema refuses
        ("words", "-3", "-3"),
        ("words", "\uff11", "\uff11"),
        ("about", "12", "12"),
        ("support", "true", True),
        ("stream", "false", False),
        ("stream", "perhaps", "perhaps"),
        ("about", "true", "true"),
    ],
)
def test_the_fields_of_a_form_are_numbers_switches_or_texts(name: str, text: str, value: object) -> None:
    found = _value(name, text)
    assert (found, type(found)) == (value, type(value))


def test_a_form_has_up_to_20_options_of_100_000_bytes(service: Running) -> None:
    file = form(("n" * 300 + ".txt", b"Ann sings."))

    def code(**data: str) -> str:
        with service.client() as client:
            return client.post("/v1/summarize", files=file, data=data).json()["error"]["code"]

    assert code(**{f"option{n}": "x" for n in range(20)}) == "extra_forbidden"
    assert code(**{f"option{n}": "x" for n in range(21)}) == "bad_form"
    assert [code(about="a" * count) for count in (100_000, 100_001)] == ["string_too_long", "bad_form"]
    with service.client() as client:
        (document,) = client.post("/v1/documents", files=file).json()["documents"]
        refused = client.post("/v1/documents", files=[("f" * 60, ("a.txt", b"A."))]).json()["error"]
    assert document["name"] == "n" * 200
    assert refused["param"] == "f" * 50


# ---- pages of other sites

SITE = "https://example.org"


def test_a_page_of_an_allowed_site_may_ask_and_of_another_may_not(serve: Serve) -> None:
    one = serve(access=access_to(Address(), None, origins=[SITE]))
    asked = {
        "origin": SITE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    with one.client() as client:
        before = client.options("/v1/summarize", headers=asked)
        assert before.status_code == 200
        assert before.headers["access-control-allow-origin"] == SITE
        answer = client.post("/v1/summarize", json={"text": TEXT}, headers={"origin": SITE})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == SITE
        other = {**asked, "origin": "https://example.com"}
        assert "access-control-allow-origin" not in client.options("/v1/summarize", headers=other).headers
        refused = client.post("/v1/summarize", json={"text": TEXT}, headers={"origin": "https://example.com"})
        assert refused.status_code == 403
        assert "--allow-origin" in refused.json()["error"]["message"]


def test_without_the_option_no_other_site_may_ask(service: Running) -> None:
    with service.client() as client:
        answer = client.post("/v1/summarize", json={"text": TEXT}, headers={"origin": SITE})
        assert answer.status_code == 403
        asked = {"origin": SITE, "access-control-request-method": "POST"}
        assert "access-control-allow-origin" not in client.options("/v1/summarize", headers=asked).headers


def test_a_key_is_needed_from_an_allowed_site_too(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text(f"ann {'s' * 40}\n")
    keys = Keys.read(tmp_path / "keys.txt")
    with serve(access=access_to(Address(), keys, origins=["*"])).client() as client:
        refused = client.post("/v1/summarize", json={"text": TEXT}, headers={"origin": SITE})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == "*"
        headers = {"origin": SITE, "authorization": f"Bearer {'s' * 40}"}
        assert client.post("/v1/summarize", json={"text": TEXT}, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("origin", "told"),
    [("*", "every site"), ("example.org", "is not a site"), ("https://example.org/page", "is not a site")],
)
def test_a_wrong_origin_is_refused(origin: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        access_to(Address(), None, origins=[origin])


# ---- what programs for OpenAI's interface send


@pytest.mark.parametrize(
    "more",
    [
        {"stream": None},
        {"max_tokens": 32_768},
        {"max_completion_tokens": 1_000_000},
        {"n": None, "stop": None, "temperature": None, "tools": None, "stream_options": None},
        {
            "messages": [
                {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
                {"role": "tool", "tool_call_id": "1", "content": "done"},
                {"role": "user", "content": TEXT},
            ]
        },
    ],
    ids=str,
)
def test_what_does_not_matter_for_a_summary_does_not_matter(service: Running, more: dict[str, Any]) -> None:
    body = {"model": "default", "messages": [{"role": "user", "content": TEXT}], **more}
    with service.client() as client:
        body["model"] = service.served_model.name
        answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"]


def test_calls_of_tools_do_not_matter_for_responses(service: Running) -> None:
    items = [
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "function_call", "call_id": "1", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "done"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TEXT}]},
    ]
    with service.client() as client:
        body = {
            "model": service.served_model.name,
            "input": items,
            "max_output_tokens": 32_768,
            "stream": None,
        }
        assert client.post("/v1/responses", json=body).status_code == 200


def test_a_user_message_without_content_is_refused(service: Running) -> None:
    body = {"model": service.served_model.name, "messages": [{"role": "user", "content": None}]}
    with service.client() as client:
        answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "the user message lacks content"
