"""A summary in one line, with the model that comes with precis or with another."""

import json
from pathlib import Path

import pytest

from precis import read_document, summarize
from precis.cli import main
from precis.extract.extractor_opening import open_extractor
from precis.generation.model_loader import load_model
from precis.generation.model_location import default_model, locate
from precis.generation.model_metadata import PACKAGES
from precis.generation.summarizer import Summarizer
from precis_text.documents.subtitles import as_read
from precis_text.errors import UserError
from precis_text.forms.form import FormType
from precis_text.sentences import split_sentences
from precis_text.words import length_in_words
from tests.tiny_models import save

TEXT = (
    "The council met on Monday evening. It voted to repair the old bridge before winter. "
    "The work will cost 40,000 crowns and begins in May. Two members were absent."
)


def test_the_default_model_chooses_sentences_and_says_that_it_cannot_write() -> None:
    assert locate("default").use.modes == ("extract",)
    assert locate("default").place == default_model()
    with pytest.raises(UserError, match="not trained to write"):
        summarize(TEXT, mode="abstract")


def test_its_name_is_default_wherever_python_takes_a_model() -> None:
    summary = summarize(TEXT, words=20)
    assert summarize(TEXT, words=20, model="default") == summary
    assert open_extractor("default").summarize([TEXT], words=20)[0].text == summary
    assert load_model("default").source == "default"


def test_a_model_that_only_chooses_is_refused_as_a_writer_with_the_way_to_use_it() -> None:
    with pytest.raises(UserError, match=r"not trained to write; use precis\.summarize"):
        Summarizer.from_pretrained("default")


@pytest.mark.parametrize("model", [None, 3])
def test_a_model_of_another_type_is_named(model: object) -> None:
    with pytest.raises(UserError, match=f"model={model} is of type .*; give a name or a path"):
        Summarizer.from_pretrained(model)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "extractive"}, "mode='extractive' is unknown; did you mean 'extract'"),
        ({"words": 4.5}, "words=4.5 must be a whole number"),
        ({"sentences": "2"}, "sentences='2' must be a whole number"),
        ({"min_words": 1.5}, "min_words=1.5 must be a whole number"),
    ],
)
def test_wrong_options_are_named_as_python_names_them(options: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        summarize(TEXT, **options)


def test_a_path_is_read_and_the_name_of_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("report.md").write_text(f"# The bridge\n\n{TEXT}\n")
    assert summarize(Path("report.md"), words=20) == summarize(read_document("report.md").text, words=20)
    with pytest.raises(UserError, match=r"is the name of a file.*write summarize\(Path\('report.md'\)\)"):
        summarize("report.md", words=20)
    assert summarize("report", words=20) == "report"  # no such file
    assert summarize(f"{TEXT} {TEXT} {TEXT}", sentences=1)  # longer than the name of a file can be
    assert summarize(f"{TEXT}\0", sentences=1)  # no name either
    with pytest.raises(UserError, match=r"missing\.md: no such file"):
        summarize(Path("missing.md"))


def test_places_of_the_command_refer_to_the_text_that_python_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# The *old* bridge\n\n{TEXT}\n\n## Costs\n\nThe loan runs for ten years.\n")
    assert main(["summarize", str(page), "--words", "25", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    text = read_document(page).text
    assert made["places"]
    assert all(text[start:stop] in made["summary"] for start, stop in made["places"])


TURNS = [
    ("Ann", "Good morning, the first topic is the roof of the hall."),
    ("Bob", "The repair will cost nine thousand euros and take two weeks."),
    ("Ann", "So we decided that the roof is repaired in May."),
    ("Bob", "I'll call the roofer and send you the offer by Friday."),
    ("Ann", "Thanks everyone, have a nice day."),
]
CALL = "5b1e0f0a-3c0e-4f5a-9a54-0d3f6f2b7a11"
TEAMS = "\n".join(
    f"{CALL}/{n}-0\n00:0{n}:00.000 --> 00:0{n}:09.000\n<v {w}>{s}</v>\n" for n, (w, s) in enumerate(TURNS)
)
ZOOM = "\n".join(f"{n}\n00:0{n}:00.000 --> 00:0{n}:09.000\n{w}: {s}\n" for n, (w, s) in enumerate(TURNS))
SRT = ZOOM.replace(".000", ",000")


@pytest.mark.parametrize(
    "content",
    [
        f"WEBVTT\n\n{TEAMS}",
        f"WEBVTT - of a call\nKind: captions\n\n{ZOOM}",
        SRT,
        SRT.replace("\n", "\r\n"),
        TEAMS,
        ZOOM,
    ],
)
@pytest.mark.parametrize("form", ["minutes", "key-points", "paragraph"])
def test_a_text_of_subtitles_is_read_like_their_file(content: str, form: FormType, tmp_path: Path) -> None:
    file = tmp_path / "talk.vtt"
    file.write_text(content, newline="")
    made = summarize(content, type=form)
    assert made == summarize(file, type=form)
    assert CALL not in made
    assert "-->" not in made
    if form == "minutes":
        assert "- [0:02:00] Ann: So we decided that the roof is repaired in May." in made
        assert "(owner: Bob; due: by Friday)" in made


def test_a_model_that_writes_reads_a_text_of_subtitles_like_their_file(tmp_path: Path) -> None:
    summarizer = Summarizer.from_pretrained(save("bart", tmp_path / "model"))
    (tmp_path / "talk.srt").write_text(SRT)
    assert summarizer.summarize([SRT], words=9) == summarizer.summarize(
        [read_document(tmp_path / "talk.srt")], words=9
    )


@pytest.mark.parametrize("text", [f"WebVTT is a format for captions.\n\n{TEXT}", f"See 1\n{SRT}", TEXT])
def test_a_text_that_only_speaks_of_subtitles_stays(text: str) -> None:
    assert as_read(text) is text


def test_a_folder_of_that_name_needs_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = save("bart", tmp_path / "default")
    monkeypatch.chdir(tmp_path)
    assert locate("./default").place == Path("default")
    assert locate(mine).place == mine
    assert locate("default").place == default_model()


def test_its_summaries_are_sentences_of_the_text_within_the_cap() -> None:
    text = (
        f"{TEXT} The ferry runs until then. A steel footbridge stands beside it. Lorries take the mill road."
    )
    for cap, least in ((10, 1), (20, 1), (40, 0.85 * 40)):
        summary = summarize(text, words=cap)
        assert least <= length_in_words(summary) <= cap
        assert all(sentence in split_sentences(text) for sentence in split_sentences(summary))


def test_it_is_whole_and_small() -> None:
    load_model(default_model())
    assert sum(file.stat().st_size for file in default_model().iterdir()) < 40_000_000


def test_another_model_can_be_named(tmp_path: Path) -> None:
    assert summarize(TEXT, words=200, model=save("bart", tmp_path / "tiny")) == TEXT


def test_without_its_package_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGES, "default", "not_there_at_all")
    with pytest.raises(UserError, match=r"pip install \./packages/precis-model-small"):
        summarize(TEXT)
