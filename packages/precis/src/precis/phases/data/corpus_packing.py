"""Pack unlabelled text for pre-training: files -> (tokenizer) -> token ids in flat files."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from precis.data.packs.pack_writer import Counts, pack
from precis.data.packs.packed_text import FORMAT, PACK_FILE, TOKENIZER_FOLDER, PackedText
from precis.data.packs.text_sources import (
    HubTexts,
    Source,
    TextReport,
    falls_below,
    read_texts,
    sample_texts,
    text_digest,
    text_sources,
)
from precis.data.text.unigram_tokenizer import load_tokenizer, train_tokenizer
from precis.messages import Notify, silent
from precis.phases.output_folders import folder_to_be
from precis.phases.run_folder import save_tokenizer, versions
from precis.storage.locks import locked_place
from precis.storage.seal import refuse_foreign, write_folder
from precis.version import __version__
from precis_text.cores import available_cores
from precis_text.errors import RunError, UserError
from precis_text.row import pluralize

_BLOCK = 512  # tokens of a block in the default recipe of `precis pretrain`
_MOST_HELD_OUT = 0.5
_MANY = 10_000  # documents
_SAMPLE = 20_000_000  # characters to train a new tokenizer on
_LONGEST = 100_000  # characters of one document
_BYTES_KEPT = 1.2  # maximum bytes of a pack per byte of text: ids of 2 to 4 bytes for pieces of 2 and more
_INFLATED = {".gz": 5.0, ".xz": 8.0, ".parquet": 5.0}
_BYTES_A_WORKER = 4_000_000  # of text; tokenizing less takes less time than starting a process


@dataclass(frozen=True, kw_only=True)
class MadePack:
    """A finished pack: its contents and its speed.

    Attributes:
        folder: the folder, as the caller named it.
        is_new: False if the same pack existed, and nothing was written.
        counts: numbers of documents and tokens.
        skipped, skipped_count: the first bad rows with place and reason, and the number of bad rows.
        empty: documents without text.
        entries: size of the tokenizer's vocabulary.
        dev_blocks: number of held-out blocks of 512 tokens; pre-training validates on one or more.
        share_to_validate: a share of documents to hold out that gives a block; None if there is one already, or if no
            share below a half gives one.
        tokens_per_second: the speed of packing, with `workers` processes.
    """

    folder: Path
    is_new: bool
    counts: Counts
    skipped: list[str]
    skipped_count: int
    empty: int
    entries: int
    dev_blocks: int
    share_to_validate: float | None
    workers: int
    tokens_per_second: float


def make_pack(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    tokenizer: str | None = None,
    vocab_size: int = 8000,
    column: str = "text",
    rows: int | None = None,
    workers: int | None = 1,
    dev_share: float = 0.01,
    skip_bad: bool = False,
    restart: bool = False,
    notify: Notify = silent,
) -> MadePack:
    """Tokenize text once into the folder `out`; do nothing if it holds a pack of the same files and settings.

    Files are the same if their names, sizes and modification times are; data sets on the hub, if their names are.

    Args:
        sources: files, folders, patterns and `hub:owner/name`, whose training rows are streamed; a text file is one
            document, as is every row of the other formats.
        tokenizer: its folder; if None, one of `vocab_size` entries is trained on a sample of the documents.
        column: the column of rows with the text.
        rows: the most rows of each data set on the hub; a new tokenizer reads them once more.
        workers: number of processes; affects only the speed. If None, one per core, fewer for little text.
        dev_share: share of the documents to hold out for validation.
        restart: replace an existing pack.

    Raises:
        UserError: a source cannot be read, nothing is left to pack, the disk is too full, or `out` is in use.
        RunError: a worker died, or the disk filled up.
    """
    if not 0 <= dev_share < _MOST_HELD_OUT:
        raise UserError(f"--dev-share {dev_share}: use 0 to 0.5, for example 0.01")
    folder, report = folder_to_be(out), TextReport()
    files = text_sources(sources, rows=rows, report=report)
    settings = {"column": column, "dev_share": dev_share, "skip_bad": skip_bad}
    work = _identity(files, settings, tokenizer, vocab_size)
    if unread := report.told_unread():
        notify(unread)
    if _is_done(folder, work, restart=restart):
        return _validatable(_read_made(folder, report, is_new=False), files, settings, notify)
    _check_space(files, folder)

    def write(new: Path) -> None:
        words = Path(tokenizer) if tokenizer is not None else new / TOKENIZER_FOLDER
        if tokenizer is None:
            texts = read_texts(files, column=column, skip_bad=skip_bad)
            sample = sample_texts(texts, characters=_SAMPLE, longest=_LONGEST)
            save_tokenizer(train_tokenizer(sample, vocab_size=vocab_size), words)
            told = f"{pluralize(len(sample), 'document')}, {sum(map(len, sample)):,} characters"
            notify(f"trained a tokenizer of {vocab_size:,} entries on {told}")
        counts = pack(
            read_texts(files, column=column, skip_bad=skip_bad, report=report),
            words,
            new,
            workers=_workers(files) if workers is None else workers,
            dev_share=dev_share,
            facts=lambda: {
                "versions": versions(),
                "sources": [
                    {"name": each.name, "rows": each.rows}
                    if isinstance(each, HubTexts)
                    else {"name": each.name, "bytes": each.stat().st_size}
                    for each in files
                ],
                "skipped": report.skipped_count,
                "empty": report.empty,
                **settings,
                "work": work,
            },
            progress=_Progress(notify),
        )
        if not counts.documents:
            first = f"; the first bad one is {report.skipped[0]}" if report.skipped else ""
            held_out = f"{counts.held_out} held out, {report.empty} empty, {report.skipped_count} bad"
            raise UserError(
                f"{sources[0]}: no document to pack ({held_out}){first}; name files with text, or a smaller --dev-share"
            )

    _fill(folder, write)
    return _validatable(_read_made(folder, report, is_new=True), files, settings, notify)


def _validatable(
    made: MadePack, files: Sequence[Source], settings: dict[str, Any], notify: Notify
) -> MadePack:
    """Warn if nothing is held out to validate on, and find a share of documents that would be."""
    if made.dev_blocks:
        return made
    counts = made.counts
    share = _share_to_validate(files, settings, counts)
    remedy = (
        f"pack again with --dev-share {share:g} --restart" if share else "add documents, or split long ones"
    )
    notify(
        f"warning: {pluralize(counts.held_out, 'document')} of {counts.documents + counts.held_out:,} held out, "
        f"{counts.held_out_tokens:,} tokens: no block of {_BLOCK} tokens, so precis pretrain cannot validate; {remedy}"
    )
    return replace(made, share_to_validate=share)


def _share_to_validate(files: Sequence[Source], settings: dict[str, Any], counts: Counts) -> float | None:
    """Return the smallest share, in thousandths, that holds out a block and leaves one to train on; None without one.

    Characters measure the documents, at the pack's own rate of characters per token.
    """
    tokens = counts.tokens + counts.held_out_tokens
    if counts.documents > _MANY or any(isinstance(each, HubTexts) for each in files):
        # do not read a large corpus, or one on the hub, again: four blocks are expected
        share = max(0.01, 4 * _BLOCK / tokens)
        return share if share < _MOST_HELD_OUT else None
    texts = read_texts(files, column=settings["column"], skip_bad=settings["skip_bad"])
    lengths = {text_digest(text): len(text) for text in texts}
    needed = 2 * _BLOCK * counts.characters / tokens
    total, held_out = sum(lengths.values()), 0
    for digest in sorted(lengths):
        held_out += lengths[digest]
        share = (int.from_bytes(digest[:8], "big") * 1000 // 2**64 + 1) / 1000
        beyond = sum(size for other, size in lengths.items() if falls_below(other, share))
        if share >= _MOST_HELD_OUT or beyond > total - needed:
            return None
        if held_out >= needed:
            return share
    return None


def _read_made(folder: Path, report: TextReport, *, is_new: bool) -> MadePack:
    packed = PackedText.open(folder)
    facts, dev = packed.facts, packed.dev
    return MadePack(
        folder=folder, is_new=is_new,
        counts=Counts(**{field.name: facts[field.name] for field in fields(Counts)}), skipped=report.skipped,
        skipped_count=facts["skipped"], empty=facts["empty"], entries=facts["entries"],
        dev_blocks=0 if dev is None else len(dev.blocks(_BLOCK)), share_to_validate=None,
        workers=facts["workers"], tokens_per_second=facts["tokens_per_second"],
    )  # fmt: skip


def _identity(
    files: Sequence[Source], settings: dict[str, Any], tokenizer: str | None, vocab_size: int
) -> str:
    """Return a digest of everything that determines a pack's contents."""
    words = load_tokenizer(tokenizer).backend_tokenizer.to_str() if tokenizer is not None else vocab_size
    states = [
        (each.name, each.rows)
        if isinstance(each, HubTexts)
        else (each.name, each.stat().st_size, each.stat().st_mtime_ns)
        for each in files
    ]
    work = json.dumps([FORMAT, __version__, states, settings, words])
    return hashlib.sha256(work.encode()).hexdigest()[:16]


class _Progress:
    """A progress logger: a line after a million tokens, two million, four million, ..."""

    def __init__(self, notify: Notify) -> None:
        self._tell, self._next = notify, 1_000_000

    def __call__(self, counts: Counts) -> None:
        if counts.tokens >= self._next:
            self._tell(f"{counts.documents:,} documents, {counts.tokens:,} tokens")
            self._next = max(2 * self._next, counts.tokens)


def _workers(files: Sequence[Source]) -> int:
    """Return one worker per available core, but no more than the text needs; a data set's size is unknown."""
    if any(isinstance(each, HubTexts) for each in files):
        return available_cores()
    return max(1, min(available_cores(), int(_text_bytes(files) // _BYTES_A_WORKER)))


def _is_done(folder: Path, work: str, *, restart: bool) -> bool:
    """Return whether the pack already exists; raise `UserError` if something else is in its place."""
    if (folder / PACK_FILE).exists():
        refuse_foreign(folder)
    elif folder.exists() and any(folder.iterdir()):
        first = min(path.name for path in folder.iterdir())
        raise UserError(
            f"{folder}: contains something other than a pack ({first}); name another folder with --out"
        )
    if restart or not (folder / PACK_FILE).exists():
        return False
    if PackedText.open(folder).facts.get("work") != work:
        raise UserError(
            f"{folder}: is already a pack, of other files or settings; replace it with --restart, or name another "
            "folder with --out"
        )
    return True


def _fill(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder that replaces `folder` only when complete.

    Raises:
        UserError: the folder cannot be created, or another process holds it.
        RunError: the disk filled up.
    """
    place = folder.resolve()
    with ExitStack() as stack:
        try:
            stack.enter_context(locked_place(place, doing="packing into"))
        except OSError as error:
            raise UserError(
                f"{folder}: cannot be created ({error.strerror}); name another folder with --out"
            ) from error
        try:
            write_folder(place, write)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise RunError(
                f"{folder}: the disk is full and nothing was kept; free some space, or pack fewer files"
            ) from error


def _check_space(files: Sequence[Source], folder: Path) -> None:
    needed = _text_bytes(files) * _BYTES_KEPT
    place = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise UserError(
            f"{folder}: the pack may need {needed / 1e9:.1f} GB, but the disk has {free / 1e9:.1f} GB left; free some "
            f"space, or pack fewer files"
        )


def _text_bytes(files: Sequence[Source]) -> float:
    local = [each for each in files if isinstance(each, Path)]
    return sum(path.stat().st_size * _INFLATED.get(path.suffix.lower(), 1.0) for path in local)
