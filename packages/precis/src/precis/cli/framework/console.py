"""Console output: results go to standard output, messages to standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from precis_text.errors import UserError
from precis_text.terminal_text import escape_controls, escape_line, json_for_terminal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.progress import Progress, TaskID
    from rich.segment import Segment

    from precis.phases.search.grid_search import Searched
    from precis.phases.train.seed_runs import SeedRuns
    from precis.phases.use.input_documents import Document
    from precis.phases.use.summarization import Result
    from precis.training import Trained


def note(text: str) -> None:
    """Print a message, which is not a result, to standard error."""
    print(escape_line(text), file=sys.stderr, flush=True)


def leave_unfinished(*, is_main: bool, restart: bool) -> NoReturn:
    """End a command whose run was interrupted, and explain how to resume it."""
    if is_main:
        note(f"repeat the command{' without --restart' if restart else ''} to resume")
    raise typer.Exit(130)


def finish(done: Trained, *, restart: bool, commands: Sequence[str]) -> None:
    """End a training: print its closing summary and the most useful next `commands`, or how to resume it."""
    made = done.model or done.adapter
    if made is None:
        leave_unfinished(is_main=done.is_main, restart=restart)
    if done.is_main:
        from precis.phases.train.training_session import closing_lines

        kind = "adapter" if done.model is None else "model"
        print(*closing_lines(made, kind=kind, done=done, commands=commands), sep="\n")


def finish_search(done: Searched, *, restart: bool, commands: Sequence[str]) -> None:
    """End a search: print its tables, its closing summary and the next `commands`, or how to resume it."""
    from precis.phases.train.training_session import closing_lines

    for table in done.tables():
        show(table)
    if done.model is None:
        leave_unfinished(is_main=True, restart=restart)
    print(f"written: {done.folder}/search.json")
    print(*closing_lines(done.model, kind=done.model.name, commands=commands), sep="\n")


def finish_seeds(done: SeedRuns, *, restart: bool, commands: Sequence[str]) -> None:
    """End a training with several seeds: print the table of its runs and the next `commands`, or how to resume it."""
    from precis.phases.train.training_session import closing_lines

    if done.interrupted:
        leave_unfinished(is_main=True, restart=restart)
    show(done.table())
    print(*closing_lines(done.folder, kind="runs", commands=commands), sep="\n")


def writes_unicode() -> bool:
    """Return whether standard output accepts every character; otherwise JSON is escaped."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def refuse_terminal(advice: str) -> None:
    """Raise `UserError` if standard input is a terminal: users do not type documents."""
    if sys.stdin is not None and sys.stdin.isatty():
        raise UserError(advice)


def show(renderable: Any) -> None:
    """Print a Rich table to standard output; 120 columns wide if that is not a terminal."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(Shown(renderable))


class Shown:
    """A Rich renderable that shows the control characters of another one's texts."""

    def __init__(self, renderable: Any) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the segments of the other renderable; only Rich's own control codes stay."""
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else segment._replace(text=escape_controls(segment.text))


FIRST_LINE, LAST_LINE = 30.0, 600.0
"""Seconds between the lines about work without a terminal: the first pause, which doubles, and the longest."""


class ProgressLine(AbstractContextManager["ProgressLine"]):
    """A progress bar on standard error that can be hidden while printing.

    Call it with a description, the amount done and the total, 0 if unknown; call `pause()` before printing. Without a
    terminal it prints a line after 30 seconds, after a minute more, and so on, at least every ten minutes.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._clock = clock
        self._pause = FIRST_LINE
        self._next_line = clock() + FIRST_LINE

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show the bar, or update it; without a terminal, print a line if it is time for one."""
        if sys.stderr is None:
            return
        if not sys.stderr.isatty():
            self._print_if_due(f"{what} ({done:,} of {total:,})" if total else what)
            return
        what = escape_line(what)
        if self._progress is None:
            self._begin(what, total)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=what, completed=done, total=total or None)

    def pause(self) -> None:
        """Hide the bar until the next call."""
        if self._progress is not None:
            self._progress.stop()
        self._progress = self._task = None

    def note(self, text: str) -> None:
        """Hide the bar and print a message."""
        self.pause()
        note(text)

    def _print_if_due(self, line: str) -> None:
        now = self._clock()
        if now < self._next_line:
            return
        note(line)
        self._pause = min(2 * self._pause, LAST_LINE)
        self._next_line = now + self._pause

    def _begin(self, what: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        # without redirection: Rich would wrap the summaries printed meanwhile
        self._progress = Progress(
            console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._task = self._progress.add_task(what, total=total or None)
        self._progress.start()

    def __exit__(self, *_: object) -> None:
        self.pause()


class Screen(AbstractContextManager["Screen"]):
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

    def __exit__(self, *_: object) -> None:
        return None

    def left(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Return all documents: none is done yet."""
        return documents

    def append(self, result: Result) -> None:
        """Show a result."""
        from precis.phases.use.summary_format import describe_result, support_text

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
            note(describe_result(result, max_source=self._max_source))
            print(support_text(result.to_dict()), end="", flush=True)
            return
        note(describe_result(result, max_source=self._max_source))
        if result.problem or result.summary is None:
            return
        named = not self._alone and not (
            sys.stdout.isatty() and sys.stderr.isatty()
        )  # else the note names it
        text = f"{result.summary.text}\n{support_text(result.to_dict())}"
        print(
            f"{escape_line(result.document.name)}\n" * named + text.removesuffix("\n" * self._alone),
            flush=True,
        )

    def finish(self) -> None:
        """Do nothing: all results are shown."""
