"""Bombs: files that are small to send and endless to read, each through the command line in a process of its own.

    python -m faults.bombs [--quick]

A command must end with exit code 2 and one line, within 10 seconds of processor time, imports included. Its memory may
reach 1 GB. Time that other work on the machine takes does not count; a command that waits is ended after a minute.
`--quick` makes the big ones smaller.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from faults.report import Tally, header, verdict

SECONDS, MEMORY = 10.0, 1_000_000_000
_KILL, _CAGE = 60.0, 8 << 30
MIB = 1 << 20
_ROW = b'{"document": "a b c", "summary": "a"}\n'
_PAIR = b'"summary": "s"'


def _repeat(path: Path, piece: bytes, count: int, *, head: bytes = b"", tail: bytes = b"") -> None:
    """Write `piece` many times to a file, compressed as its name says, without holding the content."""
    ending = path.suffix
    if ending in (".gz", ".xz"):
        _repeat_packed(path, piece, count)
        return
    with path.open("wb") as file:
        file.write(head)
        for _ in range(count):
            file.write(piece)
        file.write(tail)


def _repeat_packed(path: Path, piece: bytes, count: int) -> None:
    """Write whole archives in sequence, which form one archive: ten gigabytes take a second."""
    member = gzip.compress(piece * 8, 9) if path.suffix == ".gz" else lzma.compress(piece * 8)
    with path.open("wb") as file:
        for _ in range(count // 8):
            file.write(member)


def _line_of(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _parquet(
    path: Path, *, rows: int, text: int, row_group: int | None = None, compression: str = "zstd"
) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    table = arrow.table({"document": arrow.array(["a" * text] * rows), "summary": arrow.array(["s"] * rows)})
    size = row_group or rows
    parquet.write_table(table, path, compression=compression, use_dictionary=False, row_group_size=size)


def _one_page(path: Path, megabytes: int) -> None:
    """Write one value of this number of megabytes."""
    _parquet(path, rows=1, text=megabytes * MIB)


def _many_equal_rows(path: Path, millions: int) -> None:
    """Write a dictionary of one word and run lengths: a million rows take a few bytes."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    schema = arrow.schema([("document", arrow.string()), ("summary", arrow.string())])
    with parquet.ParquetWriter(path, schema) as writer:
        column = arrow.array(["a few equal words " * 4] * 1_000_000)
        for _ in range(millions):
            writer.write_table(arrow.table([column, column], schema=schema), row_group_size=1_000_000)


def _footer(path: Path) -> None:
    length = 200 * MIB
    path.write_bytes(b"PAR1" + b"\x19" * length + length.to_bytes(4, "little") + b"PAR1")


def _many_columns(path: Path, columns: int) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    parquet.write_table(arrow.table({f"c{number}": [1] for number in range(columns)}), path)


def _deep(folder: Path) -> None:
    """Nest folders until the system refuses more, and put a text at the bottom."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    with os.fdopen(os.open("a.txt", os.O_WRONLY | os.O_CREAT, dir_fd=here), "w") as file:
        file.write("text")
    os.close(here)


def _loop(folder: Path) -> None:
    folder.mkdir()
    (folder / "up").symlink_to(folder)
    (folder / "a.txt").symlink_to("b.txt")
    (folder / "b.txt").symlink_to("a.txt")


def _linked(folder: Path, target: str) -> None:
    folder.mkdir()
    (folder / "good.txt").write_text("A good text.")
    (folder / "endless.txt").symlink_to(target)


def _piped(folder: Path) -> None:
    folder.mkdir()
    (folder / "good.txt").write_text("A good text.")
    os.mkfifo(folder / "pipe.txt")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(_ROW)
        file.truncate(size)


def _xz_dictionary(path: Path) -> None:
    """Write a few bytes that require 1.5 GiB before the first of them is read."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 64 * MIB}]
    content = bytearray(lzma.compress(_ROW * 9, filters=filters))
    place = content.index(b"\x21\x01", 12) + 2  # the filter's identity, the size of its properties
    content[place] = 40  # the largest dictionary that the format has
    size = (content[12] + 1) * 4  # of the block's header, whose checksum is computed again
    content[12 + size - 4 : 12 + size] = zlib.crc32(bytes(content[12 : 12 + size - 4])).to_bytes(4, "little")
    path.write_bytes(content)


def _record(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir()
    (folder / name).write_bytes(content)


def _pack_of(folder: Path, content: bytes) -> None:
    _record(folder, "pack.json", content)


def _archive(path: Path, name: str, pieces: Iterable[bytes], *, more: dict[str, bytes] = {}) -> None:  # noqa: B006
    """Write a zip file with a few files and a large one, without holding its content."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for other, content in more.items():
            made.writestr(other, content)
        with made.open(name, "w", force_zip64=True) as file:
            for piece in pieces:
                file.write(piece)


def _lying(path: Path) -> None:
    """Write an archive whose directory gives a false, small size for the large file."""
    _archive(path, "word/document.xml", (b" " * MIB for _ in range(300)), more=_DOCX)
    content = path.read_bytes()
    path.write_bytes(content.replace((300 * MIB).to_bytes(4, "little"), (3000).to_bytes(4, "little")))


_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_DOCX = {
    "[Content_Types].xml": (
        b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        b'<Default Extension="xml" ContentType="application/xml"/></Types>'
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r" Type="{_OFFICE}" Target="word/document.xml"/>'
        "</Relationships>"
    ).encode(),
}
_WORDS = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
_CONTAINER = {
    "mimetype": b"application/epub+zip",
    "META-INF/container.xml": b'<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>',
}
_LAUGHS = b'<!DOCTYPE a [<!ENTITY b "ha">%s]>' % b"".join(
    b'<!ENTITY %s "%s">' % (bytes([99 + n]), b"&%s;" % bytes([98 + n]) * 10) for n in range(12)
)


def _pdf(path: Path, objects: dict[int, bytes], *, trailer: bytes = b"") -> None:
    """Write a PDF of these objects, the first of which is its catalog."""
    content, places = b"%PDF-1.4\n", {}
    for number, body in objects.items():
        places[number] = len(content)
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size = max(objects) + 1
    rows = b"".join(b"%010d 00000 n \n" % places.get(number, 0) for number in range(1, size))
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, rows)
    end = b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, len(content))
    path.write_bytes(content + table + end)


def _pages(
    content: bytes, *, kids: bytes = b"3 0 R", count: int = 1, catalog: bytes = b""
) -> dict[int, bytes]:
    """Return the objects of a PDF whose pages are all the same one."""
    packed = zlib.compress(content, 9)
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        2: b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
        4: b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        6: b"<< /Title (a) /First 6 0 R /Last 6 0 R /Next 6 0 R >>",
    }


def _long_line(number: int) -> bytes:
    return b"BT /F 9 Tf 1 0 0 1 9 %d Tm (%s) Tj ET\n" % (10 * number, b"text " * 6_000)


_SHOWN = b"BT /F 9 Tf 1 0 0 1 9 9 Tm (text) Tj ET\n"
_PART = b'Content-Type: multipart/mixed; boundary="a"\n\n--a\n'
_SUMMARIZE = ("summarize", "{}")


def _documents(big: int) -> list[Bomb]:
    """Return documents that are made to break their readers."""
    spaces = (b" " * MIB for _ in range(2_000 // big))
    nested = b"<w:p><w:r><w:pict>" * 100_000
    many = {f"{number}.xhtml": b"" for number in range(30_000)}
    return [
        ("zip.docx", lambda p: _archive(p, "word/document.xml", spaces, more=_DOCX), _SUMMARIZE),
        ("lying.docx", _lying, _SUMMARIZE),
        ("laughs.docx", lambda p: _archive(p, "word/document.xml", [_LAUGHS, _WORDS], more=_DOCX), _SUMMARIZE),
        ("deep.docx", lambda p: _archive(p, "word/document.xml", [_WORDS, nested], more=_DOCX), _SUMMARIZE),
        ("zip.epub", lambda p: _archive(p, "a.xhtml", spaces, more=_CONTAINER), _SUMMARIZE),
        ("laughs.epub", lambda p: _archive(p, "a.opf", [_LAUGHS, b"<a>&n;</a>"], more=_CONTAINER), _SUMMARIZE),
        ("files.epub", lambda p: _archive(p, "a.opf", [b"<a/>"], more={**_CONTAINER, **many}), _SUMMARIZE),
        ("pages.pdf", lambda p: _pdf(p, _pages(_SHOWN * 9_000, kids=b"3 0 R " * 9_000, count=9_000)), _SUMMARIZE),
        ("tree.pdf", lambda p: _pdf(p, _pages(_SHOWN, kids=b"2 0 R 2 0 R", count=9)), _SUMMARIZE),
        ("previous.pdf", lambda p: _pdf(p, _pages(b""), trailer=b"/Prev 10"), _SUMMARIZE),
        ("stream.pdf", lambda p: _pdf(p, _pages(b" " * (900 * MIB // big))), _SUMMARIZE),
        ("outline.pdf", lambda p: _pdf(p, _pages(b"", catalog=b"/Outlines 6 0 R")), _SUMMARIZE),
        ("letters.pdf", lambda p: _pdf(p, _pages(b"".join(map(_long_line, range(3_000))))), _SUMMARIZE),
        ("deep.html", lambda p: _line_of(p, b"<html>" + b"<div>" * 100_000), _SUMMARIZE),
        ("huge.html", lambda p: _repeat(p, b"<p>word word</p>\n" * 60_000, 100, head=b"<html>"), _SUMMARIZE),
        ("deep.md", lambda p: _line_of(p, b"> " * 50_000), _SUMMARIZE),
        ("parts.eml", lambda p: _line_of(p, b"Subject: x\n" + _PART * 50_000), _SUMMARIZE),
        ("speaker.vtt", lambda p: _line_of(p, b"WEBVTT\n\n00:01.000 --> 00:02.000\n" + b"<v " * 500_000), _SUMMARIZE),
    ]  # fmt: skip


Bomb = tuple[str, Callable[[Path], object], tuple[str, ...]]
_CHECK = ("data", "check", "{}")
_SHOW = ("data", "show", "{}")
_PACK = ("data", "pack", "{}", "--out", "{}.out", "--vocab-size", "500")
_TOKENIZER = ("tokenizer", "--data", "{}", "--out", "{}.out", "--vocab-size", "500")
_EVALUATE = ("evaluate", "--predictions", "{}", "--data", "{}.pairs.jsonl", "--out", "{}.out")


def bombs(*, quick: bool) -> list[Bomb]:
    """List each bomb: the name of the file, its maker, and the command line that reads it."""
    big = 16 if quick else 1
    return [
        ("lines.jsonl.gz", lambda p: _repeat(p, b"\n" * MIB, 10_000 // big), _CHECK),
        ("one-line.jsonl.gz", lambda p: _repeat(p, b"x" * MIB, 10_000 // big), _CHECK),
        ("rows.jsonl.gz", lambda p: _repeat(p, _ROW * 30_000, 10_000 // big), _CHECK),
        ("rows.csv.gz", lambda p: _repeat(p, b"document,summary\n" * 60_000, 10_000 // big), _CHECK),
        ("pack.jsonl.gz", lambda p: _repeat(p, b'{"text": "a b c"}\n' * 60_000, 10_000 // big), _PACK),
        ("tokens.jsonl.gz", lambda p: _repeat(p, _ROW * 30_000, 10_000 // big), _TOKENIZER),
        ("show.jsonl.gz", lambda p: _repeat(p, b"x" * MIB, 10_000 // big), _SHOW),
        ("one-line.jsonl.xz", lambda p: _repeat(p, b"x" * MIB, 2_400 // big), _CHECK),
        ("rows.jsonl.xz", lambda p: _repeat(p, _ROW * 30_000, 1_600 // big), _CHECK),
        ("dictionary.jsonl.xz", _xz_dictionary, _CHECK),
        ("brackets.jsonl", lambda p: _line_of(p, b"[" * (60 * MIB) + b"\n" + _ROW), _CHECK),
        ("braces.jsonl", lambda p: _line_of(p, b'{"a":' * (12 * MIB) + b"\n"), _CHECK),
        ("lists.jsonl", lambda p: _line_of(p, b'{"document":[' + b"[]," * (20 * MIB) + b"[]]}\n"), _CHECK),
        ("numbers.jsonl", lambda p: _line_of(p, b'{"document":[' + b"1.5," * (15 * MIB) + b"1]}\n"), _CHECK),
        ("long-number.jsonl", lambda p: _line_of(p, b'{"id":' + b"9" * (60 * MIB) + b"}\n"), _CHECK),
        ("summaries.csv", lambda p: _line_of(p, b"document,summaries\nd,\"" + b"[" * (8 * MIB) + b'"\n'), _CHECK),
        ("sparse.jsonl", lambda p: _sparse(p, 10 << 30), _CHECK),
        ("field.csv", lambda p: _repeat(p, b"x y\n" * (MIB // 4), 900, head=b'document,summary\n"'), _CHECK),
        ("columns.csv", lambda p: _line_of(p, b"a," * (30 * MIB) + b"document\n"), _CHECK),
        ("columns.parquet", lambda p: _many_columns(p, 40_000), _CHECK),
        ("page.parquet", lambda p: _one_page(p, 500), _CHECK),
        ("equal-rows.parquet", lambda p: _many_equal_rows(p, 40), _CHECK),
        ("footer.parquet", _footer, _CHECK),
        ("pipe.jsonl", os.mkfifo, _CHECK),
        ("socket.jsonl", _socket, _CHECK),
        ("device.jsonl", lambda p: p.symlink_to("/dev/zero"), _CHECK),
        ("linked", lambda p: _linked(p, "/dev/zero"), _PACK),
        ("linked-pairs", lambda p: _linked(p, "/dev/zero"), _CHECK),
        ("piped", _piped, _PACK),
        ("deep", _deep, _PACK),
        ("loop", _loop, _PACK),
        ("predictions.jsonl", lambda p: _line_of(p, b"[" * (60 * MIB) + b"\n"), _EVALUATE),
        ("device.txt", lambda p: p.symlink_to("/dev/zero"), _EVALUATE),
        *_documents(big),
        ("packed", lambda p: _pack_of(p, b"[" * (60 * MIB)), ("pretrain", "--corpus", "{}", "--out", "{}.out")),
    ]  # fmt: skip


def _try(name: str, command: tuple[str, ...], place: Path, tally: Tally, *, flags: list[str]) -> None:
    path = place / name
    # In a process of its own: Linux counts the memory of a parent as its children's.
    subprocess.run([sys.executable, "-m", "faults.bombs", *flags, "--make", str(path)], check=True)
    Path(f"{path}.pairs.jsonl").write_bytes(_ROW)
    outcome = run([part.replace("{}", str(path)) for part in command])
    line = outcome.error.strip().splitlines()[-1:] or [""]
    print(
        f"{name}: {outcome.seconds:.1f} s, {outcome.memory / 1e6:,.0f} MB, exit {outcome.code}: {line[0][:160]}"
    )
    problem = _problem(outcome, path)
    tally.hold(not problem, f"{name}: {problem}")


class Outcome:
    """The end of a command.

    Attributes:
        seconds, wall: seconds of processor time, and on the clock.
        memory: its peak, in bytes.
    """

    def __init__(self, code: int, used: resource.struct_rusage, wall: float, error: str) -> None:
        self.code, self.error, self.wall = code, error, wall
        self.seconds = used.ru_utime + used.ru_stime
        self.memory = used.ru_maxrss * 1024


def run(arguments: list[str]) -> Outcome:
    """Run a command line of precis in a process that is ended before it harms the machine."""
    started = time.perf_counter()
    with tempfile.TemporaryFile() as error:
        child = subprocess.Popen(
            [sys.executable, "-m", "precis", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=error,
        )
        resource.prlimit(child.pid, resource.RLIMIT_DATA, (_CAGE, _CAGE))
        while True:
            ended, status, used = os.wait4(child.pid, os.WNOHANG)
            if ended:
                break
            if time.perf_counter() - started > _KILL:
                child.kill()
            time.sleep(0.02)
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        error.seek(0)
        said = error.read().decode(errors="replace")
    return Outcome(child.returncode, used, wall, said)


def _problem(outcome: Outcome, path: Path) -> str:
    lines = [line for line in outcome.error.splitlines() if line.startswith("error: ")]
    if outcome.seconds > SECONDS or outcome.wall > _KILL:
        return f"took {outcome.seconds:.1f} s of processor time, {outcome.wall:.1f} s in all"
    if outcome.memory > MEMORY:
        return f"took {outcome.memory / 1e6:,.0f} MB"
    if outcome.code != 2 or len(lines) != 1 or "unexpected" in lines[0]:
        return f"exit {outcome.code}: {outcome.error.strip()[-300:]}"
    return (
        ""
        if path.name in lines[0] or "rows cannot be used" in lines[0]
        else f"the line names no file: {lines[0][:200]}"
    )


def main() -> int:
    """Make, read, measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="those whose names hold this")
    parser.add_argument("--make", type=Path, help="make one bomb here, named by its file, and nothing else")
    options = parser.parse_args()
    if options.make:
        next(make for name, make, _ in bombs(quick=options.quick) if name == options.make.name)(options.make)
        return 0
    chosen = [bomb for bomb in bombs(quick=options.quick) if (options.only or "") in bomb[0]]
    header(f"{len(chosen)} bombs, each at most {SECONDS:.0f} s and {MEMORY / 1e9:.0f} GB")
    tally = Tally()
    for name, _, command in chosen:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            _try(name, command, Path(place), tally, flags=["--quick"] if options.quick else [])
            if name == "deep":  # too deep for Python's own way of removing
                subprocess.run(["rm", "-rf", str(Path(place, name))], check=False)
    return verdict("bombs that end in time, in memory and in one line", tally)


if __name__ == "__main__":
    sys.exit(main())
