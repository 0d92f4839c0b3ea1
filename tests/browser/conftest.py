"""The page in a real Chromium, before a service of a tiny model or of invented summaries."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

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
def chromium() -> Iterator:
    """A browser."""
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing: apt-get install chromium, or set CHROMIUM to its path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium) -> Iterator:
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

    def make(texts, ask, on_progress, on_partial):
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
