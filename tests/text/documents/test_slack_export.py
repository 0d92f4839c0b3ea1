"""The channels of a Slack export are read with speakers and times; what is not read is named."""

import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from precis_text.documents.file_kinds import BEGINNING, SLACK, kind_of
from precis_text.documents.reader import read_contents
from precis_text.errors import UserError

USERS = [
    {"id": "U1", "name": "ann.k", "profile": {"real_name": "Ann Klein", "display_name": "Ann"}},
    {"id": "U2", "name": "raj", "profile": {"real_name": "", "display_name": ""}},
]


def message(text: str, user: str = "U1", ts: int = 1772700000, **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": user, "text": text, "ts": f"{ts}.000100", **more}


def export(**days: list[dict[str, Any]]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("users.json", json.dumps(USERS))
        archive.writestr("channels.json", "[]")
        for place, messages in days.items():
            channel, _, day = place.partition("__")
            archive.writestr(f"{channel}/2026-03-{day}.json", json.dumps(messages))
    return file.getvalue()


def test_each_channel_is_a_document_and_each_message_a_line_with_its_speaker_and_time() -> None:
    move, talk = read_contents(
        export(
            move__05=[message("We move on *1 June*. :tada:")],
            move__06=[message("Good &amp; cheap.", "U2", 1772790000)],
            talk__05=[message("Hello.", "U9", user_profile={"real_name": "Mo Haddad"})],
        ),
        name="export.zip",
    )
    assert (move.title, talk.title) == ("move", "talk")
    assert move.text == "Ann Klein: We move on 1 June.\nraj: Good & cheap."
    assert move.at(0).time == "2026-03-05 08:40 UTC"
    assert talk.text == "Mo Haddad: Hello."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<@U2> could you <!channel> see <#C1|plans>?", "raj could you @channel see plans?"),
        (
            "See <https://a.example/b|the plan> and <https://c.example>.",
            "See the plan and https://c.example.",
        ),
        ("Two\nlines &lt;here&gt; at 9:30", "Two lines <here> at 9:30"),
    ],
)
def test_codes_are_shown_as_names(text: str, shown: str) -> None:
    (channel,) = read_contents(export(a__05=[message(text)]), name="export.zip")
    assert channel.text == f"Ann Klein: {shown}"


def test_a_reply_follows_the_first_message_of_its_thread() -> None:
    days = [
        message("Who pays?", ts=100),
        message("It rains.", ts=200),
        message("Raj pays.", ts=300, thread_ts="100.000100"),
    ]
    (channel,) = read_contents(export(a__05=days), name="export.zip")
    assert [line.partition(": ")[2] for line in channel.text.split("\n")] == [
        "Who pays?",
        "Raj pays.",
        "It rains.",
    ]


def test_what_is_not_read_is_named() -> None:
    joined = message("<@U1> has joined the channel", subtype="channel_join")
    picture = message("", files=[{"name": "plan.pdf"}])
    (channel,) = read_contents(export(a__05=[joined, message("We start."), picture]), name="export.zip")
    assert channel.text == "Ann Klein: We start."
    assert channel.notes == ["1 line of the chat program left out", "1 attached file not read"]


def test_another_archive_is_refused_and_an_export_is_known_without_a_name() -> None:
    assert kind_of("", export(a__05=[message("Hello.")])[:BEGINNING]) is SLACK
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "text")
    with pytest.raises(UserError, match=r"^is an archive, not plain text; unpack it first$"):
        read_contents(file.getvalue(), name="a.zip")


def test_a_damaged_export_is_one_line(tmp_path: Path) -> None:
    for content in (b"PK\x03\x04 nothing", export(a__05=[message("Hello.")])[:-30]):
        with pytest.raises(UserError) as caught:
            read_contents(content, name="a.zip")
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="contains no text"):
        read_contents(export(a__05=[{"ts": None, "text": 3}, {"text": None}] * 0), name="a.zip")
