"""Texts as the token ids that a model reads and writes, with any Hugging Face tokenizer.

A document of two parts gets one separator token between them (`control_characters`).

A summary gets one token between its sentences if the tokenizer has one: ProphetNet's [X_SEP], which its CNN/DailyMail
models learned to write. Released code: targets are "sentence [X_SEP] sentence", and the output is split there again.
Here a sentence is a line of the text. Only tokenizers that declare the mark as a control token have one; others may or
may not know line breaks.

Errors of the tokenizers library become one line, including its panics, which are not an `Exception`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from precis_text.control_characters import SEPARATOR, remove_marks
from precis_text.errors import UserError, first_line

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Item = TypeVar("Item")

SENTENCE_MARKS = ("[X_SEP]", "[unused1]")
"""The mark between sentences: its name in transformers' tokenizer, and its id's name in BERT's vocabulary."""
_TOGETHER = 1000  # most texts or pairs tokenized in one call
_PANIC = "PanicException"  # pyo3's, which cannot be imported
_VARIABLE = "TOKENIZERS_PARALLELISM"


def encode_parts(
    documents: Sequence[str], tokenizer: PreTrainedTokenizerBase
) -> list[tuple[list[int], list[int]]]:
    """Encode each document as the ids of its first part, ended by a separator, and the ids of the rest.

    The rest includes the tokenizer's control tokens. The first list is empty for a document of one part.

    Raises:
        UserError: a document has two parts and the tokenizer has neither a separator nor an end mark.
    """
    parted = [remove_marks(document).partition(SEPARATOR) for document in documents]
    texts = [second if mark else first for first, mark, second in parted]
    with panics_in_one_line():
        rest = tokenizer(texts, return_attention_mask=False, verbose=False)["input_ids"]
    rows = [row for row, (_, mark, _) in enumerate(parted) if mark]
    leads: dict[int, list[int]] = {}
    if rows:
        separator = _separator(tokenizer)
        firsts = [parted[row][0] for row in rows]
        with panics_in_one_line():
            encoded = tokenizer(firsts, add_special_tokens=False, return_attention_mask=False, verbose=False)
        leads = {row: [*ids, separator] for row, ids in zip(rows, encoded["input_ids"], strict=True)}
    return [(leads.get(row, []), ids) for row, ids in enumerate(rest)]


def encode_documents(documents: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Return the ids that a model reads: [CLS] document [SEP], or [CLS] first [SEP] second [SEP].

    The tokenizer's own control tokens replace [CLS] and [SEP].

    Raises:
        UserError: as in `encode_parts`.
    """
    control = control_ids(tokenizer)
    rows = []
    for lead, ids in encode_parts(documents, tokenizer):
        if lead:
            start = next((place for place, token in enumerate(ids) if token not in control), 0)
            ids = [*ids[:start], *lead, *ids[start:]]
        rows.append(ids)
    return rows


def portions(items: Iterable[Item], characters: Callable[[Item], int], *, most: int) -> Iterator[list[Item]]:
    """Yield groups of items to tokenize together; a group ends early when it reaches `most` characters.

    A tokenizer's record of a text takes 250 times the text's memory.
    """
    portion: list[Item] = []
    size = 0
    for item in items:
        portion.append(item)
        size += characters(item)
        if len(portion) >= _TOGETHER or size >= most:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _separator(tokenizer: PreTrainedTokenizerBase) -> int:
    for token in (tokenizer.sep_token_id, tokenizer.eos_token_id):
        if isinstance(token, int):
            return token
    raise UserError("the tokenizer has neither a separator nor an end mark for a document of two parts")


def with_instruction(document: str, instruction: str) -> str:
    """Put an instruction and a space before a document; return the document if the instruction is empty."""
    return f"{instruction} {document}" if instruction else document


def sentence_mark(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the id of the token between sentences, or None if this tokenizer lacks one."""
    declared = set(tokenizer.all_special_tokens)
    found = (tokenizer.convert_tokens_to_ids(name) for name in SENTENCE_MARKS if name in declared)
    return next((index for index in found if isinstance(index, int)), None)


def encode_summaries(summaries: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Return the target ids of a decoder, with the tokenizer's sentence mark, if any, between lines."""
    mark, control = sentence_mark(tokenizer), control_ids(tokenizer)
    if mark is None:
        return _encode(summaries, tokenizer)
    rows = []
    for summary in summaries:
        *before, last = _encode(
            [line for line in summary.splitlines() if line.strip()] or [summary], tokenizer
        )
        ids = [index for line in before for index in [*(i for i in line if i not in control), mark]]
        rows.append([*ids, *last])
    return rows


def _encode(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    with panics_in_one_line():
        encoded = tokenizer(text_target=[*texts], return_attention_mask=False, verbose=False)
    written: list[list[int]] = encoded["input_ids"]
    return written


def decode_summary(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> str:
    """Decode ids to text without control tokens; a sentence mark becomes a line break."""
    mark = sentence_mark(tokenizer)
    lines: list[list[int]] = [[]]
    for index in ids:
        if index == mark:
            lines.append([])
        else:
            lines[-1].append(index)
    texts = (
        str(tokenizer.decode(line, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        for line in lines
    )
    return "\n".join(text for text in texts if mark is None or text.strip())


def control_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return the ids of a tokenizer's control tokens: those around a text, and those that only models write.

    [UNK] is not among them: it stands for a word that the vocabulary lacks. If the end mark is also the unknown word,
    as in GPT-2's vocabulary, it counts as a control token.
    """
    marks = {
        tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id,
        tokenizer.pad_token_id,
    }  # fmt: skip
    unknown = {tokenizer.unk_token_id} - marks
    return frozenset(tokenizer.all_special_ids) - unknown


@contextmanager
def one_line(what: str) -> Iterator[None]:
    """Turn any error of the library into a `UserError` that starts with `what`.

    A panic is not an `Exception`. The library panics after ten million backtracking steps of a regular expression.
    """
    try:
        with panics_in_one_line(what):
            yield
    except UserError:
        raise
    except Exception as error:  # the library passes on whatever its parsers raise
        raise UserError(f"{what}: {_reason(error)}") from error


@contextmanager
def panics_in_one_line(what: str = "this tokenizer cannot read the text") -> Iterator[None]:
    """Turn the library's panics into a `UserError` and let other errors pass; for calls with a user's text."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise UserError(
            f"{what}: the tokenizers library crashed: {first_line(error)}; make the tokenizer again"
        ) from None


def _reason(error: Exception) -> str:
    """Return the reason in one line. transformers mistakes an unreadable SentencePiece file for a tiktoken one."""
    reason = first_line(error)
    if not any(name in reason.lower() for name in ("tiktoken", "sentencepiece")):
        return reason
    if find_spec("sentencepiece") is None:
        return "reading its SentencePiece file needs another package: pip install sentencepiece"
    return "its SentencePiece file cannot be read; make or download it again"


def one_thread() -> AbstractContextManager[None]:
    """Limit the tokenizers library to one thread while the body runs, for processes that share the work."""
    return _set("false")


def all_cores() -> AbstractContextManager[None]:
    """Let the tokenizers library use all cores while the body runs, unless TOKENIZERS_PARALLELISM overrides it.

    A value in that variable also prevents a warning of the library, and its fallback to one thread, after a fork.
    """
    return _set(os.environ.get(_VARIABLE, "true"))


@contextmanager
def _set(value: str) -> Iterator[None]:
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
