"""Chooses how a model reads a document: whole, by fusion-in-encoder, in pieces, or truncated.

Truncation is never silent: every summary reports the number of tokens read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from precis.data.text.encoding import control_ids, encode_parts, sentence_mark, with_instruction
from precis.data.text.segments import UNIT_KINDS, UnitKind, document_units, segments_of_units
from precis.generation.summary import How, Long
from precis.models.encoder_decoder import SourceEncoder
from precis.models.family import FamilyConfig
from precis.tuning import attached
from precis_text.config import nearest
from precis_text.errors import UserError
from precis_text.length import SENTENCE_ENDS

_NO_LIMIT = 1_000_000  # tokenizers write 1e30 for "no limit"
_MOST = 131_072
# Tokens of the longest inputs in pre-training, for models with only relative positions.
_PRETRAINED_ON = {
    "zcodepp": 512, "t5": 512, "switch_transformers": 512, "mt5": 1024, "umt5": 1024, "longt5": 4096,
}  # fmt: skip


@dataclass(frozen=True)
class Encoded:
    """A document's token ids, those added around them, and each one's unit in `units`, if a prefix has units."""

    head: tuple[int, ...]
    body: tuple[int, ...]
    tail: tuple[int, ...]
    units: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.head) + len(self.body) + len(self.tail)

    @property
    def ids(self) -> list[int]:
        return [*self.head, *self.body, *self.tail]

    def part(self, start: int, stop: int) -> Encoded:
        """Return a part of the body with the head and the tail."""
        return Encoded(self.head, self.body[start:stop], self.tail, self.units[start:stop])

    def segments(self, count: int) -> list[int]:
        """Return the segment of each token, out of `count`. The head and the tail join the nearest segment."""
        if not self.units:
            return [0] * len(self)
        before, after = len(self.head), len(self.tail)
        return segments_of_units([self.units[0]] * before + [*self.units] + [self.units[-1]] * after, count)

    def room(self, limit: int) -> int:
        """Return the number of body tokens that fit into an input of `limit` tokens."""
        room = limit - len(self.head) - len(self.tail)
        if room < 1:
            raise UserError(
                f"an instruction of {len(self.head)} tokens leaves no room in an input of {limit}; shorten it"
            )
        return room


def units_of_prefix(model: PreTrainedModel) -> UnitKind | None:
    """Return the kind of unit of a prefix's segments, None for equal parts; raise `UserError` if it is unknown."""
    attachment = attached(model)
    units = None if attachment is None else attachment.tuning.units
    if units is not None and units not in UNIT_KINDS:
        raise UserError(
            f"the prefix on this model has segments of unknown units {units!r}{nearest(units, UNIT_KINDS)}"
        )
    return None if units is None else UNIT_KINDS[units]


class DocumentEncoder:
    """Encoder of texts to `Encoded`, with one tokenizer, one instruction, and optionally units of one kind."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, instruction: str = "", *, units: UnitKind | None = None
    ) -> None:
        self._tokenizer, self._units = tokenizer, units
        self._control, self._unknown = control_ids(tokenizer), tokenizer.unk_token_id
        self._instruction = instruction
        self._instruction_tokens = 0
        if instruction:
            ((_, ids),) = encode_parts([instruction], tokenizer)
            self._instruction_tokens = len(self._split(ids).body)

    def __call__(self, document: str) -> Encoded:
        """Tokenize a document, with the instruction before it as in training.

        If a document has two parts (`precis_text.control_characters`), the first precedes every piece of the second.

        Raises:
            UserError: if the encoder needs units and the document lacks them; see `document_units`.
        """
        found: list[int] = []
        if self._units is not None:
            found = document_units(document, self._tokenizer, self._units, instruction=self._instruction)
        text = with_instruction(document, self._instruction)
        ((lead, ids),) = encode_parts([text], self._tokenizer)
        whole = self._split(ids)
        if lead:
            return Encoded((*whole.head, *lead), whole.body, whole.tail)
        cut = min(self._instruction_tokens, len(whole.body))
        units = tuple(found[len(whole.head) + cut : len(found) - len(whole.tail)])
        return Encoded((*whole.head, *whole.body[:cut]), whole.body[cut:], whole.tail, units)

    def reads(self, encoded: Encoded) -> bool:
        """Return whether the document has a known token."""
        return any(token != self._unknown for token in encoded.body)

    def _split(self, ids: Sequence[int]) -> Encoded:
        start, stop = 0, len(ids)
        while start < stop and ids[start] in self._control:
            start += 1
        while stop > start and ids[stop - 1] in self._control:
            stop -= 1
        return Encoded(tuple(ids[:start]), tuple(ids[start:stop]), tuple(ids[stop:]))


def input_limit(
    config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase, *, trained: int | None
) -> int | None:
    """Return the longest input in tokens that a model should read; None if no limit is known.

    It is the trained length, or the tokenizer's limit, which comes from pre-training (512 for T5); at most the rows
    of the position table. Models of precis have their own rule (`FamilyConfig.source_limit`).
    """
    declared = int(min(tokenizer.model_max_length, _NO_LIMIT))
    known = declared if declared < _NO_LIMIT else None
    if isinstance(config, FamilyConfig):
        return config.source_limit(trained, known)
    limits = (known if trained is None else trained, position_limit(config))
    return min((limit for limit in limits if limit is not None and limit < _NO_LIMIT), default=None)


def assumed_limit(config: PreTrainedConfig) -> int:
    """Return a limit in tokens for a model that declares none: its type's pre-training length, else 1,024."""
    return _PRETRAINED_ON.get(config.model_type, 1024)


def wanted_limit(config: PreTrainedConfig, wanted: int) -> int:
    """Return the limit that the user requests.

    Raises:
        UserError: if it is below 8 tokens, beyond the model's position table, or above 131,072.
    """
    rows = position_limit(config)
    most = min(_MOST, rows) if rows is not None else _MOST
    if not 8 <= wanted <= most:
        raise UserError(f"max_source={wanted}: this model reads 8 to {most:,} tokens at once")
    return wanted


def position_limit(config: PreTrainedConfig) -> int | None:
    """Return the rows of the encoder's absolute position table, beyond which it crashes; None without one."""
    if isinstance(config, FamilyConfig):
        return config.source_rows
    rows = _first_count(config, "max_encoder_position_embeddings", "max_position_embeddings")
    in_row_0 = config.model_type.endswith("prophetnet")  # padding
    return rows if rows is None else rows - in_row_0


def output_limit(config: PreTrainedConfig) -> int | None:
    """Return the rows of the decoder's absolute position table; None without one."""
    if isinstance(config, FamilyConfig):
        return config.target_rows
    rows = _first_count(
        config, "decoder_positions", "max_decoder_position_embeddings", "max_position_embeddings"
    )
    return rows if rows is None else rows - 2


def _first_count(config: PreTrainedConfig, *names: str) -> int | None:
    """Return the first of these entries that is an integer."""
    return next((n for name in names if isinstance(n := getattr(config, name, None), int)), None)


def choose(length: int, limit: int | None, *, long: Long | None, fusion_limit: int) -> How:
    """Choose how the model reads an input of `length` tokens.

    With `long=None` the model reads it whole if it fits. Beyond, it uses fusion-in-encoder up to `fusion_limit`
    tokens (0 if the model cannot), else pieces.

    Raises:
        UserError: if `long` is "fie" or "passages" and the model does not support it.
    """
    if long == "fie" and not fusion_limit:
        raise UserError("only Z-Code++ models read by fusion-in-encoder; use --long chunk or --long truncate")
    if long == "passages":
        raise UserError(
            "only causal language models and endpoints read passages; use --long chunk or truncate"
        )
    if limit is None or length <= limit:
        return "whole"
    if long is not None:
        return long
    return "fie" if length <= fusion_limit else "chunk"


def pieces(document: Encoded, limit: int, *, ends: frozenset[int]) -> list[Encoded]:
    """Split a document into inputs of at most `limit` tokens. If possible, split in the second half, after the end of a
    sentence (an id in `ends`).
    """
    room = document.room(limit)
    parts = []
    start = 0
    while start < len(document.body):
        stop = min(start + room, len(document.body))
        if stop < len(document.body):
            stop = _last_end(document.body, start + room // 2, stop, ends) or stop
        parts.append(document.part(start, stop))
        start = stop
    return parts


def _last_end(body: Sequence[int], start: int, stop: int, ends: frozenset[int]) -> int | None:
    return next((i + 1 for i in range(stop - 1, start - 1, -1) if body[i] in ends), None)


def sentence_end_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return the ids of the tokens that end a sentence: punctuation with or without closing marks."""
    stops, closers = set(SENTENCE_ENDS), set("\"'”’»)")
    texts = {int(index): set(token.lstrip("▁Ġ")) for token, index in tokenizer.get_vocab().items()}
    return frozenset(index for index, text in texts.items() if text & stops and text <= stops | closers)


def line_end_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return the ids of line breaks: in our tokenizers, byte-level ones, SentencePiece and ProphetNet's."""
    vocabulary, mark = tokenizer.get_vocab(), sentence_mark(tokenizer)
    breaks = {int(vocabulary[name]) for name in ("\n", "Ċ", "<0x0A>") if name in vocabulary}
    return frozenset(breaks if mark is None else breaks | {mark})


def fusion_limit(config: PreTrainedConfig) -> int:
    """Return the longest input in tokens that a model reads by fusion-in-encoder; 0 if it cannot."""
    return config.fusion_limit if isinstance(config, FamilyConfig) else 0


def reading(model: PreTrainedModel, how: How) -> AbstractContextManager[None]:
    """Return a context in which the encoder reads by fusion-in-encoder if `how` is "fie"."""
    if how != "fie":
        return nullcontext()
    encoder: SourceEncoder = model.get_encoder()
    return encoder.fused()
