"""The service takes a form and a question; a file keeps its times."""

from __future__ import annotations

from typing import Any

from tests.server_of_tests import Running

CUES = (
    b"WEBVTT\n\n00:00:05.000 --> 00:00:07.000\n<v Ann>We lost the key of the hall.</v>\n\n"
    b"00:01:10.000 --> 00:01:12.000\n<v Bob>I'll buy a new one tomorrow.</v>\n\n"
    b"00:02:00.000 --> 00:02:02.000\n<v Ann>Good, thank you very much.</v>\n"
)
TEXT = "The ferry sails at nine. The captain is called Reyes. The boat was built in 1986 at Tarnby."


def asked(service: Running, **options: Any) -> dict:
    with service.client() as client:
        answer = client.post("/v1/summarize", json={"text": TEXT, **options})
    assert answer.status_code == 200, answer.text
    return answer.json()["summaries"][0]


def test_lines_have_their_offsets_and_passages(service: Running) -> None:
    found = asked(service, type="outline", support=True)
    assert found["type"] == "outline"
    assert found["sentences"]
    for sentence in found["sentences"]:
        assert found["summary"][sentence["start"] : sentence["end"]] == sentence["text"]
        (passage,) = sentence["support"]
        assert TEXT[passage["start"] : passage["end"]] == passage["text"] == sentence["text"]


def test_a_question_without_an_answer_is_said_to_be(service: Running) -> None:
    found = asked(service, about="What do penguins eat?")
    assert found["answered"] is False
    assert found["summary"] == found["sentences"][0]["text"]
    assert "shares enough words" in found["summary"]


def test_minutes_of_a_file_have_times_and_owners(service: Running) -> None:
    with service.client() as client:
        files = [("file", ("talk.vtt", CUES))]
        answer = client.post("/v1/summarize", files=files, data={"type": "minutes"})
    assert answer.status_code == 200, answer.text
    lines = answer.json()["summaries"][0]["sentences"]
    (action,) = [line for line in lines if line.get("part") == "actions"]
    assert (action["time"], action["owner"], action["due"]) == ("0:01:10", "Bob", "tomorrow")


def test_bad_forms_are_refused(service: Running) -> None:
    with service.client() as client:
        unknown = client.post("/v1/summarize", json={"text": TEXT, "type": "poem"})
        blank = client.post("/v1/summarize", json={"text": TEXT, "about": "?"})
    assert (unknown.status_code, blank.status_code) == (422, 422)
    assert "does not ask anything" in blank.json()["error"]["message"]
