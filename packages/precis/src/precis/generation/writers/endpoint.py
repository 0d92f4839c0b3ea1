"""A server that speaks the chat protocol of OpenAI, as a chat model: ollama, llama.cpp, vLLM.

    http://127.0.0.1:11434/v1#qwen3:4b    the address of the server, then the model's name on it

Documents leave this machine only with `--allow-remote`, over https. The key comes only from PRECIS_API_KEY. The server
counts no tokens before it reads, so sizes are estimates from above; what it says it read afterwards is checked.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from precis.data.text.prompts import Message
from precis.generation.writers.chat import OnTokens, Reply
from precis_text.errors import RunError, UserError, first_line

KEY = "PRECIS_API_KEY"
CONTEXT = 4096
"""The tokens of prompt and reply that a server gets if it declares no limit."""

_TIMES = httpx.Timeout(10.0, read=120.0)  # seconds; a server may read a long prompt before the first token
_TRIES = 5  # of a request that the server turns away
_LONGEST_WAIT = 60.0  # seconds that a Retry-After may ask for
_BUSY = (429, 503)
_MOST_BYTES = 4_000_000  # of a reply
_PER_BYTE = 0.4  # tokens a byte, from above: English has about 0.25
_PER_LETTER = 1.2  # tokens a character outside ASCII
_AROUND = 16  # tokens of the chat template for each message
_LIMITS = ("max_model_len", "context_length", "n_ctx")  # of a model's record in /models, or of its `meta`


class Endpoint:
    """A model on a server; see `precis.generation.writers.chat.ChatModel`.

    Args:
        base: the address without the model's name.
        model: the model's name on the server.
        context: the most tokens of prompt and reply; if None, what the server declares, else 4,096.
        times: the limits in seconds of connecting and of waiting for the next byte.
    """

    parts = tokenizer = None
    control: Sequence[str] = ()  # the marks of known templates are broken in any case

    def __init__(
        self, base: str, model: str, *, context: int | None = None, times: httpx.Timeout = _TIMES
    ) -> None:
        key = os.environ.get(KEY, "")
        self.model = model
        self._client = httpx.Client(
            base_url=base.rstrip("/"),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=times,
            trust_env=False,  # no proxy sees the documents
            follow_redirects=False,
        )
        self._base = base
        found = self._declared() if context is None or not model else None
        self.context = context or found or CONTEXT
        self.context_is_assumed = context is None and found is None

    @classmethod
    def at(cls, address: str, *, allow_remote: bool = False, context: int | None = None) -> Self:
        """Return the endpoint at an address; see `checked_address`."""
        base, model = checked_address(address, allow_remote=allow_remote)
        return cls(base, model, context=context)

    def count(self, text: str) -> int:
        """Return an estimate from above of a text's tokens."""
        ascii_ = sum(character.isascii() for character in text)
        return math.ceil(_PER_BYTE * ascii_ + _PER_LETTER * (len(text) - ascii_))

    def size(self, messages: Sequence[Message], answer: str) -> int:
        """Return an estimate from above of a prompt's tokens."""
        del answer
        return sum(self.count(message.content) + _AROUND for message in messages)

    def reply(self, messages: list[Message], answer: str, *, most: int, on_tokens: OnTokens | None) -> Reply:
        """Return the reply; it repeats the request once after a broken stream.

        Raises:
            UserError: if the server refuses the request, or lacks the model.
            RunError: if it cannot be reached, stays busy, breaks off twice, or cut the prompt.
        """
        del answer
        body = {
            "model": self.model, "messages": [message.to_dict() for message in messages], "max_tokens": most,
            "temperature": 0, "seed": 0, "stream": True, "stream_options": {"include_usage": True},
        }  # fmt: skip
        least = sum(len(message.content.split()) for message in messages)
        try:
            return self._asked(body, least, on_tokens)
        except _BrokenError:
            try:
                return self._asked(body, least, on_tokens)
            except _BrokenError as error:
                raise RunError(f"{self._base}: the reply broke off twice: {error}") from error

    def _asked(self, body: dict[str, Any], least: int, on_tokens: OnTokens | None) -> Reply:
        stream = _Stream(self._base)
        try:
            with self._opened(body) as answer:
                for line in answer.iter_lines():
                    stream.take(line)
                    if on_tokens and stream.tokens:
                        on_tokens(stream.tokens)
                    if stream.done:
                        break
        except httpx.TimeoutException as error:
            raise RunError(
                f"{self._base}: no answer within {self._client.timeout.read:.0f} seconds"
            ) from error
        except httpx.TransportError as error:
            raise _BrokenError(first_line(error)) from error
        if stream.end is None:
            raise _BrokenError("the stream ended without a reason")
        if stream.read is not None and stream.read < least:
            raise RunError(
                f"{self._base}: the server read {stream.read:,} tokens of a prompt of {least:,} words, so it truncated "
                f"the document silently; give its true context with --max-source"
            )
        return Reply("".join(stream.texts), stream.written or stream.tokens, stream.end == "stop")

    @contextmanager
    def _opened(self, body: dict[str, Any]) -> Iterator[httpx.Response]:
        """Open the stream of a reply; wait and ask again while the server is busy."""
        for attempt in range(1, _TRIES + 1):
            with self._reached("POST", "/chat/completions", json=body) as answer:
                if answer.status_code not in _BUSY:
                    self._check(answer)
                    yield answer
                    return
                wait = _seconds(answer.headers.get("retry-after"), attempt)
            if wait > _LONGEST_WAIT:
                raise RunError(
                    f"{self._base}: the server is busy and asks to wait {wait:.0f} seconds; try later"
                )
            if attempt < _TRIES:
                time.sleep(wait)
        raise RunError(f"{self._base}: the server stayed busy for {_TRIES} requests; try later")

    @contextmanager
    def _reached(self, method: str, path: str, **options: Any) -> Iterator[httpx.Response]:
        try:
            stream = self._client.stream(method, f"{self._base.rstrip('/')}{path}", **options)
            answer = stream.__enter__()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise RunError(
                f"{self._base}: cannot be reached ({first_line(error)}); start the server"
            ) from error
        try:
            yield answer
        finally:
            answer.close()

    def _check(self, answer: httpx.Response) -> None:
        """Raise for a status that is not a success, with the server's words."""
        status = answer.status_code
        if status == httpx.codes.OK:
            return
        said = _message(answer)
        advice = {
            401: f"; put the key in {KEY}",
            403: f"; put the key in {KEY}",
            404: f"; it may lack the model {self.model!r}: name one after #",
        }.get(status, "")
        if httpx.codes.is_client_error(status):
            raise UserError(f"{self._base}: answered {status}: {said}{advice}")
        raise RunError(f"{self._base}: answered {status}: {said}")

    def _declared(self) -> int | None:
        """Return the context that the server declares, if any; take its only model if none was named."""
        try:
            with self._reached("GET", "/models") as answer:
                answer.raise_for_status()
                found = json.loads(answer.read())["data"]
            records = [each for each in found if isinstance(each, dict)]
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            records = []
        names = [str(each.get("id")) for each in records]
        if not self.model:
            if len(names) != 1:
                offered = f"; it has {', '.join(names[:8])}" if names else ""
                raise UserError(f"{self._base}: name the model after #{offered}")
            self.model = names[0]
        own: dict[str, Any] = next((each for each in records if each.get("id") == self.model), {})
        meta = own.get("meta")
        places = [own, meta] if isinstance(meta, dict) else [own]
        found = [place[name] for name in _LIMITS for place in places if isinstance(place.get(name), int)]
        return found[0] if found and found[0] > 0 else None


class _BrokenError(Exception):
    """A stream that ended before the reply did."""


class _Stream:
    """The events of a reply so far.

    Attributes:
        texts: the parts of the text; tokens: their number.
        end: why the reply ended; None before it did.
        read, written: the tokens of prompt and reply, if the server reports them.
    """

    def __init__(self, base: str) -> None:
        self._base = base
        self.texts: list[str] = []
        self.tokens = self._bytes = 0
        self.end: str | None = None
        self.read: int | None = None
        self.written: int | None = None
        self.done = False

    def take(self, line: str) -> None:
        """Take a line of the stream; raise `RunError` if the server reports an error, or the reply is too large."""
        self._bytes += len(line)
        if self._bytes > _MOST_BYTES:
            raise RunError(f"{self._base}: the reply has more than {_MOST_BYTES:,} characters")
        kind, _, data = line.partition(":")
        if kind != "data" or not (data := data.strip()):
            return
        if data == "[DONE]":
            self.done = True
            return
        try:
            event = json.loads(data)
        except ValueError as error:
            raise _BrokenError(f"an event is not JSON: {data[:40]!r}") from error
        if not isinstance(event, dict):
            raise _BrokenError(f"an event is not an object: {data[:40]!r}")
        if event.get("error"):
            raise RunError(f"{self._base}: the server stopped: {str(event['error'])[:200]}")
        self._usage(event.get("usage"))
        choices = event.get("choices") or []
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise _BrokenError(f"an event is not the protocol's: {data[:40]!r}")
        for choice in choices:
            delta = choice.get("delta")
            part = delta.get("content") if isinstance(delta, dict) else None
            if isinstance(part, str) and part:
                self.texts.append(part)
                self.tokens += 1
            self.end = str(choice.get("finish_reason") or "") or self.end

    def _usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
            self.read = read if isinstance(read, int) and read > 0 else self.read
            self.written = written if isinstance(written, int) and written > 0 else self.written


def checked_address(address: str, *, allow_remote: bool = False) -> tuple[str, str]:
    """Return the address without the model's name, and that name, which may be empty.

    Raises:
        UserError: if the address is invalid, or on another machine without permission or without https.
    """
    base, _, model = address.partition("#")
    parts = urlsplit(base)
    if parts.username or parts.password:
        raise UserError(f"{parts.hostname}: an address holds no password; put the key in {KEY}")
    if not parts.hostname or parts.query:
        raise UserError(f"{address}: write an address like http://127.0.0.1:11434/v1#MODEL")
    if not _is_loopback(parts.hostname):
        if not allow_remote:
            raise UserError(
                f"{address}: is on another machine, which would read the documents; add --allow-remote to allow it"
            )
        if parts.scheme != "https":
            raise UserError(f"{address}: documents leave this machine over https only; use https://")
    return base, model


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _seconds(header: str | None, attempt: int) -> float:
    """Return the seconds to wait: the server's, else 1, 2, 4, ..."""
    try:
        return max(0.0, float(header or ""))
    except ValueError:
        return float(2 ** (attempt - 1))


def _message(answer: httpx.Response) -> str:
    """Return the words of an error in one line."""
    try:
        text = answer.read()[:10_000].decode("utf-8", "replace")
    except httpx.HTTPError:
        return "no reason given"
    try:
        found = json.loads(text)["error"]
        text = str(found["message"] if isinstance(found, dict) else found)
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:200] or "no reason given"
