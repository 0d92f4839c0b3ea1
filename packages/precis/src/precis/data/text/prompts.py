"""Prompts of causal language models, by language and form (`prompts.toml`).

Two marks enclose the document. Marks and control tokens inside it are broken by a space, so that no
text can end the fence or open a turn of the chat.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from precis_text.length import ANY_LENGTH, Length, Sentences, Words
from precis_text.support.injections import CHAT_MARKS

DEFAULT_LANGUAGE = "en"
_FILE = "prompts.toml"
_SHORT_WORDS = 40
_SHORT_SENTENCES = {"paragraph": 1, "tldr": 2, "headline": 2}


@dataclass(frozen=True)
class Message:
    """A message of a chat: who says it, and what."""

    role: Literal["system", "user"]
    content: str

    def to_dict(self) -> dict[str, str]:
        """Return the dictionary that chat templates and endpoints take."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The request to a model about a document.

    Attributes:
        language: ISO 639-1 code of the summary; another than those of `prompts.toml` gives the English prompt.
        form: the name of the form; see `precis_text.forms.form.FormType`.
        length: the requested length.
        question: the question that the summary answers, or "".
        instruction: replaces the sentence that names the form, unless it is "".
    """

    language: str | None = None
    form: str = "paragraph"
    length: Length = ANY_LENGTH
    question: str = ""
    instruction: str = ""

    def messages(self, document: str, *, control: Iterable[str] = ()) -> list[Message]:
        """Return the messages for a document, whose text may contain none of the model's `control` tokens."""
        words = _prompts().get(self.language or "") or _prompts()[DEFAULT_LANGUAGE]
        asked = [self.instruction or words[self.form]]
        if isinstance(self.length.cap, Words | Sentences):
            unit = "words" if isinstance(self.length.cap, Words) else "sentences"
            asked.append(words[unit].format(count=self.length.cap.count))
        if self.question:
            asked.append(words["question"].format(question=disarmed(self.question, control)))
        fenced = f"<document>\n{disarmed(document, control)}\n</document>"
        text = f"{' '.join(asked)} {words['fence']}\n\n{fenced}\n\n{' '.join(asked)}"
        return [Message("system", words["system"]), Message("user", text)]

    @property
    def is_short(self) -> bool:
        """True if the model's adapter for short summaries writes it (docs/guide/writers.md has the rule for users).

        The text is at most 40 words or one sentence; a headline, or a tldr of two sentences; in English, or in no
        known language; without a question or an instruction. The adapter was trained on such summaries only.
        """
        if self.question or self.instruction or self.language not in (None, DEFAULT_LANGUAGE):
            return False
        cap, sentences = self.length.cap, _SHORT_SENTENCES.get(self.form, 0)
        most = {Words: _SHORT_WORDS if sentences else 0, Sentences: sentences}
        return cap is not None and cap.count <= most.get(type(cap), 0)

    @property
    def answer(self) -> str:
        """The words before the answer of a model without a chat template."""
        return (_prompts().get(self.language or "") or _prompts()[DEFAULT_LANGUAGE])["answer"]


def disarmed(text: str, control: Iterable[str] = ()) -> str:
    """Return a text whose control tokens and marks of chats are broken by a space."""
    found = CHAT_MARKS.sub(lambda mark: f"{mark[0]} ", text)
    for token in control:
        if len(token) > 1 and token in found:
            found = found.replace(token, f"{token[0]} {token[1:]}")
    return found


@cache
def prompts_digest() -> str:
    """Return a digest of the prompts, for the settings of work that is resumed."""
    return hashlib.sha256(_read()).hexdigest()[:16]


@cache
def _prompts() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(_read().decode())


def _read() -> bytes:
    return files(__package__).joinpath(_FILE).read_bytes()
