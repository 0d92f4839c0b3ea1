"""The judges' page in a real Chromium: by keyboard, by mouse, through reloads, with two judges, with hostile texts."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from precis_judge.judging_study import JudgingStudy
from precis_judge.report_page import publish
from precis_judge.system_summaries import JudgedDocument
from tests.browser.conftest import CONTRAST
from tests.judge.studies import INJECTED, invented, judge_all, lines, study_in

pytestmark = pytest.mark.browser
KEYS = ("faithfulness", "relevance", "grammaticality", "coherence", "overall")


@pytest.fixture
def served() -> Iterator[Any]:
    """Start `precis judge serve` on a study; the links of its judges."""
    running = []

    def serve(study: JudgingStudy, port: int = 0) -> dict[str, str]:
        words = [sys.executable, "-m", "precis", "judge", "serve", str(study.folder), "--port", str(port)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        running.append(process)
        links = {}
        for _ in study.design.judges:
            judge, _, link = process.stdout.readline().strip().partition(": ")
            links[judge] = link
        serve.process = process  # type: ignore[attr-defined]
        return links

    yield serve
    for process in running:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def opened(chromium: Any, link: str, **options: Any) -> Any:
    page = chromium.new_context(**{"viewport": {"width": 1440, "height": 900}, **options}).new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda said: said.type == "error" and page.problems.append(said.text))
    page.goto(link)
    page.wait_for_selector("#work:not([hidden])")
    return page


def shown(page: Any, number: int, of: int) -> None:
    page.wait_for_function(
        "text => document.getElementById('place').textContent.endsWith(text)", arg=f"page {number} of {of}"
    )


def keep(page: Any) -> None:
    with page.expect_response("**/api/verdict") as answer:
        page.keyboard.press("Enter")
    assert answer.value.status == 200


def picture(page: Any, name: str) -> None:
    if folder := os.environ.get("PRECIS_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_twenty_pages_by_keyboard_alone_with_a_reload_in_the_middle(
    chromium: Any, served: Any, tmp_path: Path
) -> None:
    study = study_in(tmp_path / "study", documents=20, judges=("Ann",), repeats=0, gold=0)
    page = opened(chromium, served(study)["Ann"])
    for number in range(20):
        shown(page, number + 1, 20)
        if number == 10:  # half of a page answered, then a reload
            page.keyboard.press("1")
            page.keyboard.press("2")
            page.reload()
            shown(page, 11, 20)
            pressed = page.locator('.choices button[aria-pressed="true"]')
            pressed.nth(1).wait_for()
            assert pressed.count() == 2
        for key in "12" if number != 10 else "":
            page.keyboard.press(key)
        if number == 3:
            page.keyboard.press("r")
            page.keyboard.type("It reads better, b p 1 2 3.")
            page.keyboard.press("Enter")
        for key in "332":
            page.keyboard.press(key)
        keep(page)
    page.wait_for_selector("#message:not([hidden])")
    assert "all 20 pages" in page.inner_text("#message-text")
    said = lines(study.folder / "verdicts.jsonl")
    assert [one["page"] for one in said] == list(range(20))
    assert {tuple(one["choices"][key] for key in KEYS) for one in said} == {
        ("left", "same", "right", "right", "same")
    }
    assert [one["reasons"] for one in said if one["reasons"]] == [
        {"grammaticality": "It reads better, b p 1 2 3."}
    ]
    assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_control_is_reached_by_tab_and_every_text_is_legible(
    chromium: Any,
    served: Any,
    tabbed: Callable[[Any], tuple[list[str], list[str]]],
    tmp_path: Path,
    scheme: str,
) -> None:
    study = study_in(tmp_path / "study", documents=2, judges=("Ann",), repeats=0, gold=0)
    page = opened(chromium, served(study)["Ann"], color_scheme=scheme)
    page.keyboard.press("1")
    page.keyboard.press("p")
    assert tabbed(page) == ([], [])
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 20
    assert [found for found in ratios if found[0] < 4.5] == []


def test_twenty_pages_by_mouse(chromium: Any, served: Any, tmp_path: Path) -> None:
    study = study_in(tmp_path / "study", documents=20, judges=("Ann",), repeats=0, gold=0)
    page = opened(chromium, served(study)["Ann"])
    for number in range(20):
        shown(page, number + 1, 20)
        for key in KEYS:
            page.click(f"#criterion-{key} button[data-side=right]")
        if number == 2:
            page.click("#back")
            shown(page, 2, 20)
            page.click("#criterion-overall button[data-side=left]")
            with page.expect_response("**/api/verdict"):
                page.click("#keep")
            shown(page, 3, 20)
            assert page.locator('.choices button[aria-pressed="true"]').count() == 5
        with page.expect_response("**/api/verdict"):
            page.click("#keep")
    page.wait_for_selector("#message:not([hidden])")
    said = {one["page"]: one["choices"]["overall"] for one in lines(study.folder / "verdicts.jsonl")}
    assert said == {**dict.fromkeys(range(20), "right"), 1: "left"}


def test_two_judges_at_once_see_their_own_pages_and_opposite_sides(
    chromium: Any, served: Any, tmp_path: Path
) -> None:
    study = study_in(tmp_path / "study", documents=4, repeats=0, gold=0)
    links = served(study)
    pages = {judge: opened(chromium, link) for judge, link in links.items()}
    seen = {judge: {} for judge in pages}  # type: ignore[var-annotated]
    for number in range(4):
        for judge, page in pages.items():
            shown(page, number + 1, 4)
            seen[judge][page.inner_text("#source")] = page.inner_text("#left")
            for key in "11111" if judge == "Ann" else "33333":
                page.keyboard.press(key)
            keep(page)
    assert seen["Ann"].keys() == seen["Ben"].keys()
    assert all(seen["Ann"][source] != seen["Ben"][source] for source in seen["Ann"])
    said = lines(study.folder / "verdicts.jsonl")
    assert [(one["judge"], one["choices"]["overall"]) for one in said] == [
        ("Ann", "left"),
        ("Ben", "right"),
    ] * 4


def test_a_second_link_in_the_same_browser_never_votes_for_the_first_judge(
    chromium: Any, served: Any, tmp_path: Path
) -> None:
    study = study_in(tmp_path / "study", documents=2, repeats=0, gold=0)
    links = served(study)
    page = opened(chromium, links["Ann"])
    other = page.context.new_page()
    other.goto(links["Ben"])
    other.wait_for_selector("#work:not([hidden])")
    for key in "11111":
        page.keyboard.press(key)
    with page.expect_response("**/api/verdict") as answer:
        page.keyboard.press("Enter")
    assert answer.value.status == 409
    page.wait_for_selector("#status.bad")
    assert lines(study.folder / "verdicts.jsonl") == []


def test_an_injected_script_stays_text(chromium: Any, served: Any, tmp_path: Path) -> None:
    documents = [
        JudgedDocument(
            id=f"{n}", document=f"Source. {INJECTED}", summaries={"a": f"One. {INJECTED}", "b": "Two."}
        )
        for n in range(2)
    ]
    study = study_in(tmp_path / "study", documents=documents, judges=("Ann",), repeats=0, gold=0)
    page = opened(chromium, served(study)["Ann"])
    page.keyboard.press("p")
    page.wait_for_selector("mark")
    assert INJECTED in page.inner_text("#source")
    assert INJECTED in page.inner_text("#left") + page.inner_text("#right")
    assert page.title() == "Which summary is better?"
    assert page.locator("#work img, #work script").count() == 0
    for key in "11111r":
        page.keyboard.press(key)
    page.keyboard.type(INJECTED)
    page.keyboard.press("Escape")
    keep(page)
    publish(study.folder)
    page.goto((study.folder / "report.html").as_uri())
    page.click("summary")
    assert INJECTED in page.inner_text("blockquote")
    assert page.locator("img, script").count() == 0
    assert page.title() == "Human verdicts: a, b"


def test_passages_mark_the_sentences_that_a_sentence_rests_on(
    chromium: Any, served: Any, tmp_path: Path
) -> None:
    study = study_in(tmp_path / "study", documents=2, judges=("Ann",), repeats=0, gold=0)
    page = opened(chromium, served(study)["Ann"])
    page.keyboard.press("p")
    page.wait_for_selector("#left mark.on")
    assert page.inner_text("#left mark.on").startswith("The ferry of")
    assert any("people every day." in text for text in page.locator("#source mark.on").all_inner_texts())
    page.keyboard.press("p")
    assert page.inner_text("#left mark.on") == "A bridge took its place."
    assert page.locator("#source mark.on").all_inner_texts() == ["In the end a bridge took its place."]
    page.keyboard.press("Escape")
    assert page.locator("mark").count() == 0


def test_the_server_killed_and_started_again_keeps_the_judge_where_she_was(
    chromium: Any, served: Any, tmp_path: Path
) -> None:
    study = study_in(tmp_path / "study", documents=3, judges=("Ann",), repeats=0, gold=0)
    link = served(study)["Ann"]
    page = opened(chromium, link)
    for key in "11111":
        page.keyboard.press(key)
    keep(page)
    shown(page, 2, 3)
    for key in "22222":
        page.keyboard.press(key)
    served.process.kill()
    served.process.wait()
    page.keyboard.press("Enter")
    page.wait_for_selector("#status.bad")
    assert "does not answer" in page.inner_text("#status")
    served(study, port=int(link.split(":")[2].split("/")[0]))
    keep(page)
    shown(page, 3, 3)
    assert [one["choices"]["overall"] for one in lines(study.folder / "verdicts.jsonl")] == ["left", "same"]


SHIFTS = """[...document.querySelectorAll(".choices button")].map((button) => {
  const range = document.createRange();
  range.selectNodeContents(button);
  const [text, box] = [range.getBoundingClientRect(), button.getBoundingClientRect()];
  return Math.abs((text.left + text.right) / 2 - (box.left + box.right) / 2);
})"""
"""How far the label of each choice is from the middle of its button, in pixels."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390, 320])
def test_texts_stand_side_by_side_where_there_is_room_and_nothing_is_wider_than_the_screen(
    chromium: Any, served: Any, tmp_path: Path, scheme: str, width: int
) -> None:
    study = study_in(
        tmp_path / "study", documents=invented(12, ("bart", "prefix", "zcode")), judges=("Ann", "Ben")
    )
    options = {"viewport": {"width": width, "height": 900 if width > 1000 else 844}, "color_scheme": scheme}
    page = opened(chromium, served(study)["Ann"], **options)
    page.keyboard.press("1")
    page.keyboard.press("p")
    page.wait_for_selector("mark.on")
    picture(page, f"page-{scheme}-{width}")
    boxes = [page.locator(f".text.{name}").bounding_box() for name in ("source", "left", "right")]
    if width > 1000:
        assert len({box["y"] for box in boxes}) == 1
        assert boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"]
        assert page.evaluate("document.documentElement.scrollHeight") <= 900
    else:
        assert len({box["x"] for box in boxes}) == 1
        assert boxes[0]["y"] < boxes[1]["y"] < boxes[2]["y"]
    shifts = page.evaluate(SHIFTS)
    assert len(shifts) == 15
    assert max(shifts) < 3
    wide = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(wide)
    served.process.kill()
    served.process.wait()
    judge_all(
        study, lambda judge, item, key: (len(item.document) + len(key) + len(judge) + len(item.first)) % 3 / 2
    )
    publish(study.folder)
    page.goto((study.folder / "report.html").as_uri())
    assert page.evaluate(wide)
    if folder := os.environ.get("PRECIS_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"report-{scheme}-{width}.png"), full_page=True)
