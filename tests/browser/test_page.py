"""What a reader does with the page, and what a document cannot do to it."""

import json
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from precis.generation.summary import Summary
from precis.messages import OnProgress
from precis.server.client_keys import Keys
from precis.server.engine import Ask
from precis.server.limits import Limits
from tests.browser.conftest import CONTRAST
from tests.document_files import lines_of, pdf, word
from tests.server_of_tests import ByWords, Running, run

pytestmark = pytest.mark.browser

TEXT = (
    "The harbour of Elm was closed on Monday. A storm had damaged two cranes. Repairs take a week, the port "
    "office said. Ferries leave from Oak until then. \U0001f6a2 Nobody was hurt in the storm. "
    "The mayor thanked the crews."
)


@pytest.fixture
def service(invented: SimpleNamespace) -> Iterator[Running]:
    one = run(invented, limits=Limits(tokens=600_000, queue=700_000))
    yield one
    if one.thread.is_alive():
        one.stop()


@pytest.fixture
def slowly(invented: SimpleNamespace) -> Iterator[Running]:
    """A service that waits with its first summary until `served_model.go` is set."""
    go = threading.Event()

    def make(texts: Sequence[str], ask: Ask, on_progress: OnProgress, on_partial: object) -> list[Summary]:
        while not go.wait(0.02):
            on_progress(0, 1, 0)
        return invented.make(texts, ask, on_progress, on_partial)

    one = run(
        SimpleNamespace(make=make, counter=ByWords, name="slow", modes=invented.modes, go=go, languages=())
    )
    yield one
    go.set()
    one.stop()


DONE = "document.querySelector('#status').textContent.startsWith('Done')"


def until(page: Any, condition: str, *, seconds: float = 20) -> None:
    """Wait for what is true; the page's policy forbids playwright's own way, which evaluates text in the page."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.05)


def opened(page: Any, service: Running) -> Any:
    page.goto(service.url)
    until(page, "Boolean(state.facts)")
    return page


def summarize(page: Any, text: str = TEXT) -> None:
    page.fill("#text", text)
    page.click("#go")
    until(page, DONE)


def test_a_pasted_text_gets_its_sentences_with_their_passages(page: Any, service: Running) -> None:
    opened(page, service)
    summarize(page)
    sentences = page.locator(".sentence")
    assert sentences.all_inner_texts()[0] == "The harbour of Elm was closed on Monday."
    sentences.nth(1).hover()
    assert page.locator("#source mark.on").inner_text() == "A storm had damaged two cranes."
    assert "tokens of the document were read" in page.locator(".read").inner_text()
    assert page.locator("#source").inner_text() == TEXT


def test_nothing_of_the_page_is_refused_by_its_own_rules(page: Any, service: Running) -> None:
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    opened(page, service)
    summarize(page)
    assert not errors


def test_a_first_visitor_has_an_example_to_try(page: Any, service: Running) -> None:
    opened(page, service)
    assert page.locator("#welcome li").count() == 3
    page.click("#try")
    until(page, DONE)
    assert page.locator(".sentence").count() > 2
    assert page.locator("#source mark").count() > 2
    assert page.is_hidden("#welcome")
    page.wait_for_selector("#try", state="hidden")  # a moment after the last change of the text
    assert page.evaluate("document.activeElement.id") == "results"


def test_the_way_goes_from_a_sentence_to_its_passage_and_from_a_passage_to_its_sentence(
    page: Any, service: Running
) -> None:
    opened(page, service)
    summarize(page)
    page.locator(".sentence").nth(1).click()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Show in the document"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "A storm had damaged two cranes."
    page.locator("#source mark").first.click()
    assert page.evaluate("document.activeElement.className") == "sentence"
    assert page.evaluate("document.activeElement.textContent") == "The harbour of Elm was closed on Monday."


def test_nothing_moves_under_a_passing_pointer(page: Any, service: Running) -> None:
    opened(page, service)
    summarize(page)
    places = [one.bounding_box() for one in page.locator(".sentence").all()]
    for place in range(len(places)):
        page.locator(".sentence").nth(place).hover()
        assert page.locator("#source mark.on").count() == 1
    assert [one.bounding_box() for one in page.locator(".sentence").all()] == places


def test_an_edited_text_is_told_from_the_one_that_was_summarized(page: Any, service: Running) -> None:
    opened(page, service)
    summarize(page)
    page.click("#edit")
    assert page.is_visible("#text")
    page.click("#edit")  # nothing was changed: the passages come back
    assert page.locator("#source mark").count() > 0
    page.click("#edit")
    page.fill("#text", "Something else.")
    assert page.is_visible("#stale")
    assert page.is_hidden("#edit")
    page.fill("#text", TEXT)
    assert page.is_hidden("#stale")


def test_a_text_that_comes_during_the_work_stays(page: Any, slowly: Running) -> None:
    opened(page, slowly)
    page.fill("#text", TEXT)
    page.click("#go")
    page.wait_for_selector("#stop:not([hidden])")
    page.fill("#text", "Something else.")
    slowly.served_model.go.set()
    until(page, DONE)
    assert page.input_value("#text") == "Something else."
    assert page.is_visible("#text")
    assert page.is_visible("#stale")


def test_stopping_leaves_nothing_behind(page: Any, slowly: Running) -> None:
    opened(page, slowly)
    page.fill("#text", TEXT)
    page.click("#go")
    page.click("#stop")
    until(page, "document.querySelector('#status').textContent === 'Stopped.'")
    assert page.locator("article").count() == 0
    assert page.evaluate("document.activeElement.id") == "go"
    slowly.served_model.go.set()
    summarize(page)
    assert page.locator(".sentence").count() > 0


def test_a_server_with_keys_asks_for_one_where_it_is_seen(
    page: Any, invented: SimpleNamespace, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text("ann 0123456789abcdef\n")
    one = run(invented, keys=Keys.read(tmp_path / "keys"))
    page.goto(one.url)
    page.wait_for_selector("#problem:not([hidden])")
    assert "needs a key" in page.locator("#problem").inner_text()
    assert page.locator("#key").bounding_box()["y"] < page.locator("#text").bounding_box()["y"]
    for key, answer in (("fedcba9876543210", "does not accept this key"), ("0123456789abcdef", "")):
        page.fill("#key", key)
        page.keyboard.press("Tab")
        until(page, f"document.querySelector('#problem').textContent.includes({json.dumps(answer)})")
    until(page, "Boolean(state.facts)")
    assert page.is_hidden("#problem")
    summarize(page)
    one.stop()


def test_lines_that_were_broken_for_their_width_alone_are_joined(page: Any, service: Running) -> None:
    opened(page, service)
    wrapped = "\n".join(textwrap.wrap(TEXT * 3, 60))
    summarize(page, f"A title\n\n{wrapped}\n\nAnn: Hi.\nBob: Hello.")
    shown = page.locator("#source").inner_text()
    assert shown == f"A title\n\n{wrapped.replace(chr(10), ' ')}\n\nAnn: Hi.\nBob: Hello."
    page.locator(".sentence").nth(2).hover()
    assert page.locator("#source mark.on").inner_text() == "A storm had damaged two cranes."


def test_a_text_from_right_to_left_is_shown_so(page: Any, service: Running) -> None:
    opened(page, service)
    summarize(page, "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd. " * 3)
    assert {page.get_attribute(name, "dir") for name in ("#text", "#source", ".sentence >> nth=0")} == {"rtl"}
    page.click("#edit")
    page.fill("#text", "12. A text.")
    assert page.get_attribute("#text", "dir") == "ltr"


def test_the_keyboard_does_all_of_it(page: Any, service: Running) -> None:
    opened(page, service)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # past the link to the summary, to the file
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.insert_text(TEXT)
    page.focus("#go")
    page.keyboard.press("Enter")
    page.wait_for_selector(".sentence")
    until(page, DONE)
    page.focus(".sentence")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "A storm had damaged two cranes."
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName + document.activeElement.className") == "MARKon"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "sentence"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_control_is_reached_by_tab_and_shows_its_focus(
    page: Any, service: Running, tabbed: Callable[[Any], tuple[list[str], list[str]]], scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    opened(page, service)
    assert tabbed(page) == ([], [])
    page.check("#compare")
    summarize(page)
    until(page, "document.querySelector('#try').hidden")  # soon after there is a text
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert tabbed(page) == ([], [])


def test_the_slider_sets_the_length(page: Any, service: Running) -> None:
    opened(page, service)
    page.select_option(".unit >> nth=0", "sentences")
    page.focus(".slider >> nth=0")
    page.keyboard.press("Home")
    assert page.locator("output").first.inner_text() == "1 sentence"
    summarize(page)
    assert page.locator(".sentence").count() == 1


def test_two_settings_stand_side_by_side_and_doubts_are_in_words(page: Any, service: Running) -> None:
    opened(page, service)
    page.check("#compare")
    page.select_option(".mode >> nth=1", "abstract")
    summarize(page)
    boxes = [article.bounding_box() for article in page.locator("article").all()]
    assert len(boxes) == 2
    assert boxes[0]["y"] == boxes[1]["y"]
    doubts = page.locator("article >> nth=1").locator(".doubt").all_inner_texts()
    assert any("Quillfeather" in doubt for doubt in doubts)
    assert any("731" in doubt for doubt in doubts)


def test_each_part_of_minutes_has_one_heading(page: Any, service: Running) -> None:
    opened(page, service)
    page.evaluate("""() => {
      const part = addResult("minutes");
      for (const [name, text] of [["topics", "Ann"], ["topics", "Bob"], ["actions", "Carl"], ["actions", "Dora"]]) {
        addSentence(part, {text, part: name, start: 0, support: []});
      }
    }""")
    headings = page.locator(".sentences > .part").all_inner_texts()
    assert headings == ["Topics", "Actions"]
    assert page.locator(".sentences > li").count() == 6


def test_the_second_setting_begins_as_another_one(page: Any, service: Running) -> None:
    opened(page, service)
    page.select_option(".type >> nth=0", "key-points")
    page.check("#compare")
    assert page.locator(".type >> nth=1").input_value() == "key-points"
    modes = [page.locator(f".mode >> nth={number}").input_value() for number in (0, 1)]
    assert sorted(modes) == ["abstract", "extract"]
    summarize(page)
    titles = page.locator("article h3").all_inner_texts()
    assert len(titles) == 2
    assert {title.partition(", length")[0] for title in titles} == {
        "Key points, chosen sentences",
        "Key points, written summary",
    }


def test_the_second_length_is_another_one_where_the_server_has_one_method(
    page: Any, service: Running
) -> None:
    opened(page, service)
    page.evaluate("state.facts.modes = ['extract']; first.offer(); second.offer()")
    page.check("#compare")
    assert page.locator("output").all_inner_texts() == ["80 words", "40 words"]


def test_control_and_enter_summarize_what_is_typed(page: Any, service: Running) -> None:
    opened(page, service)
    page.fill("#text", TEXT)
    page.focus("#text")
    page.keyboard.press("Control+Enter")
    until(page, DONE)
    assert page.locator("article h3").inner_text() == "Chosen sentences, at most 80 words"


def test_a_text_pasted_beside_a_summary_is_the_next_document(page: Any, service: Running) -> None:
    opened(page, service)
    summarize(page)
    paste = """(text) => {
      const data = new DataTransfer();
      data.setData("text/plain", text);
      document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
    }"""
    page.evaluate(paste, "Another text. It is short.")
    assert page.input_value("#text") == "Another text. It is short."
    assert page.is_visible("#text")
    assert page.is_visible("#stale")


def test_fields_of_text_look_like_the_other_fields(page: Any, service: Running) -> None:
    opened(page, service)
    style = "e => [getComputedStyle(e).borderRadius, getComputedStyle(e).backgroundColor, e.offsetHeight]"
    assert page.locator(".about").first.evaluate(style) == page.locator(".unit").first.evaluate(style)


def test_long_words_wrap_on_a_small_screen(page: Any, service: Running) -> None:
    page.set_viewport_size({"width": 320, "height": 900})
    opened(page, service)
    page.fill(".about >> nth=0", "")
    summarize(
        page, f"The file {'x' * 300} was lost. {'https://example.org/' + 'y' * 200} tells more. Ann found it."
    )
    assert page.locator(".sentence").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_a_file_is_opened_and_a_broken_one_is_refused(page: Any, service: Running, tmp_path: Path) -> None:
    opened(page, service)
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7\n\xff\xfe\x00")
    page.set_input_files("#file", tmp_path / "a.txt")
    until(page, "document.querySelector('#text').value.length > 10")
    page.set_input_files("#file", tmp_path / "a.pdf")
    page.wait_for_selector("#problem:not([hidden])")
    assert "Not opened: a.pdf: is damaged: " in page.locator("#problem").inner_text()
    (tmp_path / "b.txt").write_bytes("\ufeffAnn sings.".encode("utf-16-le"))
    page.set_input_files("#file", tmp_path / "b.txt")
    until(page, "document.querySelector('#text').value === 'Ann sings.'")
    (tmp_path / "c.txt").write_bytes(b"a" * (5 << 20))
    page.set_input_files("#file", tmp_path / "c.txt")
    until(
        page, "document.querySelector('#problem').textContent.includes('has 5 MB; this server accepts 4 MB')"
    )
    assert page.input_value("#text") == "Ann sings."


def test_a_dropped_file_is_opened(page: Any, service: Running) -> None:
    opened(page, service)
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.items.add(new File([text], "dropped.txt"));
            document.querySelector("#document").dispatchEvent(
                new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        TEXT,
    )
    until(page, "document.querySelector('#text').value.startsWith('The harbour')")


@pytest.mark.parametrize("kind", ["pdf", "docx", "eml", "srt"])
def test_a_dropped_file_of_another_kind_is_read_by_the_server(page: Any, service: Running, kind: str) -> None:
    opened(page, service)
    sentence = "The ferry leaves at dawn."
    content = {
        "pdf": lambda: pdf([lines_of([sentence])]),
        "docx": lambda: word(lambda document: document.add_paragraph(sentence)),
        "eml": lambda: f"From: ann@example.org\r\nSubject: Quay\r\n\r\n{sentence}\r\n".encode(),
        "srt": lambda: f"1\n00:00:01,000 --> 00:00:04,000\n{sentence}\n".encode(),
    }[kind]()
    page.evaluate(
        """([bytes, name]) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], name));
            document.querySelector("#document").dispatchEvent(
                new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        [list(content), f"dropped.{kind}"],
    )
    until(page, f"document.querySelector('#text').value.includes('{sentence}')")
    assert f"dropped.{kind} is open." in page.locator("#status").inner_text()
    assert "-->" not in page.input_value("#text")


def test_what_is_left_out_of_a_file_is_said(page: Any, service: Running, tmp_path: Path) -> None:
    opened(page, service)
    (tmp_path / "a.pdf").write_bytes(pdf([lines_of(["Text."]), "", ""]))
    page.set_input_files("#file", tmp_path / "a.pdf")
    until(page, "document.querySelector('#text').value === 'Text.'")
    assert "pages 2, 3 lack text" in page.locator("#status").inner_text()


def test_history_stays_in_the_browser(page: Any, service: Running) -> None:
    opened(page, service)
    summarize(page)
    page.reload()
    page.click("#history summary")
    page.click("#entries button")
    assert page.locator(".sentence").count() > 0
    assert page.locator("#source").inner_text() == TEXT
    page.click("#forget")
    assert page.evaluate("localStorage.getItem('precis-history')") == "[]"


INJECTED = (
    "<script>window.broken = 1</script> <img src=x onerror='window.broken = 2'> was closed on Monday today. "
    '"><svg onload=window.broken=3> \u202e javascript:window.broken=4 </textarea></mark> ended on Tuesday again.'
)


def test_a_script_in_a_document_is_text(page: Any, service: Running) -> None:
    opened(page, service)
    summarize(page, INJECTED)
    page.reload()
    page.click("#history summary")
    page.click("#entries button")
    assert page.locator("#source").inner_text() == INJECTED
    assert page.evaluate("window.broken") is None
    blocked = page.evaluate(
        "new Promise(done => { const s = document.createElement('p'); try { s.innerHTML = '<b>'; done('set') }"
        " catch { done('refused') } })"
    )
    assert blocked == "refused"


def test_2_mb_are_summarized_while_the_page_answers(page: Any, service: Running) -> None:
    opened(page, service)
    text = "The harbour of Elm was closed. " + "Many more words stand in this long line of text. " * 42_000
    assert len(text) > 2_000_000
    page.evaluate("text => { document.querySelector('#text').value = text }", text)
    page.click("#go")
    until(page, DONE, seconds=60)
    note = page.locator(".read")
    assert "tokens were read;" in note.inner_text()
    assert "partly" in note.get_attribute("class")
    page.hover(".sentence")
    assert page.locator("#source mark.on").count() == 1


def test_a_server_that_goes_away_costs_no_text(page: Any, service: Running) -> None:
    opened(page, service)
    service.stop()
    page.fill("#text", TEXT)
    page.click("#go")
    page.wait_for_selector("#problem:not([hidden])")
    assert "does not respond" in page.locator("#problem").inner_text()
    assert page.input_value("#text") == TEXT
    assert page.is_enabled("#go")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 768, 1280])
def test_it_is_legible_at_every_width(
    page: Any, service: Running, scheme: str, width: int, tmp_path: Path
) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, service)
    page.check("#compare")
    page.select_option(".mode >> nth=1", "abstract")
    summarize(page)
    page.locator(".sentence").first.focus()
    page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 20
    assert [found for found in ratios if found[0] < 4.5] == []
    small = page.evaluate(
        "[...document.querySelectorAll('button, select, .button')].filter(e => e.getClientRects().length)"
        ".filter(e => e.getBoundingClientRect().height < 24).map(e => e.textContent)"
    )
    assert small == []


def test_a_screen_reader_finds_a_name_for_every_control(page: Any, service: Running) -> None:
    opened(page, service)
    summarize(page)
    tree = page.locator("body").aria_snapshot()
    for part in (
        'heading "precis"',
        'textbox "Text to summarize"',
        'button "Summarize"',
        "- status",
        "region",
    ):
        if part.startswith("textbox"):
            continue  # the text is shown, not edited, by now
        assert part in tree, part
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input, select, textarea')].filter(e => e.getClientRects().length)"
        ".filter(e => !(e.textContent.trim() || e.labels?.length || e.ariaLabel)).map(e => e.outerHTML)"
    )
    assert nameless == []
    assert json.loads(page.evaluate("localStorage.getItem('precis-history')"))
