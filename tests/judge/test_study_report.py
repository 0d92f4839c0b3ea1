"""The report of a study, from verdicts that follow a rule."""

import json
from pathlib import Path

import pytest

from precis_judge.protocols import protocol
from precis_judge.report_page import publish
from precis_judge.study_design import Comparison
from precis_judge.study_report import make_report
from precis_judge.verdicts import VerdictStore
from precis_text.errors import UserError
from tests.judge.studies import INJECTED, invented, judge_all, study_in


def test_the_protocols_ask_for_the_papers_criteria() -> None:
    assert [one.name for one in protocol("discourse").criteria] == [
        "Faithfulness",
        "Relevance",
        "Grammaticality",
        "Coherence",
        "Overall quality",
    ]
    assert [one.name for one in protocol("zcodepp").criteria] == [
        "Conciseness",
        "Fluency",
        "No hallucinations",
        "Informativeness",
        "Overall",
    ]
    assert protocol("zcodepp").against == "reference"


@pytest.mark.long
def test_a_score_against_the_reference_is_the_mean_of_preferences(tmp_path: Path) -> None:
    documents = invented(8, ("ours", "theirs", "reference"))
    study = study_in(
        tmp_path / "study", documents=documents, judges=("Ann",), asked="zcodepp", repeats=0, gold=0
    )
    order = [one.id for one in documents]
    judge_all(
        study,
        lambda judge, item, key: 1 if order.index(item.document) < 5 else 0.5 if item.first == "ours" else 0,
    )
    report = make_report(study)
    overall = report.criteria[-1]
    assert {(one.first, one.second): one.rate.value for one in overall.pairs} == {
        ("ours", "reference"): (5 + 1.5) / 8,
        ("theirs", "reference"): 5 / 8,
    }


@pytest.mark.long
def test_judges_are_measured_on_repeated_and_gold_pages_which_do_not_enter_the_results(
    tmp_path: Path,
) -> None:
    study = study_in(tmp_path / "study", documents=20, repeats=0.2, gold=0.2)

    def prefers(judge: str, item: Comparison, key: str) -> float:
        return float(judge == "Ann") if item.planted else 1

    judge_all(study, prefers)
    report = make_report(study)
    ann, ben = report.judges
    assert (ann.gold.value, ben.gold.value) == (1, 0)
    assert ann.again.value == 1
    assert ann.pages == ann.done == 28
    assert report.verdicts == 40
    assert report.criteria[0].pairs[0].wins == 40
    assert "Ben: missed 100% of the gold checks" in report.remarks
    assert any("only wins" in remark for remark in report.remarks)
    assert make_report(study, leave_out=["Ben"]).verdicts == 20


def test_page_and_json_say_the_same_and_texts_are_escaped(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study", judges=("Ann", INJECTED[:50]), gold=0)
    with VerdictStore.opened(study) as store:
        for judge in study.design.judges:
            choices = dict.fromkeys(study.protocol.keys, "left")
            store.add({"judge": judge, "page": 0, "choices": choices, "reasons": {"overall": INJECTED}})
    report, tables = publish(study.folder)
    page = (study.folder / "report.html").read_text()
    record = json.loads((study.folder / "report.json").read_text())
    assert "<script" not in page
    assert "<img" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert record["criteria"][0]["pairs"][0]["wins"] == report.criteria[0].pairs[0].wins
    assert [one["text"] for one in record["reasons"]] == [INJECTED] * 2
    for table in tables:
        assert table.title in page


@pytest.mark.parametrize("judges", [("Ann",), ("Ann", "Ben")])
def test_the_report_of_one_judge_has_one_remark_on_that_and_no_words_about_several(
    tmp_path: Path, judges: tuple[str, ...]
) -> None:
    study = study_in(tmp_path / "study", documents=20, judges=judges, repeats=0, gold=0)
    with VerdictStore.opened(study) as store:  # another judge has not begun
        for page, shown in enumerate(study.layout.pages["Ann"]):
            side = "left" if shown.first_left == (page % 3 > 0) else "right"
            choices = dict.fromkeys(study.protocol.keys, side)
            store.add({"judge": "Ann", "page": page, "choices": choices, "seconds": 30})
    report, tables = publish(study.folder)
    remark = "one judge: the intervals do not cover other judges, and nothing is known about agreement"
    assert [each for each in report.remarks if not each.startswith("Ben:")] == [remark]
    assert [table.title for table in tables] == ["Pairs", "Systems", "Judges"]
    page_of_report = (study.folder / "report.html").read_text()
    for text in (page_of_report, *(table.caption for table in tables)):
        assert not any(words in text for words in ("and judges", "Agreement", "alpha", "verdict a document"))
    record = json.loads((study.folder / "report.json").read_text())
    assert record["criteria"][0]["pairs"][0]["rate"]["note"].startswith("one judge: ")


def test_a_study_without_verdicts_has_no_report(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    with pytest.raises(UserError, match="does not have verdicts yet"):
        make_report(study)
    with pytest.raises(UserError, match="unknown judge 'Zoe'"):
        make_report(study, leave_out=["Zoe"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = 1", r"\[\[criteria\]\] is missing"),
        ("title = ", "is not TOML"),
        (
            'title = "t"\ninstructions = "i"\n[[criteria]]\nkey = "A b"\nname = "n"\nquestion = "q"',
            "criterion key",
        ),
        (
            'title = "t"\ninstructions = "i"\n[[criteria]]\nkey = "a"\nname = ""\nquestion = "q"',
            "texts of 1 to",
        ),
        (
            'title = "t"\n[[criteria]]\nkey = "a"\nname = "n"\nquestion = "q"',
            "lacks the setting 'instructions'",
        ),
    ],
)
def test_a_file_that_is_no_protocol(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        protocol(str(file))
    with pytest.raises(UserError, match="did you mean 'discourse'"):
        protocol("discours")
