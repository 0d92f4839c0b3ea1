"""Plain text files: how they are decoded, and which of a folder hold documents.

folder/  a.txt  b.txt  [a.summary.txt ...]
"""

from collections.abc import Iterable
from pathlib import Path

from precis.data.rows.lines import MAX_LINE
from precis.data.rows.row import SAVE_AS_UTF8
from precis.untrusted import names_in, read_bounded

_ENDING, _SUMMARY_ENDING = ".txt", ".summary.txt"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class NotTextError(ValueError):
    """The bytes are no UTF-8; the message says where they stop being it, and what to do."""


def read_text(path: Path) -> str:
    """The text of a file, at most `MAX_LINE` bytes: one document.

    Raises:
        NotTextError: it is not UTF-8.
        UserError: it cannot be read, is no regular file, or is larger.
    """
    return decode_text(read_bounded(path, limit=MAX_LINE))


def decode_text(content: bytes) -> str:
    """UTF-8 with or without a byte order mark as text; every line ends in a line feed.

    Raises:
        NotTextError: it is not UTF-8.
    """
    if content.startswith(_UTF16):
        raise NotTextError(
            "is UTF-16; save it as UTF-8, for instance with iconv -f utf-16 -t utf-8 OLD > NEW"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        where = f"byte {error.start + 1} (0x{content[error.start]:02X}, line {line})"
        raise NotTextError(f"invalid UTF-8 at {where}; {SAVE_AS_UTF8}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def document_files(folder: Path) -> list[Path]:
    """The files of a folder that hold a document each, sorted.

    Raises:
        UserError: the folder cannot be read.
    """
    names = (name for name in names_in(folder) if name.endswith(_ENDING) and not name.startswith("."))
    return [folder / name for name in names if not name.endswith(_SUMMARY_ENDING)]


def unread_names(folder: Path, read: Iterable[Path]) -> list[str]:
    """What a folder holds beside the files that are read, folders with a slash; hidden names are left out.

    Raises:
        UserError: the folder cannot be read.
    """
    known = {path.name for path in read}
    names = (name for name in names_in(folder) if name not in known and not name.startswith("."))
    return [f"{name}/" if (folder / name).is_dir() else name for name in names]


def summary_file(document: Path) -> Path:
    """Where the summary of a document's file is, if there is one."""
    return document.with_name(document.stem + _SUMMARY_ENDING)


def orphaned_summaries(folder: Path) -> list[tuple[Path, str]]:
    """The summaries without a document, sorted, each with the name of the file that is missing."""
    known = {summary_file(document) for document in document_files(folder)}
    return [
        (path, path.name.removesuffix(_SUMMARY_ENDING) + _ENDING)
        for path in (folder / name for name in names_in(folder) if name.endswith(_SUMMARY_ENDING))
        if path not in known
    ]
