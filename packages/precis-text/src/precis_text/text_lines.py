"""The lines of a text file, plain, .gz or .xz, with limits on the length of a line and the growth of a file.

Text compresses to a third or a tenth. A file that grows more than `MAX_RATIO` times is a decompression bomb, not text.
The first `FREE` bytes are exempt, because a short repetitive file is harmless.
"""

import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from precis_text.bounded_io import MIB, open_regular, size, unreadable
from precis_text.errors import UserError
from precis_text.row import SAVE_UTF16_AS_UTF8, UTF16

MAX_LINE = 64 * MIB
MAX_RATIO = 200
FREE = 32 * MIB
COMPRESSIONS = (".gz", ".xz")
_CHUNK = MIB // 8
_AHEAD = MIB  # compressed bytes checked together
_XZ_MEMORY = 256 * MIB  # `xz -9` needs 65 MiB
_BOM = b"\xef\xbb\xbf"


def numbered_lines(path: Path, *, skip_blank: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines with their line ends; a byte order mark is dropped.

    Args:
        skip_blank: skip blank lines, megabytes of them at once.

    Raises:
        UserError: the file cannot be read, is damaged, is UTF-16, contains a line above `MAX_LINE`, or grows more
            than `MAX_RATIO` times.
    """
    number = 0
    if path.suffix.lower() in COMPRESSIONS:
        _look_ahead(path)
    try:
        with open_regular(path) as file:
            for number, line in _split(path, _growing(path, file), skip_blank=skip_blank):
                if number == 1:
                    _refuse_other_encodings(path, line)
                    line = line.removeprefix(_BOM)
                yield number, line
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        reason = str(error).rstrip(".")
        raise UserError(
            f"{path}: truncated or damaged after line {number} ({reason}); make or download it again"
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error


def _look_ahead(path: Path) -> None:
    """Refuse a bomb before its first row is read; damage is reported when reading reaches it."""
    damage = (EOFError, OSError, lzma.LZMAError, zlib.error)
    with suppress(*damage), open_regular(path) as file:
        given = 0
        for chunk in _growing(path, file):
            given += len(chunk)
            if given > FREE or file.tell() > _AHEAD:
                return


def refuse_growth(path: Path, *, read: int, given: int, place: str = "") -> None:
    """Check that a file gives at most `MAX_RATIO` times the bytes that were read from it.

    Args:
        read: bytes read from the file.
        given: bytes after decompression.
        place: position in the file, for the message.

    Raises:
        UserError: it gives more.
    """
    if given > FREE and given > MAX_RATIO * read:
        where = f"{place}: " if place else ""
        raise UserError(
            f"{path}: {where}{size(read)} decompress to more than {size(given - 1)}, over {MAX_RATIO} times as much: "
            "this does not look like text; if it is, decompress the file first"
        )


def _split(path: Path, chunks: Iterator[bytes], *, skip_blank: bool) -> Iterator[tuple[int, bytes]]:
    rest: list[bytes] = []  # parts of an unfinished line
    held = 0
    number = 0
    for chunk in chunks:
        if skip_blank and number and not rest and not chunk.strip():
            number += chunk.count(b"\n")
            if not chunk.endswith(b"\n"):
                rest = [chunk[chunk.rfind(b"\n") + 1 :]]
                held = len(rest[0])
            continue
        *whole, last = chunk.split(b"\n")
        for line in whole:
            number += 1
            yield number, b"".join((*rest, line, b"\n"))
            rest, held = [], 0
        if last:
            rest.append(last)
            held += len(last)
        if held > MAX_LINE:
            raise UserError(
                f"{path}: line {number + 1} is longer than the limit of {size(MAX_LINE)}; split it"
            )
    if rest:
        yield number + 1, b"".join(rest)


def _growing(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield chunks of a file's text and check how much each part grows."""
    ending = path.suffix.lower()
    stream: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=file) if ending == ".gz" else file
    chunks = _xz_chunks(path, file) if ending == ".xz" else iter(lambda: stream.read(_CHUNK), b"")
    given = begin = 0
    for chunk in chunks:
        given += len(chunk)
        if ending in COMPRESSIONS:
            refuse_growth(path, read=file.tell() - begin, given=given)
            if file.tell() - begin > _AHEAD:  # check the part after harmless megabytes separately
                given, begin = 0, file.tell()
        yield chunk


def _xz_chunks(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Decompress like `lzma.open`, but with a memory limit: consecutive streams, with zeros between them."""
    compressed, streams = b"", 0
    while compressed := compressed or file.read(_CHUNK):
        if streams and compressed.startswith(b"\0"):
            compressed = compressed.lstrip(b"\0")
            continue
        decompressor = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
        streams += 1
        while not decompressor.eof:
            if decompressor.needs_input and not compressed:
                compressed = file.read(_CHUNK)
                if not compressed:
                    raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            chunk, compressed = _decompressed(path, decompressor, compressed), b""
            if chunk:
                yield chunk
        compressed = decompressor.unused_data


def _decompressed(path: Path, decompressor: lzma.LZMADecompressor, compressed: bytes) -> bytes:
    try:
        return decompressor.decompress(compressed, max_length=_CHUNK)
    except lzma.LZMAError as error:
        if "Memory usage limit" not in str(error):
            raise
        raise UserError(
            f"{path}: needs more than {size(_XZ_MEMORY)} of memory to decompress; compress it again with xz -9"
        ) from None


def _refuse_other_encodings(path: Path, line: bytes) -> None:
    if line.startswith(UTF16):
        raise UserError(f"{path}: is UTF-16; {SAVE_UTF16_AS_UTF8}")
    if b"\0" in line[:4]:
        told = "is not UTF-8 text (it contains NUL bytes), perhaps UTF-16"
        raise UserError(f"{path}: {told}; {SAVE_UTF16_AS_UTF8}")
