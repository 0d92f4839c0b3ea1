"""A chat model whose reply is a function of the prompt; a word is a token."""

from collections.abc import Callable, Sequence

from precis.data.text.prompts import Message
from precis.generation.writers.chat import OnTokens, Reply


class FakeChat:
    """Answers with `say` of the user's message, with no more tokens than it may, and records both."""

    parts = tokenizer = None
    context_is_assumed = False

    def __init__(self, say: Callable[[str], str], *, context: int = 4096) -> None:
        self.say, self.context, self.control = say, context, ()
        self.prompts: list[str] = []
        self.most: list[int] = []

    def count(self, text: str) -> int:
        return len(text.split())

    def size(self, messages: Sequence[Message], answer: str) -> int:
        return sum(self.count(message.content) for message in messages)

    def reply(
        self, messages: Sequence[Message], answer: str, *, most: int, on_tokens: OnTokens | None
    ) -> Reply:
        assert self.size(messages, answer) + most <= self.context, "the context is overrun"
        self.prompts.append(messages[-1].content)
        self.most.append(most)
        words = self.say(messages[-1].content).split(" ")
        if on_tokens:
            on_tokens(len(words[:most]))
        return Reply(" ".join(words[:most]), len(words[:most]), len(words) <= most)


def fenced(prompt: str) -> str:
    """The document in a prompt."""
    return prompt.partition("\n<document>\n")[2].partition("\n</document>")[0]
