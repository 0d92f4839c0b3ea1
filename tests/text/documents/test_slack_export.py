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
        ("Meet at 12:30:45 today", "Meet at 12:30:45 today"),
        ("ratio 1:2:3 and 1:100:2", "ratio 1:2:3 and 1:100:2"),
        ("2*3 = 6, 5 * 3 is 15, a*b*c", "2*3 = 6, 5 * 3 is 15, a*b*c"),
        ("note:do-not-sell: it, fe80:1:2 and fe80::a:1", "note:do-not-sell: it, fe80:1:2 and fe80::a:1"),
        (":+1: *Yes*, :100: (:wave::skin-tone-2:) *a b*!", "Yes, ( ) a b!"),
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


def test_text_that_is_only_in_blocks_or_attachments_is_read() -> None:
    """Bots write attachments; a rich text has a part for each word in another face."""
    rich = {
        "type": "rich_text",
        "elements": [
            {
                "type": "rich_text_section",
                "elements": [
                    {"type": "text", "text": "We do "},
                    {"type": "text", "text": "not", "style": {"bold": True}},
                    {"type": "text", "text": ", "},
                    {"type": "user", "user_id": "U2"},
                    {"type": "text", "text": "."},
                ],
            }
        ],
    }
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "*Disk full* on db1"}}
    buttons = {"type": "actions", "elements": [{"type": "button", "text": {"text": "Restart"}}]}
    days = [
        message("", ts=100, attachments=[{"fallback": "Build failed"}]),
        message("", ts=200, attachments=[{"title": "Build 7", "text": "failed", "fallback": "7"}]),
        message("", ts=300, blocks=[rich]),
        message("", ts=400, blocks=[section, buttons]),
        message("See <https://a.example|this>", ts=500, attachments=[{"text": "A page"}]),
        message("", ts=600, blocks=[{"type": "image", "image_url": "https://a.example/b"}]),
    ]
    (channel,) = read_contents(export(a__05=days), name="export.zip")
    assert [line.removeprefix("Ann Klein: ") for line in channel.text.split("\n")] == [
        "Build failed", "Build 7 failed", "We do not, raj.", "Disk full on db1", "See this",
    ]  # fmt: skip
    assert channel.notes == ["1 preview or attachment not read", "1 message without text not read"]


@pytest.mark.parametrize(
    "odd",
    [
        {"ts": "noon"},
        {"ts": [1]},
        {"ts": "1e30"},
        {"ts": "nan"},
        {"thread_ts": {}},
        {"user": ["U1"]},
        {"files": 5},
        {"attachments": 5, "blocks": "x"},
        {"subtype": []},
        {"user_profile": 3},
    ],
)
def test_an_odd_field_of_a_message_does_not_damage_the_export(odd: dict[str, Any]) -> None:
    days = [message("First.", ts=100), {**message("Odd.", ts=200), **odd}, message("Last.", ts=300)]
    (channel,) = read_contents(export(a__05=days), name="export.zip")
    assert sorted(line.partition(": ")[2] for line in channel.text.split("\n")) == ["First.", "Last.", "Odd."]
    assert "1970-01-01 00:00" not in {place.time for place in channel.places}
    if "user" in odd:
        assert "someone: Odd." in channel.text
