"""Takes the picture of the README: the page of `precis serve` with a document, its summary and its support.

    python docs/picture.py

It needs Chromium (apt-get install chromium) and playwright, and writes docs/images/page.png.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent / "examples" / "documents" / "report.txt"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def main() -> int:
    """Serve, summarize, and take the picture."""
    command = [sys.executable, "-m", "precis", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1120, "height": 700})
                page.goto(address.rstrip("."))
                _summarize(page)
                picture = HERE / "images" / "page.png"
                picture.parent.mkdir(exist_ok=True)
                page.screenshot(path=picture)
                browser.close()
        finally:
            server.terminate()
    return 0


def _summarize(page: Page) -> None:
    page.fill("#text", DOCUMENT.read_text(encoding="utf-8"))
    page.click("#go")
    page.locator(".sentence").nth(1).hover(timeout=60_000)
    page.wait_for_timeout(500)  # colours change slowly


if __name__ == "__main__":
    sys.exit(main())
