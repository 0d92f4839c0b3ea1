"""Documents of two parts, which a model reads with its tokenizer's own separator between them.

ProphetNet (arXiv:2001.04063, section 3.3) reads "answer [SEP] passage" where it is to ask for the answer. Letters do
not do: "[SEP]" typed into a text is plain text to our tokenizer, and other tokenizers call their separator otherwise.
So a document carries a mark between its parts, and whoever turns it into tokens puts one separator token there.
"""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from precis.data.text.control_tokens import control_ids
from precis.data.text.tokenizer_errors import panics_in_one_line
from precis.data.text.unit_marks import unmarked
from precis.errors import UserError

SEPARATOR = "\x1f"
"""ASCII's unit separator, `\\u001f` in JSON: white space to Python, so that words are counted as if it were a space."""


def join_parts(first: str, second: str) -> str:
    """A document of two parts. Only the first mark in a document counts, so `first` is rid of any."""
    return f"{first.replace(SEPARATOR, ' ')}{SEPARATOR}{second}"


def readable(document: str) -> str:
    """The document for a reader's eyes."""
    return unmarked(document).replace(SEPARATOR, " [SEP] ", 1)


def main_part(document: str) -> str:
    """The second part of a document of two, which others may share with it; else the document."""
    return document.partition(SEPARATOR)[2] or document


def encode_parts(
    documents: Sequence[str], tokenizer: PreTrainedTokenizerBase
) -> list[tuple[list[int], list[int]]]:
    """For each document the ids of its first part with the separator behind it, and the ids of the rest as the
    tokenizer gives them, control tokens included; of a document without the mark the first list is empty.

    Raises:
        UserError: a document has two parts and the tokenizer has neither a separator nor an end mark.
    """
    parted = [unmarked(document).partition(SEPARATOR) for document in documents]
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
    """The ids that a model reads: [CLS] document [SEP] or [CLS] first [SEP] second [SEP], in the tokenizer's own
    control tokens.

    Raises:
        UserError: as `encode_parts`.
    """
    control = control_ids(tokenizer)
    rows = []
    for lead, ids in encode_parts(documents, tokenizer):
        if lead:
            start = next((place for place, token in enumerate(ids) if token not in control), 0)
            ids = [*ids[:start], *lead, *ids[start:]]
        rows.append(ids)
    return rows


def _separator(tokenizer: PreTrainedTokenizerBase) -> int:
    for token in (tokenizer.sep_token_id, tokenizer.eos_token_id):
        if isinstance(token, int):
            return token
    raise UserError("the tokenizer has no separator and no end mark to put between a document's two parts")
