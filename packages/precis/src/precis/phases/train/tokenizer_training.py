"""Make a tokenizer and write it to a folder: trained on pairs of one set, trained on a mixture of corpora in several
languages, or adopted from another model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from precis.data.mixing_shares import BySize
from precis.data.packs.text_sources import read_texts, sample_texts, text_files
from precis.data.text.unigram_tokenizer import (
    CLS,
    MASK,
    PAD,
    SENTINELS,
    SEP,
    load_tokenizer,
    sentinel,
    train_tokenizer,
    wrapped,
)
from precis.messages import Notify, silent
from precis.phases.data.run_pairs import PairReader, PairSources
from precis.phases.output_folders import folder_to_be
from precis.phases.run_folder import save_tokenizer
from precis.phases.train.trainable_model import texts_of
from precis.storage.locks import locked_place
from precis.storage.seal import refuse_foreign
from precis_text.control_characters import remove_marks
from precis_text.errors import UserError

_SAMPLE = 200  # pairs to measure the length of words on
_CHARACTERS = 20_000_000  # of a mixture, at least
_CHARACTERS_AN_ENTRY = 400  # of the vocabulary: more entries need more text
_LONGEST = 100_000  # characters of one document


@dataclass(frozen=True, kw_only=True)
class MadeTokenizer:
    """The vocabulary size, and tokens per white-space word of the first training texts, in total and by corpus."""

    entries: int
    tokens_per_word: float
    by_corpus: dict[str, float]


def make_tokenizer(
    out: Path, sources: PairSources, *, vocab_size: int, notify: Notify = silent
) -> MadeTokenizer:
    """Train a tokenizer on the documents and summaries of the training set, and write the folder `out`.

    Raises:
        UserError: the data cannot be read, the vocabulary is too small, `out` is a file or contains something that
            precis did not write, or another process is writing it.
    """

    def read() -> dict[str, list[str]]:
        reader = PairReader(sources.train, skip_bad=sources.skip_bad)
        texts = list(texts_of(reader))
        notify(f"training on {reader.describe_rows()}")
        return {str(sources.train): texts}

    return _make(out, read, vocab_size=vocab_size)


def take_tokenizer(out: Path, name: str) -> int:
    """Write another model's tokenizer, with the control tokens that pre-training needs, to the folder `out`.

    Args:
        name: a folder, or a model on the hub.

    Returns:
        The new number of entries.

    Raises:
        UserError: the tokenizer is missing or cannot be extended, `out` is a file or contains something that precis
            did not write, or another process is writing it.
    """
    with locked_place(folder_to_be(out), doing="writing a tokenizer to"):
        refuse_foreign(out)
        tokenizer = adopt_tokenizer(load_tokenizer(name), name=name)
        save_tokenizer(tokenizer, out)
    return len(tokenizer)


def make_shared_tokenizer(
    out: Path,
    corpora: Sequence[str],
    *,
    mixture: BySize,
    vocab_size: int,
    column: str = "text",
    skip_bad: bool = False,
    characters: int | None = None,
    notify: Notify = silent,
) -> MadeTokenizer:
    """Train a tokenizer on a sample of several corpora, each with its share, and write the folder `out`.

    A corpus that is smaller than its share is used completely, once.

    Args:
        corpora: files, folders or patterns of text, as for a pack.
        column: the column of rows with the text.
        characters: size of the sample; if None, as large as the vocabulary needs.

    Raises:
        UserError: see `make_tokenizer`; or a corpus is named twice or contains no text.
    """
    total = characters or max(_CHARACTERS, _CHARACTERS_AN_ENTRY * vocab_size)

    def read() -> dict[str, list[str]]:
        files = {corpus: text_files([corpus]) for corpus in corpora}
        if len(files) < len(corpora):
            raise UserError("--corpus: a corpus is named twice; name each once")
        sizes = {
            corpus: sum(len(text) for text in read_texts(paths, column=column, skip_bad=skip_bad))
            for corpus, paths in files.items()
        }
        for corpus, size in sizes.items():
            if not size:
                raise UserError(f"{corpus}: contains no text to train a tokenizer on")
        sampled = {}
        for (corpus, size), share in zip(sizes.items(), mixture.shares([*sizes.values()]), strict=True):
            texts = read_texts(files[corpus], column=column, skip_bad=skip_bad)
            wanted = min(size, max(1, round(share * total)))
            sampled[corpus] = sample_texts(texts, characters=wanted, longest=_LONGEST)
            kept = sum(map(len, sampled[corpus]))
            notify(f"{corpus}: {kept:,} of {size:,} characters, for a share of {share:.1%}")
        return sampled

    return _make(out, read, vocab_size=vocab_size)


def _make(out: Path, read: Callable[[], dict[str, list[str]]], *, vocab_size: int) -> MadeTokenizer:
    with locked_place(folder_to_be(out), doing="writing a tokenizer to"):
        refuse_foreign(out)
        texts = read()
        everything = [text for of_one in texts.values() for text in of_one]
        tokenizer = train_tokenizer(everything, vocab_size=vocab_size)
        save_tokenizer(tokenizer, out)

    def length_of_words(shown: list[str]) -> float:
        plain = [remove_marks(text) for text in shown[: 2 * _SAMPLE]]
        tokens = sum(len(ids) for ids in tokenizer(plain, add_special_tokens=False)["input_ids"])
        return tokens / max(1, sum(len(text.split()) for text in plain))

    return MadeTokenizer(
        entries=len(tokenizer),
        tokens_per_word=length_of_words(everything),
        by_corpus={corpus: length_of_words(of_one) for corpus, of_one in texts.items()},
    )


def adopt_tokenizer(tokenizer: PreTrainedTokenizerBase, *, name: str) -> PreTrainedTokenizerFast:
    """Copy a tokenizer and add [PAD], [CLS], [SEP], [MASK] and 100 sentinels, unless it has them under other names.

    mT5's 250,000 pieces, which Z-Code++ uses for its multilingual model (section 3.1), have an end mark and nothing
    else. DeBERTa's and XLM-R's lack the sentinels. Missing tokens are appended, so that all other ids stay, and with
    them the rows of a pre-trained embedding table.

    Texts are put between two marks: its token for the start of a text or a sequence, and its separator or its token
    for the end of a sequence. Splitting, normalization and all ids stay the same.

    Args:
        name: the tokenizer's name in messages.

    Raises:
        UserError: it is not built on the tokenizers library.
    """
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise UserError(f"{name}: is not a fast tokenizer, and only those can be extended; use another one")
    marks = {
        "cls": tokenizer.cls_token or tokenizer.bos_token or CLS,
        "sep": tokenizer.sep_token or tokenizer.eos_token or SEP,
        "pad": tokenizer.pad_token or PAD,
        "mask": tokenizer.mask_token or MASK,
    }
    first, last = str(marks["cls"]), str(marks["sep"])
    sentinels = [sentinel(index) for index in range(SENTINELS)]
    backend = copy.deepcopy(tokenizer.backend_tokenizer)
    known = backend.get_vocab(with_added_tokens=True)
    control = [*map(str, marks.values()), *sentinels]
    new = [AddedToken(mark, normalized=False, special=True) for mark in control if mark not in known]
    backend.add_special_tokens(new)
    backend.no_padding()
    backend.no_truncation()
    return wrapped(
        backend, cls=first, sep=last, pad=str(marks["pad"]), unk=tokenizer.unk_token, mask=str(marks["mask"]),
        sentinels=sentinels,
    )  # fmt: skip
