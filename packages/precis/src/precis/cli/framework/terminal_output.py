"""The terminal output of `precis summarize`: summaries, and notes about them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from precis_text.terminal_text import json_for_terminal, shown_in_a_line

if TYPE_CHECKING:
    from precis.phases.use.input_documents import Document
    from precis.phases.use.summarization import Result


class Screen:
    """A sink that prints summaries to standard output, and notes about them to standard error."""

    def __init__(self, *, alone: bool, json_lines: bool, max_source: int | None) -> None:
        self._alone, self._json_lines, self._max_source = alone, json_lines, max_source
        self.done = self.failed = 0
        self.first_failure = ""
        self.begun = ""

    @property
    def streams(self) -> bool:
        """True if the summary of the only document is shown on a terminal while the model writes it."""
        return self._alone and not self._json_lines and sys.stdout.isatty()

    def begin(self, beginning: str) -> None:
        """Show the first sentences of the summary."""
        print(beginning.removeprefix(self.begun), end="", flush=True)
        self.begun = beginning

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def left(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Return all documents: none is done yet."""
        return documents

    def append(self, result: Result) -> None:
        """Show a result."""
        from precis.cli.framework.console import note, writes_unicode
        from precis.phases.use.summary_format import support_text, told

        self.done += 1
        if result.problem:
            self.first_failure = self.first_failure or f"{result.document.name}: {result.problem}"
            self.failed += 1
        if self._json_lines:
            line = json.dumps(result.to_dict(), ensure_ascii=not writes_unicode())
            print(json_for_terminal(line), flush=True)
            return
        if self.begun:
            whole = "" if result.summary is None else result.summary.text
            goes_on = whole.startswith(self.begun)
            print(whole.removeprefix(self.begun) if goes_on else f"\n{whole}", flush=True)
            note(told(result, max_source=self._max_source))
            print(support_text(result.to_dict()), end="", flush=True)
            return
        note(told(result, max_source=self._max_source))
        if result.problem or result.summary is None:
            return
        named = not self._alone and not (
            sys.stdout.isatty() and sys.stderr.isatty()
        )  # else the note names it
        text = f"{result.summary.text}\n{support_text(result.to_dict())}"
        print(
            f"{shown_in_a_line(result.document.name)}\n" * named + text.removesuffix("\n" * self._alone),
            flush=True,
        )

    def finish(self) -> None:
        """Do nothing: all results are shown."""
