"""Lines of plain and compressed files are whole and numbered, and what is no text is refused."""

import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from precis_text import text_lines
from precis_text.errors import UserError
from precis_text.text_lines import numbered_lines, refuse_growth

MIB = 1 << 20
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def written(folder: Path, content: bytes, ending: str = "") -> Path:
    file = folder / f"rows.txt{ending}"
    file.write_bytes(COMPRESS[ending](content))
    return file


@pytest.mark.parametrize("ending", COMPRESS)
def test_lines_of_any_length_keep_their_ends_and_numbers(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b"a\n", b"\n", b"b" * 50 + b"\n", b"cc\r\n", b"\n", b"\n", b"the last"]
    file = written(tmp_path, b"".join(lines), ending)
    for chunk in (1, 2, 3, 7, 1000):
        monkeypatch.setattr(text_lines, "_CHUNK", chunk)
        assert list(numbered_lines(file)) == [*enumerate(lines, start=1)]


@pytest.mark.parametrize("chunk", [1, 2, 5, 1000])
def test_blank_lines_that_are_skipped_count(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, b"a\n" + b"\n" * 7 + b"  \n" + b"b\n\n  c\n" + b"\n" * 9)
    monkeypatch.setattr(text_lines, "_CHUNK", chunk)
    found = [(number, line) for number, line in numbered_lines(file, skip_blank=True) if line.strip()]
    assert found == [(1, b"a\n"), (10, b"b\n"), (12, b"  c\n")]


def test_megabytes_of_blank_lines_are_not_yielded(tmp_path: Path) -> None:
    file = written(tmp_path, b"a\n" + b"\n" * (2 * MIB) + b"b")
    found = list(numbered_lines(file, skip_blank=True))
    assert found[0] == (1, b"a\n")
    assert found[-1] == (2 * MIB + 2, b"b")
    assert len(found) < MIB


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_line_of_the_largest_size_is_read_and_a_longer_one_is_named(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the part of a line that was read; no byte of the next line is read before."""
    monkeypatch.setattr(text_lines, "MAX_LINE", 100)
    monkeypatch.setattr(text_lines, "_CHUNK", 1)
    longest = b"b" * 100
    assert list(numbered_lines(written(tmp_path, b"a\n" + longest, ending))) == [(1, b"a\n"), (2, longest)]
    with pytest.raises(UserError, match="line 2 is longer than the limit of 100 bytes; split it"):
        list(numbered_lines(written(tmp_path, b"a\n" + longest + b"b\nc\n", ending)))
    assert text_lines.COMPRESSIONS == (".gz", ".xz")


def test_the_limits_are_64_mib_a_line_200_times_and_32_mib_free() -> None:
    assert (text_lines.MAX_LINE, text_lines.MAX_RATIO, text_lines.FREE) == (64 * MIB, 200, 32 * MIB)


def test_a_file_may_give_200_times_its_bytes_and_32_mib_in_any_case(tmp_path: Path) -> None:
    file = tmp_path / "rows.gz"
    refuse_growth(file, read=1, given=32 * MIB)
    refuse_growth(file, read=MIB, given=200 * MIB)
    told = (
        f"{file}: 1 MiB decompress to more than 200 MiB, over 200 times as much: this does not look like text"
    )
    with pytest.raises(UserError) as caught:
        refuse_growth(file, read=MIB, given=200 * MIB + 1)
    assert str(caught.value).startswith(told)
    with pytest.raises(UserError, match=r"rows\.gz: row 7: 1 bytes decompress to more than 32 MiB"):
        refuse_growth(file, read=1, given=32 * MIB + 1, place="row 7")


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_a_bomb_behind_megabytes_of_text_is_refused_too(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "FREE", 100_000)
    monkeypatch.setattr(text_lines, "_AHEAD", 20_000)
    monkeypatch.setattr(text_lines, "_CHUNK", 1000)
    text = os.urandom(60_000).hex().encode() + b"\n"
    file = written(tmp_path, text + b"\n" * 3_000_000, ending)
    lines = numbered_lines(file)
    assert next(lines) == (1, text)
    with pytest.raises(UserError, match="over 200 times as much"):
        list(lines)


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_damage_is_told_where_reading_reaches_it(ending: str, tmp_path: Path) -> None:
    lines = [f"{number} {os.urandom(40).hex()}\n".encode() for number in range(4000)]
    file = written(tmp_path, b"".join(lines), ending)
    file.write_bytes(file.read_bytes()[:-2000])
    read: list[bytes] = []
    with pytest.raises(
        UserError, match=rf"rows\.txt{ending}: truncated or damaged after line \d+ \("
    ) as caught:
        read.extend(line for _, line in numbered_lines(file))
    told = int(str(caught.value).partition("after line ")[2].split()[0])
    assert 2000 < told < 4000
    assert "); make or download it again" in str(caught.value)


def test_streams_of_xz_one_after_the_other_are_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "_CHUNK", 8)
    file = tmp_path / "rows.xz"
    for between in (b"", b"\0" * 4, b"\0" * 40):
        file.write_bytes(lzma.compress(b"a\nb") + between + lzma.compress(b"c\nd\n") + between)
        assert [line for _, line in numbered_lines(file)] == [b"a\n", b"bc\n", b"d\n"]
    file.write_bytes(b"\0" * 4 + lzma.compress(b"a\n"))
    with pytest.raises(UserError, match="truncated or damaged after line 0"):
        list(numbered_lines(file))


def test_a_stream_of_xz_that_needs_too_much_memory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "_XZ_MEMORY", 2 * MIB)
    file = tmp_path / "rows.xz"
    file.write_bytes(lzma.compress(b"a\n", preset=9))
    with pytest.raises(
        UserError, match=r"needs more than 2 MiB of memory to decompress; compress it again with xz -9"
    ):
        list(numbered_lines(file))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a\n".encode("utf-16"), "is UTF-16"),
        ("a\n".encode("utf-16-le"), "contains NUL bytes"),
        (b"abc\0\n", "contains NUL bytes"),
        (b"a\n" + "a\n".encode("utf-16"), None),
        (b"abcd\0\n", None),
    ],
)
def test_another_encoding_is_known_by_the_first_four_bytes(
    content: bytes, told: str | None, tmp_path: Path
) -> None:
    file = written(tmp_path, content)
    if told is None:
        assert b"".join(line for _, line in numbered_lines(file)) == content
    else:
        with pytest.raises(UserError, match=told):
            list(numbered_lines(file))


def test_only_a_byte_order_mark_at_the_beginning_is_dropped(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    assert list(numbered_lines(written(tmp_path, mark + b"a\n" + mark + b"b"))) == [
        (1, b"a\n"),
        (2, mark + b"b"),
    ]
