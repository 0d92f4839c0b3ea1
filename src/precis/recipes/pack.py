"""Pack unlabelled text for pre-training: files -> (tokenizer) -> token ids in flat files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from precis.data.corpus import PACK_FILE, TOKENIZER_FOLDER
from precis.data.packing import Counts, falls_below, pack, text_digest
from precis.data.text_sources import TextReport, read_texts, text_files
from precis.data.tokenizer import train_tokenizer
from precis.errors import UserError
from precis.recipes.run_folder import save_tokenizer

_SAMPLE = 20_000_000  # characters that a new tokenizer is trained on
_LONGEST = 100_000  # of one document
_BYTES_KEPT = 1.2  # bytes of a pack for a byte of text, at most: ids of 2 to 4 bytes for pieces of 2 and more
_INFLATED = {".gz": 5.0, ".xz": 8.0, ".parquet": 5.0}

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class MadePack:
    """What a pack holds, and how fast it was made."""

    folder: Path
    counts: Counts
    skipped: list[str]
    empty: int
    tokens_per_second: float


def make_pack(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    tokenizer: str | None = None,
    vocab_size: int = 8000,
    column: str = "text",
    workers: int = 1,
    dev_share: float = 0.01,
    skip_bad: bool = False,
    restart: bool = False,
    tell: Tell = lambda _: None,
) -> MadePack:
    """Tokenize text once into the folder `out`.

    Args:
        sources: files and folders; a text file is a document, and so is every row of the other kinds.
        tokenizer: a folder; None: one of `vocab_size` entries is trained on a sample of the documents.
        column: of rows, the one that holds the text.
        workers: processes; they change the speed and nothing else.
        dev_share: share of the documents that is held out for validation.
        restart: make the pack anew if there is one.

    Raises:
        UserError: a source cannot be read, nothing is left to pack, the disk is too full, or `out` is taken.
        RunError: a worker died.
    """
    if not 0 <= dev_share < 0.5:
        raise UserError(f"--dev-share {dev_share}: use 0 to 0.5, for example 0.01")
    files = text_files(sources)
    folder = Path(out)
    _refuse_taken(folder, restart=restart)
    _check_space(files, folder)
    report, unread = TextReport(), TextReport()
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    words = Path(tokenizer) if tokenizer is not None else new / TOKENIZER_FOLDER
    if tokenizer is None:
        texts = read_texts(files, column=column, skip_bad=skip_bad, report=unread)
        save_tokenizer(train_tokenizer(_sample(texts, files), vocab_size=vocab_size), words)
        tell(f"trained a tokenizer of {vocab_size:,} entries on a sample of the documents")
    shown = _Progress(tell)
    counts = pack(
        read_texts(files, column=column, skip_bad=skip_bad, report=report),
        words,
        new,
        workers=workers,
        dev_share=dev_share,
        facts=lambda: _facts(files, column, report),
        progress=shown,
    )
    if not counts.documents:
        shutil.rmtree(new, ignore_errors=True)
        raise UserError(
            f"{sources[0]}: no document to pack ({report.empty} empty, {len(report.skipped)} bad)"
        )
    old = folder.with_name(f"{folder.name}.old")
    if folder.exists():
        folder.rename(old)  # not deleted in its place: a kill would leave half of it under its name
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    return MadePack(
        folder=folder,
        counts=replace(counts),
        skipped=report.skipped,
        empty=report.empty,
        tokens_per_second=_recorded_speed(folder),
    )


def _recorded_speed(folder: Path) -> float:
    return float(json.loads((folder / PACK_FILE).read_text(encoding="utf-8"))["tokens_per_second"])


def _facts(files: Sequence[Path], column: str, report: TextReport) -> dict[str, Any]:
    return {
        "sources": [{"name": path.name, "bytes": path.stat().st_size} for path in files],
        "column": column,
        "skipped": len(report.skipped),
        "empty": report.empty,
    }


class _Progress:
    """A line after a million tokens, two million, four million, ..."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._next = tell, 1_000_000

    def __call__(self, counts: Counts) -> None:
        if counts.tokens >= self._next:
            self._tell(f"{counts.documents:,} documents, {counts.tokens:,} tokens")
            self._next = max(2 * self._next, counts.tokens)


def _refuse_taken(folder: Path, *, restart: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; --out names a folder for the pack")
    if folder.exists() and any(folder.iterdir()) and not (folder / PACK_FILE).exists():
        raise UserError(f"{folder}: holds something that is no pack; name another folder with --out")
    if (folder / PACK_FILE).exists() and not restart:
        raise UserError(
            f"{folder}: is a pack already; --restart makes it anew, or name another folder with --out"
        )


def _check_space(files: Sequence[Path], folder: Path) -> None:
    needed = (
        sum(path.stat().st_size * _INFLATED.get(path.suffix.lower(), 1.0) for path in files) * _BYTES_KEPT
    )
    place = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise UserError(
            f"{folder}: the pack may need {needed / 1e9:.1f} GB and the disk has {free / 1e9:.1f} GB left; free some, "
            f"or pack fewer files"
        )


def _sample(texts: Iterator[str], files: Sequence[Path]) -> Iterator[str]:
    """About `_SAMPLE` characters of all the documents, chosen by their digests."""
    size = sum(path.stat().st_size * _INFLATED.get(path.suffix.lower(), 1.0) for path in files)
    share = min(1.0, _SAMPLE / max(1.0, size))
    return (text[:_LONGEST] for text in texts if share >= 1.0 or falls_below(text_digest(text)[8:], share))
