"""The interface of a chat model: messages in, text out. A `Writer` makes summaries with any of them.

CausalModel   a causal language model of transformers, with its chat template
Endpoint      a server that speaks the chat protocol of OpenAI
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from precis.data.text.prompts import Message

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•–—]|#{1,6}|\d{1,2}[.)])\s+", re.MULTILINE)
_EMPHASIS = re.compile(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1")

OnTokens = Callable[[int], None]
"""Called with the number of tokens written so far; an exception of it ends the writing."""


@dataclass(frozen=True)
class Reply:
    """A model's reply: its text, its tokens, and whether the model ended it itself."""

    text: str
    tokens: int
    ended: bool


class ChatModel(Protocol):
    """A model that answers messages. Sizes are in tokens; an endpoint's are estimates from above.

    Attributes:
        context: the most tokens of prompt and reply together.
        context_is_assumed: True if neither the model nor the caller declares it.
        control: its control tokens, which no document may contain.
    """

    context: int
    context_is_assumed: bool

    @property
    def control(self) -> Sequence[str]:
        """The control tokens."""

    @property
    def parts(self) -> Any:
        """The model in memory, whose parameters have a size; None for an endpoint."""

    def count(self, text: str) -> int:
        """Return the tokens of a text."""

    @property
    def tokenizer(self) -> Any:
        """The tokenizer in memory; None for an endpoint."""

    def size(self, messages: Sequence[Message], answer: str) -> int:
        """Return the tokens of a prompt."""

    def reply(self, messages: list[Message], answer: str, *, most: int, on_tokens: OnTokens | None) -> Reply:
        """Return the reply, of at most `most` tokens; raise `RunError` if the model cannot answer."""


def plain_reply(text: str) -> str:
    """Return a reply without thoughts, bullets, emphasis, and a first line that only announces the summary."""
    found = _EMPHASIS.sub(r"\2", _BULLET.sub("", _THOUGHT.sub("", text))).strip()
    first, _, rest = found.partition("\n")
    return rest.strip() if first.rstrip().endswith((":", "：")) and rest.strip() else found
