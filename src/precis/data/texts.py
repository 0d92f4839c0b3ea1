"""Plain text files: how they are decoded, and which of a folder hold documents.

folder/  a.txt  b.txt  [a.summary.txt ...]
"""

from pathlib import Path

_ENDING, _SUMMARY_ENDING = ".txt", ".summary.txt"


class NotTextError(ValueError):
    """The bytes are no UTF-8; the message says where they stop being it."""


def decode_text(content: bytes) -> str:
    """UTF-8 with or without a byte order mark as text; every line ends in a line feed.

    Raises:
        NotTextError: it is not UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotTextError(f"invalid UTF-8 at byte {error.start + 1}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def document_files(folder: Path) -> list[Path]:
    """The files of a folder that hold a document each, sorted."""
    return [path for path in sorted(folder.glob(f"*{_ENDING}")) if not path.name.endswith(_SUMMARY_ENDING)]


def summary_file(document: Path) -> Path:
    """Where the summary of a document's file is, if there is one."""
    return document.with_name(document.stem + _SUMMARY_ENDING)


def orphaned_summaries(folder: Path) -> list[tuple[Path, str]]:
    """The summaries without a document, sorted, each with the name of the file that is missing."""
    known = {summary_file(document) for document in document_files(folder)}
    return [
        (path, path.name.removesuffix(_SUMMARY_ENDING) + _ENDING)
        for path in sorted(folder.glob(f"*{_SUMMARY_ENDING}"))
        if path not in known
    ]
