"""The command `precis-onnx FOLDER [FILE]`: one document to one summary."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from precis_onnx.onnx_summarizer import Summarizer
from precis_text.errors import UserError
from precis_text.terminal_text import escape_controls, escape_line
from precis_text.text_files import NotTextError, decode_text, other_kind

_MOST_BYTES = 1 << 26


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 2 for input that the user can fix."""
    parser = argparse.ArgumentParser(
        prog="precis-onnx", description="Summarize with a folder written by `precis export onnx`."
    )
    parser.add_argument("folder", type=Path, help="folder written by `precis export onnx`")
    parser.add_argument(
        "file", nargs="?", default="-", help="UTF-8 text file; - for standard input (default)"
    )
    cap = parser.add_mutually_exclusive_group()
    cap.add_argument("--words", type=int, help="at most this many words")
    cap.add_argument("--sentences", type=int, help="at most this many sentences")
    parser.add_argument(
        "--threads", type=int, default=0, help="cores to use (default: OMP_NUM_THREADS, else all allowed)"
    )
    given = parser.parse_args(arguments)
    try:
        summarizer = Summarizer.from_folder(given.folder, threads=given.threads)
        (summary,) = summarizer.summarize([_text(given.file)], words=given.words, sentences=given.sentences)
    except UserError as error:
        print(f"error: {escape_line(str(error))}", file=sys.stderr)
        return 2
    print(escape_controls(summary.text))
    if summary.truncated:
        read, total = summary.tokens_read, summary.document_tokens
        print(f"note: {read:,} of the document's {total:,} tokens were read", file=sys.stderr)
    return 0


def _text(file: str) -> str:
    if file == "-" and sys.stdin is None:
        raise UserError("standard input is closed; name a file")
    try:
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as source:
            content = source.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise UserError(f"{file}: is larger than {_MOST_BYTES >> 20} MiB; give a shorter document")
        if problem := other_kind(Path(file).name, content) or ("" if content.strip() else "is empty"):
            raise UserError(f"{file}: {problem}")
        return decode_text(content)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from error
    except NotTextError as error:
        raise UserError(f"{file}: {error}") from error
