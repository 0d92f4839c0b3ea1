"""Train a tokenizer on a training set and save it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from precis.data.text.marks import unmarked
from precis.data.text.tokenizer import train_tokenizer
from precis.lock import locked_place
from precis.phases.places import folder_to_be
from precis.phases.run_folder import refuse_foreign, save_tokenizer
from precis.phases.sources import ColumnNames, PairReader, PairSources, find_sources
from precis.telling import Tell, silent

_SAMPLE = 200  # pairs on which the length of words is measured


@dataclass(frozen=True, kw_only=True)
class MadeTokenizer:
    """Size of the vocabulary, and tokens a white-space word of the first training texts."""

    entries: int
    tokens_per_word: float


def make_tokenizer(
    out: Path,
    *,
    vocab_size: int,
    task_name: str | None = None,
    data: str | None = None,
    columns: ColumnNames | None = None,
    skip_bad: bool = False,
    tell: Tell = silent,
) -> MadeTokenizer:
    """Train on the documents and summaries of the training set, and write the folder `out`.

    Raises:
        UserError: the data cannot be read, the vocabulary is too small, `out` is a file, or holds something that
            precis did not write, or another process is writing it.
    """
    with locked_place(folder_to_be(out), doing="writing a tokenizer to"):
        refuse_foreign(out)
        return _make(
            out, vocab_size, find_sources(task_name=task_name, data=data, columns=columns), skip_bad, tell
        )


def _make(out: Path, vocab_size: int, sources: PairSources, skip_bad: bool, tell: Tell) -> MadeTokenizer:
    reader = PairReader(sources.train, skip_bad=skip_bad)
    texts = list(chain.from_iterable((pair.document, pair.summary) for pair in reader))
    tell(f"training on {reader.told()}")
    tokenizer = train_tokenizer(texts, vocab_size=vocab_size)
    save_tokenizer(tokenizer, out)
    shown = [unmarked(text) for text in texts[: 2 * _SAMPLE]]
    tokens = sum(len(ids) for ids in tokenizer(shown, add_special_tokens=False)["input_ids"])
    words = sum(len(text.split()) for text in shown)
    return MadeTokenizer(entries=len(tokenizer), tokens_per_word=tokens / max(1, words))
