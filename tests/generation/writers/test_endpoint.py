import json
import threading
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from precis.data.text.prompts import Message
from precis.generation.writers.endpoint import Endpoint, _Stream, checked_address
from precis.generation.writers.writer import Writer
from precis.generation.writers.writer_opening import open_writer
from precis_text.errors import RunError, UserError
from tests.generation.writers.endpoint_server import Handler, breaks_off, refuses, says, serving
from tests.generation.writers.test_writer import BOATS, LONG

SAID = "Ann sold Bob 3 boats. Bob paid 900 pounds for them."


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr("precis.generation.writers.endpoint.time", SimpleNamespace(sleep=found.append))
    return found


def test_an_endpoint_writes_with_the_model_after_the_hash() -> None:
    with serving(says(SAID)) as server:
        (summary,) = open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)
    assert summary.text == SAID
    assert [each.origin for each in summary.sentences] == ["written", "quoted"]
    (body,) = server.asked
    assert (body["model"], body["temperature"], body["seed"], body["stream"]) == ("tiny", 0, 0, True)
    assert body["max_tokens"] < 200
    assert "Authorization" not in server.headers[0]


def test_the_only_model_needs_no_name_and_several_need_one() -> None:
    with serving(says(SAID)) as server:
        open_writer(server.address).summarize([BOATS], words=30)
        assert server.asked[0]["model"] == "tiny"
    with (
        serving(says(SAID), models=[{"id": "a"}, {"id": "b"}]) as server,
        pytest.raises(UserError, match="a, b"),
    ):
        open_writer(server.address)


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRECIS_API_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    with serving(says(SAID)) as server:
        open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)
    assert server.headers[0]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://192.0.2.1/v1#m", "--allow-remote"),
        ("https://example.org/v1#m", "--allow-remote"),
        ("http://localhost.example.org/v1#m", "--allow-remote"),
        ("http://127.0.0.1@192.0.2.1/v1#m", "no password"),
        ("http:///v1#m", "address like"),
    ],
)
def test_no_document_leaves_the_machine_unasked(address: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        open_writer(address)


def test_a_remote_endpoint_needs_https() -> None:
    with pytest.raises(UserError, match="https"):
        open_writer("http://192.0.2.1/v1#m", allow_remote=True)
    assert checked_address("https://192.0.2.1/v1#m", allow_remote=True) == ("https://192.0.2.1/v1", "m")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "[::1]", "localhost", "LOCALHOST:80"])
def test_this_machine_has_several_names(host: str) -> None:
    assert checked_address(f"http://{host}/v1") == (f"http://{host}/v1", "")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://ann@127.0.0.1/v1#m", "no password"),
        ("http://:secret@127.0.0.1/v1#m", "no password"),
        ("http://127.0.0.1/v1?key=1#m", "address like"),
    ],
)
def test_an_address_holds_nothing_but_the_place_and_the_model(address: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        checked_address(address)


def test_no_proxy_of_the_environment_sees_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(says(SAID)) as server:
        (summary,) = open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)
    assert summary.text == SAID


def test_a_redirect_is_not_followed() -> None:
    with (
        serving(says(SAID)) as other,
        serving(refuses(307, Location=f"{other.address}/chat/completions")) as server,
    ):
        with pytest.raises(RunError, match="307"):
            open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)
        assert not other.asked


@pytest.mark.parametrize(
    "model", [{"max_model_len": 700}, {"meta": {"n_ctx": 700}}, {"context_length": 700}], ids=str
)
def test_the_declared_context_is_kept(model: dict[str, int | dict[str, int]]) -> None:
    with serving(says(SAID), models=[{"id": "tiny", **model}]) as server:
        writer = open_writer(f"{server.address}#tiny")
        (summary,) = writer.summarize([LONG], words=30)
    assert writer.max_source == 700
    assert not writer.limit_is_assumed
    assert summary.how == "passages"
    assert summary.truncated
    sent = sum(len(message["content"]) for message in server.asked[0]["messages"])
    assert sent < 4 * 700


@pytest.mark.parametrize(
    ("model", "context"),
    [
        ({"id": "other", "n_ctx": 700}, 4096),
        ({"id": "tiny", "n_ctx": 0}, 4096),
        ({"id": "tiny", "n_ctx": "700"}, 4096),
        ({"id": "tiny", "n_ctx": 1, "max_model_len": 300}, 300),
        ({"id": "tiny", "n_ctx": 1}, 1),
        ({"id": "tiny", "meta": 7}, 4096),
        ("tiny", 4096),
    ],
    ids=str,
)
def test_what_a_server_declares_counts_only_for_the_model_and_as_a_number(model: Any, context: int) -> None:
    with serving(says(SAID), models=[model]) as server:
        chat = Endpoint(server.address, "tiny")
    assert (chat.context, chat.context_is_assumed) == (context, context == 4096)
    assert server.gets == ["/v1/models"]


def test_a_server_is_not_asked_what_the_caller_says() -> None:
    with serving(says(SAID)) as server:
        Endpoint(server.address, "tiny", context=300)
    assert server.gets == []


def test_a_context_that_nobody_declares_is_assumed_and_told() -> None:
    with serving(says(SAID)) as server:
        writer = open_writer(f"{server.address}#tiny")
        assert (writer.max_source, writer.limit_is_assumed) == (4096, True)
        writer = open_writer(f"{server.address}#tiny", context=900)
        assert (writer.max_source, writer.limit_is_assumed) == (900, False)


def test_a_server_that_cuts_the_prompt_in_silence_is_found_out() -> None:
    with (
        serving(says(SAID, read=60)) as server,
        pytest.raises(RunError, match=r"read 60 tokens of a prompt of .* truncated the document silently"),
    ):
        open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)


def test_a_server_that_reads_one_token_a_word_has_read_all() -> None:
    messages = [Message("user", "one two three"), Message("user", "four")]
    for read, cut in ((4, False), (3, True)):
        with serving(says(SAID, read=read)) as server:
            chat = Endpoint(server.address, "tiny", context=900)
            if cut:
                with pytest.raises(RunError, match="read 3 tokens of a prompt of 4 words"):
                    chat.reply(messages, "", most=9, on_tokens=None)
            else:
                assert chat.reply(messages, "", most=9, on_tokens=None).tokens == 7


def test_a_busy_server_is_asked_again_when_it_says(waits: list[float]) -> None:
    with serving(refuses(429, Retry_After="7"), refuses(503), says(SAID)) as server:
        (summary,) = open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)
    assert summary.text == SAID
    assert waits == [7.0, 2.0]


def test_a_server_that_stays_busy_or_asks_for_long_waits_is_given_up(waits: list[float]) -> None:
    with serving(refuses(429)) as server, pytest.raises(RunError, match="stayed busy for 5 requests"):
        open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)
    assert waits == [1.0, 2.0, 4.0, 8.0]
    with serving(refuses(429, Retry_After="3600")) as server, pytest.raises(RunError, match="3600 seconds"):
        open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)
    assert len(server.asked) == 1


def test_a_broken_stream_is_asked_for_once_more() -> None:
    with serving(breaks_off, says(SAID)) as server:
        (summary,) = open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)
    assert summary.text == SAID
    with serving(breaks_off) as server, pytest.raises(RunError, match="broke off twice"):
        open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("{broken", "not JSON"),
        ("[1]", "not an object"),
        ('{"error": {"message": "out of memory"}}', "out of memory"),
        ('{"choices": [{"delta": null}]}', "without a reason"),
        ('{"choices": [1]}', "not the protocol's"),
        ('{"choices": 7}', "not the protocol's"),
    ],
)
def test_events_that_are_not_the_protocol_are_one_clear_line(event: str, told: str) -> None:
    def answer(handler: Handler, _: object) -> None:
        handler.start()
        handler.event(event)

    with serving(answer) as server, pytest.raises(RunError, match=told):
        open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)


def stream(*events: dict[str, Any] | str) -> _Stream:
    found = _Stream("here")
    for event in events:
        found.take(event if isinstance(event, str) else f"data: {json.dumps(event)}")
    return found


def test_the_parts_of_a_text_are_those_that_are_texts_and_the_last_reason_counts() -> None:
    deltas: list[Any] = [{"content": "A"}, {"content": ""}, {"content": 5}, {}, None, {"content": "b"}]
    found = stream(
        *({"choices": [{"delta": delta}]} for delta in deltas),
        {"choices": [{"finish_reason": "length"}]},
        {"choices": [{"finish_reason": None}]},
        {"choices": None},
        ": a comment",
        "event: x",
        "data:",
    )
    assert (found.texts, found.tokens, found.end, found.done) == (["A", "b"], 2, "length", False)
    assert stream("data: [DONE]").done


def test_what_a_server_says_it_read_and_wrote_are_numbers_above_0() -> None:
    good: dict[str, Any] = {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    assert (stream(good).read, stream(good).written) == (1, 1)
    for bad in (0, -1, "7", None):
        other: dict[str, Any] = {"usage": {"prompt_tokens": bad, "completion_tokens": bad}}
        assert (stream(other).read, stream(other).written) == (None, None)
        assert (stream(good, other).read, stream(good, other).written) == (1, 1)


def test_a_reply_has_4_million_characters_at_most() -> None:
    found = stream("x" * 3_999_999, "x")
    with pytest.raises(RunError, match="more than 4,000,000 characters"):
        found.take("x")


def test_a_silent_server_is_not_waited_for_without_end() -> None:
    free = threading.Event()

    def silent(handler: Handler, _: object) -> None:
        handler.start()
        free.wait(20)

    with serving(silent) as server:
        chat = Endpoint(server.address, "tiny", times=httpx.Timeout(0.3))
        with pytest.raises(RunError, match="no answer within"):
            Writer(chat).summarize([BOATS], words=30)
        free.set()


def test_an_interrupted_reply_closes_the_connection() -> None:
    def endless(handler: Handler, _: object) -> None:
        handler.start()
        for _ in range(100_000):
            handler.words("and so on")

    def stop(done: int, total: int, tokens: int) -> None:
        if tokens > 5:
            raise KeyboardInterrupt

    with serving(endless) as server:
        with pytest.raises(KeyboardInterrupt):
            open_writer(f"{server.address}#tiny").summarize([BOATS], words=30, on_progress=stop)
        assert server.cut_off.wait(10)


def test_a_reply_without_end_is_cut_off() -> None:
    def endless(handler: Handler, _: object) -> None:
        handler.start()
        while True:
            handler.words("word " * 2000)

    with serving(endless) as server, pytest.raises(RunError, match="more than 4,000,000"):
        open_writer(f"{server.address}#tiny").summarize([BOATS], words=30)


def test_a_refused_request_is_told_in_the_servers_words() -> None:
    with (
        serving(refuses(404, "no such model")) as server,
        pytest.raises(UserError, match="no such model; it may lack"),
    ):
        open_writer(f"{server.address}#nothing").summarize([BOATS], words=30)


@pytest.mark.parametrize(
    ("status", "kind", "advice"),
    [
        (400, UserError, ""),
        (401, UserError, "; put the key in PRECIS_API_KEY"),
        (403, UserError, "; put the key in PRECIS_API_KEY"),
        (404, UserError, "; it may lack the model 'tiny': name one after #"),
        (500, RunError, ""),
    ],
)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "no,\\n never"}}', "no, never"),
        (b'{"error": "busy"}', "busy"),
        (b"<h1>nothing</h1>", "<h1>nothing</h1>"),
        (b"[1]", "[1]"),
        (b"x" * 300, "x" * 200),
        (b"", "no reason given"),
    ],
)
def test_a_refusal_is_one_line_with_what_to_do(
    status: int, kind: type[Exception], advice: str, body: bytes, said: str
) -> None:
    def answer(handler: Handler, _: object) -> None:
        handler.start(status)
        handler.wfile.write(body)

    with serving(answer) as server, pytest.raises(kind) as caught:
        Endpoint(server.address, "tiny", context=900).reply([], "", most=9, on_tokens=None)
    assert str(caught.value) == f"{server.address}: answered {status}: {said}{advice}"


@pytest.mark.parametrize(
    ("header", "waited"), [(None, [1.0, 2.0]), ("0.5", [0.5, 0.5]), ("-3", [0.0, 0.0]), ("60", [60.0, 60.0])]
)
def test_a_busy_server_is_waited_for_as_it_asks_or_twice_as_long_each_time(
    header: str | None, waited: list[float], waits: list[float]
) -> None:
    busy = refuses(503) if header is None else refuses(503, Retry_After=header)
    with serving(busy, busy, says(SAID)) as server:
        Endpoint(server.address, "tiny", context=900).reply([], "", most=9, on_tokens=None)
    assert waits == waited


def test_no_server_is_one_clear_line() -> None:
    with serving(says(SAID)) as server:
        address = server.address
    with pytest.raises(RunError, match="cannot be reached"):
        open_writer(address)


def test_a_reply_at_the_token_limit_loses_its_unfinished_sentence() -> None:
    with serving(says(f"{SAID} The harbour will be", reason="length")) as server:
        (summary,) = open_writer(f"{server.address}#tiny").summarize([BOATS], words=40)
    assert summary.text == SAID


def test_the_estimate_of_tokens_is_from_above() -> None:
    chat = Endpoint("http://127.0.0.1:9", "m", context=1000)
    for text in (BOATS, "Größe über Maß", "湖の水は冷たい。", "1,234.5 %"):
        assert chat.count(text) >= len(text.split())
    assert chat.count(BOATS) >= len(BOATS) / 4
    counts = {"": 0, "aaaaa": 2, "aaaaaa": 3, "é": 2, "湖湖湖湖湖": 6, "a湖": 2}
    assert {text: chat.count(text) for text in counts} == counts
    messages = [Message("system", "aaaaa"), Message("user", "")]
    assert (
        chat.size(messages, "Summary:") == 2 + 2 * 16
    )  # the template of a chat has marks around each message
