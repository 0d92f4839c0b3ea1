"""Encodes documents to vectors of their units, with one model's encoder.

Inputs of several documents, and of a long one's pieces, share a pass. `precis.nn.packing` omits their padding, and
inputs do not attend to each other, so the vectors of a document do not depend on its batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.batches.unit_batches import filled
from precis.data.text.encoding import control_ids, panics_in_one_line
from precis.extract.unit_tokens import ReadUnits, UnitTokenizer, UnitTokens
from precis.generation.input_plan import fusion_limit, reading
from precis.generation.memory_check import refuse_too_much
from precis.generation.summary import How
from precis.messages import OnProgress
from precis.process import trim_heap
from precis_text.selection import TOGETHER, inputs_of

_LARGE = 2048  # positions of a pass that needs much memory


@dataclass(frozen=True)
class EncodedUnits(ReadUnits):
    """A document's units with what the scorer reads: `vectors`, each unit's mean and last hidden state."""

    vectors: Float[Tensor, "u dd"]


@dataclass(frozen=True)
class _Input:
    """Units of one document that are read together."""

    document: int
    rows: Sequence[Sequence[int]]
    length: int  # with the control tokens around them


def unit_tokenizer(tokenizer: PreTrainedTokenizerBase, *, most: int | None = None) -> UnitTokenizer:
    """Return the units and tokens of one of transformers' tokenizers; see `UnitTokenizer`."""

    def encode(texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        with panics_in_one_line():
            encoded = tokenizer(
                [*texts], add_special_tokens=False, return_attention_mask=False, verbose=False
            )
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def decode(ids: Sequence[int]) -> str:
        return str(tokenizer.decode([*ids], skip_special_tokens=True))

    return UnitTokenizer(encode, decode, tokenizer.unk_token_id, most)


class UnitReader:
    """Reader of documents to `ReadUnits` with one model's encoder.

    Args:
        max_source: the longest input in tokens; a Z-Code++ reads longer ones by fusion-in-encoder. Longer documents
            become several inputs.
        most: maximum tokens to read of a document; if None, all.
        together: maximum positions of a pass, padding included, unless a single input has more.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_source: int,
        most: int | None = None,
        together: int = TOGETHER,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.tokens = unit_tokenizer(tokenizer, most=most)
        fused = fusion_limit(model.config)
        self._max_source, self._together = max_source, together
        self._before, self._after = around(tokenizer)
        self._room = min(max(max_source, fused), TOGETHER) - len(self._before) - len(self._after)

    def tokenize(self, documents: Sequence[str]) -> list[UnitTokens | None]:
        """Split documents into units and tokenize them; None for one without known tokens."""
        return self.tokens.tokenize(documents)

    def read(
        self, documents: Sequence[UnitTokens], on_progress: OnProgress | None = None
    ) -> list[EncodedUnits]:
        """Read documents; `on_progress` gets the number of inputs read and their total."""
        inputs = [
            _Input(number, piece, sum(map(len, piece)) + len(self._before) + len(self._after))
            for number, document in enumerate(documents)
            for piece in inputs_of(document.ids, self._room)
        ]
        vectors: dict[int, Tensor] = {}
        for batch in self._batches(inputs):
            vectors.update(zip(batch, self._encode([inputs[place] for place in batch]), strict=True))
            if on_progress is not None:
                on_progress(len(vectors), len(inputs), 0)
        parts: list[list[Tensor]] = [[] for _ in documents]
        read = [0] * len(documents)
        for place, found in enumerate(inputs):
            parts[found.document].append(vectors[place])
            read[found.document] += sum(map(len, found.rows))
        return [
            EncodedUnits(
                found.units, tuple(map(len, found.ids)), seen, found.document_tokens, len(own), torch.cat(own)
            )
            for found, seen, own in zip(documents, read, parts, strict=True)
        ]

    def how(self, tokens: int) -> How:
        """Return how the encoder reads an input of `tokens`."""
        return "fie" if self._max_source < tokens else "whole"

    def _batches(self, inputs: Sequence[_Input]) -> Iterator[list[int]]:
        """Yield the indices of inputs that share a pass: read in the same way, with similar lengths."""
        for how in ("whole", "fie"):
            places = [place for place, each in enumerate(inputs) if self.how(each.length) == how]
            for batch in filled([inputs[place].length for place in places], self._together):
                yield [places[number] for number in batch]

    @torch.inference_mode()
    def _encode(self, batch: Sequence[_Input]) -> list[Float[Tensor, "u dd"]]:
        """Compute the vectors of each input's units."""
        longest = max(each.length for each in batch)
        refuse_too_much(self.model, rows=len(batch), length=longest)
        if len(batch) * longest >= _LARGE:
            trim_heap()  # memory of the previous pass
        states = self._states(batch, longest).flatten(0, 1).float()
        lengths, starts = [], []
        for number, each in enumerate(batch):
            own = [*map(len, each.rows)]
            begin = number * longest + len(self._before)
            starts += [*accumulate(own[:-1], initial=begin)]
            lengths += own
        found = _unit_vectors(states, *(torch.tensor(n, device=states.device) for n in (starts, lengths)))
        return [*found.split([len(each.rows) for each in batch])]

    def _states(self, batch: Sequence[_Input], longest: int) -> Float[Tensor, "b s d"]:
        around = (len(self._before), len(self._after))
        ids = torch.full((len(batch), longest), self.tokenizer.pad_token_id or 0)
        for row, each in zip(ids, batch, strict=True):
            body = [token for unit in each.rows for token in unit]
            assert sum(around) + len(body) == each.length
            row[: each.length] = torch.tensor([*self._before, *body, *self._after])
        inputs = {"input_ids": ids}
        if any(each.length < longest for each in batch):
            lengths = torch.tensor([each.length for each in batch])
            inputs["attention_mask"] = (torch.arange(longest) < lengths[:, None]).long()
        inputs = {name: tensor.to(self.model.device) for name, tensor in inputs.items()}
        with reading(self.model, self.how(longest)):
            states: Tensor = self.model.get_encoder()(**inputs).last_hidden_state
        return states


def _unit_vectors(
    states: Float[Tensor, "n d"], starts: Int[Tensor, " u"], lengths: Int[Tensor, " u"]
) -> Float[Tensor, "u dd"]:
    """Return each unit's mean and last hidden state."""
    owners = torch.repeat_interleave(lengths)
    firsts = lengths.cumsum(0) - lengths
    places = torch.arange(len(owners), device=states.device) + (starts - firsts)[owners]
    sums = states.new_zeros(len(lengths), states.shape[1]).index_add_(0, owners, states[places])
    return torch.cat([sums / lengths[:, None], states[starts + lengths - 1]], dim=-1)


def around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Return the control tokens that the tokenizer adds before and after a text."""
    control = control_ids(tokenizer)
    ids = tokenizer("a", verbose=False)["input_ids"]
    own = [place for place, token in enumerate(ids) if token not in control]
    return (ids[: own[0]], ids[own[-1] + 1 :]) if own else ([], [])
