"""A causal language model of transformers as a chat model.

It answers one prompt at a time, by greedy search, so that no other document changes a summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, cast

import torch
from transformers import (
    AutoModelForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)

from precis.data.text.prompts import Message
from precis.generation.input_plan import assumed_limit, input_limit
from precis.generation.model_loader import load_model
from precis.generation.model_location import ModelLocation
from precis.generation.writers.chat import OnTokens, Reply
from precis.storage.seal import check_sealed
from precis.tuning.low_rank import beside_base
from precis_text.errors import UserError

_REPLY = "reply"


class CausalModel:
    """A causal language model; see `precis.generation.writers.chat.ChatModel`.

    Args:
        model: in evaluation mode, on its device.
        tokenizer: the model's tokenizer, with its chat template if the model was trained on chats.
        context: the most tokens of prompt and reply; if None, the limit of model and tokenizer.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, context: int | None = None
    ) -> None:
        declared = input_limit(model.config, tokenizer, trained=context)
        self.context = assumed_limit(model.config) if declared is None else declared
        self.context_is_assumed = declared is None
        self.model, self.tokenizer = model, tokenizer

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | ModelLocation,
        *,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        context: int | None = None,
    ) -> Self:
        """Load a folder, a GGUF file or a hub name; see `precis.generation.model_loader.load_model`."""
        loaded = load_model(model, device=device, dtype=dtype, kind=AutoModelForCausalLM)
        return cls(loaded.model, loaded.tokenizer, context=context or loaded.use.max_source)

    def with_adapter(self, folder: Path) -> Self:
        """Return this model with a low-rank adapter; see `precis.tuning.low_rank.beside_base`."""
        check_sealed(folder)
        return type(self)(beside_base(self.model, folder), self.tokenizer, context=self.context)

    @property
    def control(self) -> Sequence[str]:
        """The control tokens of the tokenizer."""
        return cast(Sequence[str], self.tokenizer.all_special_tokens)

    @property
    def parts(self) -> PreTrainedModel:
        """The model."""
        return self.model

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        return len(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def size(self, messages: Sequence[Message], answer: str) -> int:
        """Return the tokens of a prompt."""
        return len(self.ids(messages, answer))

    def reply(self, messages: list[Message], answer: str, *, most: int, on_tokens: OnTokens | None) -> Reply:
        """Return the reply of greedy search, of at most `most` tokens."""
        ids = torch.tensor([self.ids(messages, answer)], device=self.model.device)
        ends = self._ends()
        reporters = StoppingCriteriaList([_CountReporter(ids.shape[1], on_tokens)] if on_tokens else [])
        with torch.inference_mode():
            found = cast(Any, self.model).generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=most, max_length=None, do_sample=False,
                num_beams=1, eos_token_id=ends or None, pad_token_id=ends[0] if ends else 0,
                stopping_criteria=reporters,
            )  # fmt: skip
        new = found[0, ids.shape[1] :].tolist()
        text = self.tokenizer.decode(new, skip_special_tokens=True)
        return Reply(cast(str, text), len(new), bool(new) and new[-1] in ends)

    def ids(self, messages: Sequence[Message], answer: str) -> list[int]:
        """Return the token ids of a prompt."""
        if self.tokenizer.chat_template is None:
            text = "\n\n".join([*(message.content for message in messages), answer])
            return cast(list[int], self.tokenizer(text, verbose=False)["input_ids"])
        text = self.tokenizer.apply_chat_template(
            [message.to_dict() for message in messages],
            add_generation_prompt=True,
            tokenize=False,
            enable_thinking=False,  # a variable of the templates of models that think aloud
        )
        return cast(list[int], self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def closing(self) -> int:
        """Return the id that ends a reply: the first end mark after a reply in the chat template, else the tokenizer's.

        Raises:
            UserError: if there is neither a chat template nor an end mark.
        """
        ends = self._ends()
        if self.tokenizer.chat_template is None or not ends:
            raise UserError(
                "the tokenizer lacks a chat template or an end mark, so it does not say how a reply ends; use an "
                "instruct model, or add chat_template to its tokenizer_config.json"
            )
        chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _REPLY}]
        text = cast(str, self.tokenizer.apply_chat_template(chat, tokenize=False))
        after = self.tokenizer(text.rpartition(_REPLY)[2], add_special_tokens=False)["input_ids"]
        return next((token for token in after if token in ends), ends[-1])

    def _ends(self) -> list[int]:
        """Return the ids that end a reply."""
        config = self.model.generation_config
        own = None if config is None else config.eos_token_id
        found = [] if own is None else [own] if isinstance(own, int) else [*own]
        end = cast(int | None, self.tokenizer.eos_token_id)
        return [*dict.fromkeys([*found, *([] if end is None else [end])])]


class _CountReporter(StoppingCriteria):
    """Reports the tokens written so far after each one."""

    def __init__(self, prompt: int, on_tokens: OnTokens) -> None:
        self._prompt, self._on_tokens = prompt, on_tokens

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        del scores
        self._on_tokens(int(input_ids.shape[1]) - self._prompt)
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
