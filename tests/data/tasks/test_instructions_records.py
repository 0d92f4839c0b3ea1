"""A data file is read at its first use, and what is wrong in it is said in one line with the place."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from precis.data.tasks import instructions
from precis.data.tasks.instructions import KINDS, Records
from precis.data.tasks.instructions import _build as build_kind
from precis.data.tasks.tasks import _build as build_task
from precis_text.errors import UserError

TASK = """
[first]
description = "notes"
kind = "dialogue"
percentiles_from = "none"
max_source = 512
max_target = 96
instruction = "Summarize the following dialogue:"
generation = { beams = 2 }
"""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Read a file of this text."""
    assert KINDS  # read from its own file before the other is put in its place
    monkeypatch.setattr(instructions, "files", lambda _: tmp_path)

    def records_of(text: str, build: Any = build_task) -> dict[str, Any]:
        (tmp_path / "some.toml").write_text(text)
        return dict(Records("some.toml", build))

    return records_of


def test_a_task_takes_over_what_it_does_not_say_and_false_is_no_column(read: Any) -> None:
    text = (
        TASK
        + 'hub_columns = { document = "text", id = false }\n[second]\nlike = "first"\nmax_source = 1024\n'
    )
    first, second = read(text).values()
    assert (first.name, second.name, first.max_source, second.max_source) == ("first", "second", 512, 1024)
    assert second.generation == first.generation
    assert (second.hub_columns.document, second.hub_columns.id) == ("text", None)
    assert first.percentiles is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_source = 512", "max_source = ", r"some.toml: is not TOML: Invalid value \(at line 6"),
        (
            "max_source = 512",
            'max_source = "512"',
            r"some.toml: \[first\]: max_source='512' must be of type int",
        ),
        (
            "max_source = 512",
            "max_sourc = 512",
            r"\[first\]: Task does not have a setting 'max_sourc'; did you mean 'max_",
        ),
        ("max_source = 512\n", "", r"\[first\]: Task lacks the setting 'max_source'"),
        ("beams = 2", "beams = 0", r"\[first\]: beams=0 must be 1 to 128"),
        (
            'kind = "dialogue"',
            'kind = "dialog"',
            r"\[first\]: kind='dialog' is unknown; did you mean 'dialogue'",
        ),
        (
            "Summarize",
            "Shorten",
            r"\[first\]: instruction='Shorten .*' is not a training wording of kind 'dialogue'",
        ),
        ('"none"', '"hearsay"', r"\[first\]: percentiles_from='hearsay' is unknown; known: measured, none"),
        (
            "[first]",
            '[first]\nlike = "frist"',
            r"\[first\]: like='frist' is not an earlier task; did you mean 'first'",
        ),
    ],
)
def test_what_is_wrong_with_a_task_is_said_in_one_line(read: Any, old: str, new: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(TASK.replace(old, new))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[chat]\ntraining = ["Sum up:"]',
            r"some.toml: \[chat\]: has training instead of training and held_out",
        ),
        ("[chat]\ntraining = [1]\nheld_out = []", r"\[chat\]: wording 1 must be a text, or"),
        (
            '[chat]\ntraining = [{ text = "Sum up:", sentences = [3, 2] }]\nheld_out = []',
            r"\[chat\]: wording .*\[3, 2\].* must be a text, or",
        ),
    ],
)
def test_what_is_wrong_with_a_wording_is_said_in_one_line(read: Any, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(text, build_kind)


def test_importing_precis_and_its_tasks_reads_no_file() -> None:
    program = (
        "import pathlib; pathlib.Path.read_text = None\n"
        "import precis; from precis.data.tasks.tasks import TASKS; from precis.data.tasks.instructions import KINDS"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
