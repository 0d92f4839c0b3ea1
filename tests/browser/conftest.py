"""The page in a real Chromium, before a service of a tiny model or of invented summaries."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from precis.server.engine import Ask
from tests.server_of_tests import ByWords

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser."""
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing: apt-get install chromium, or set CHROMIUM to its path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page that fails the test on any error of its script, or on any request to another host."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(20_000)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("http://127.0.0.1", "data:", "blob:"))
            else troubles.append(request.url)
        ),
    )
    yield page
    context.close()
    assert not troubles


@pytest.fixture(scope="session")
def invented() -> SimpleNamespace:
    """A model in both modes: the first sentences, or those with a name and a number that the document lacks."""
    from precis.generation.summarizer import Summary
    from precis_text.units import extraction_units

    def make(texts: Sequence[str], ask: Ask, on_progress: object, on_partial: object) -> list[Summary]:
        made = []
        for text in texts:
            asked = ask.length.options()
            units = extraction_units(text)[: asked["sentences"] or max(1, (asked["words"] or 30) // 10)]
            places, mode = tuple((unit.start, unit.stop) for unit in units), ask.mode
            written = " ".join(unit.text for unit in units)
            if mode == "abstract":
                written, places = f"{units[0].text} The mayor Quillfeather paid 731 crowns.", ()
            words = len(text.split())
            read = min(words, 100_000)
            made.append(
                Summary(
                    text=written,
                    document_tokens=words,
                    tokens_read=read,
                    summary_tokens=9,
                    mode=mode,
                    places=places,
                )
            )
        return made

    return SimpleNamespace(
        make=make, counter=ByWords, name="invented", modes=("extract", "abstract"), languages=()
    )


CONTRAST = """() => {
  const parse = c => { const n = c.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1] };
  const light = c => { const [r, g, b] = c.map(v => {
      v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 });
    return .2126 * r + .7152 * g + .0722 * b };
  const ground = e => { for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor); if (c[3]) return c }
    return [255, 255, 255, 1] };
  const opacity = e => e ? Number(getComputedStyle(e).opacity) * opacity(e.parentElement) : 1;
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || !e.getClientRects().length || e.closest('.skip, .sr')) continue;
    if (e.closest(':disabled, [aria-disabled=true]')) continue;  // which needs no contrast
    const below = ground(e), clear = opacity(e);
    const mixed = parse(getComputedStyle(e).color).map((v, n) => clear * v + (1 - clear) * below[n]);
    const [a, b] = [mixed, below].map(c => light(c.slice(0, 3))).sort((x, y) => y - x);
    found.push([(a + .05) / (b + .05), e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 30)]);
  }
  return found;
}"""

CONTROLS = """() => {
  const all = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  const seen = [...document.querySelectorAll(all)].filter(e => e.checkVisibility() && !e.disabled);
  seen.forEach((e, n) => e.dataset.control = n);
  return seen.map(e => e.outerHTML.slice(0, 60));
}"""
FOCUSED = """() => {
  const own = document.activeElement, shown = own.labels?.length && own.offsetWidth <= 1 ? own.labels[0] : own;
  const style = getComputedStyle(shown);
  return [own.dataset.control, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2];
}"""


@pytest.fixture(scope="session")
def tabbed() -> Callable[[Any], tuple[list[str], list[str]]]:
    """Press Tab through a page; what it never reached, and what it reached without a visible focus."""

    def walk(page: Any) -> tuple[list[str], list[str]]:
        controls = page.evaluate(CONTROLS)
        assert len(controls) > 5
        page.evaluate("document.activeElement.blur()")
        found: dict[int, bool] = {}
        for _ in range(2 * len(controls)):
            page.keyboard.press("Tab")
            number, is_seen = page.evaluate(FOCUSED)
            if number is not None:
                found[int(number)] = is_seen
        missed = [controls[number] for number in range(len(controls)) if number not in found]
        return missed, [controls[number] for number, is_seen in found.items() if not is_seen]

    return walk
