"""Every command line of the table is refused in one useful line, and nothing is written."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.wrong_command_lines import WrongLine, make_folder, problems_of, unlock, wrong_lines
from tiny_models import our_tokenizer, save

from precis.cli import main


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """The folder, where every user may look, and in it the process."""
    top = Path(tempfile.mkdtemp(prefix="precis-wrong-"))
    top.chmod(0o755)
    folder = top / "work"
    folder.mkdir()
    (top / "a.txt").write_text("Ann sings in the hall. Bob listens to her.\n" * 40)
    our_tokenizer().save_pretrained(top / "words")
    packed = [
        "data",
        "pack",
        str(top / "a.txt"),
        "--tokenizer",
        str(top / "words"),
        "--out",
        str(top / "pack"),
    ]
    assert main([*packed, "--workers", "1", "--dev-share", "0"]) == 0
    make_folder(
        folder, model=save("zcodepp", top / "zcodepp"), other=save("bart", top / "other"), pack=top / "pack"
    )
    folder.chmod(0o777)
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        unlock(folder)
        shutil.rmtree(top)


def test_the_table_has_three_hundred_lines_for_every_command() -> None:
    lines = wrong_lines()
    assert len(lines) >= 300
    assert len({line.text for line in lines}) == len(lines)


@pytest.mark.parametrize("line", wrong_lines(), ids=lambda line: f"{line.number}")
def test_a_wrong_command_line_is_answered_in_one_useful_line(line: WrongLine, place: Path) -> None:
    assert problems_of(line, place) == []
