"""Run precis on files on which programs of this kind go wrong, and compare what comes out with what is expected.

    python -m benchmarks.documents [--cases FOLDER] [--only TEXT]

`cases.toml` has the expectations for the files of a folder, `../shared/cases` unless --cases names another; without
that folder they are skipped, and the command says so. `made.toml` has counterparts of our own with their contents.
Each case is a line: "as expected", or "not" with the reason. The exit code is 1 if any is not as expected.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_USUAL = Path("../shared/cases")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file, a command, and what it should give; `cases.toml` explains the fields."""

    file: str
    options: str = "--words 500"
    command: str = "summarize"
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    most_words: int | None = None
    exit: int = 0
    refusal: str = ""
    content: str | None = None
    encoding: str = "utf-8"

    @classmethod
    def of(cls, table: dict[str, Any]) -> Case:
        """Build a case from a table.

        Raises:
            ValueError: it has an unknown field.
        """
        known = {field.name for field in fields(cls)}
        if unknown := table.keys() - known:
            raise ValueError(
                f"{table.get('file')}: unknown field {sorted(unknown)[0]!r}; known: {sorted(known)}"
            )
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
        }
        return cls(**values)


@dataclass(frozen=True)
class Result:
    """The exit code, the output and the messages of a command."""

    code: int
    out: str
    err: str


def cases_of(file: Path) -> list[Case]:
    """Return the cases of a TOML file."""
    return [Case.of(table) for table in tomllib.loads(file.read_text())["case"]]


def problem(case: Case, found: Result) -> str:
    """Return how a result differs from what is expected; empty if it does not."""
    out, err = _solid(found.out), _solid(found.err)
    if case.refusal and found.code == 2:
        return "" if case.refusal in err else f"refused without {case.refusal!r}: {err[-200:]}"
    if found.code != case.exit:
        return f"exit code {found.code}, not {case.exit}: {err[-200:]}"
    if missing := [text for text in case.has if _solid(text) not in out]:
        return f"lacks {missing[0]!r}: {out[:200]}"
    if wrong := [text for text in case.lacks if text in out]:
        return f"has {wrong[0]!r}"
    if unsaid := [text for text in case.says if text not in err]:
        return f"does not say {unsaid[0]!r}: {err[-200:]}"
    places = [out.find(text) for text in case.order]
    if -1 in places or places != sorted(places):
        return f"not in the order {', '.join(case.order)}: {out[:200]}"
    if case.most_words is not None and len(out.split()) > case.most_words:
        return f"{len(out.split())} words, above {case.most_words}"
    return ""


def run(case: Case) -> Result:
    """Run the command of a case in the current folder."""
    if case.command == "serve":
        return _asked(Path(case.file).read_bytes())
    options = case.options.split() if case.command == "summarize" else []
    return _called([*case.command.split(), case.file, *options])


def _called(arguments: list[str]) -> Result:
    """Run `precis` in this process, which spares the imports of each case."""
    from precis.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return Result(code, out.getvalue(), err.getvalue())


@cache
def _service() -> Any:
    from fastapi.testclient import TestClient

    from precis.cli.framework.options import model_to_use
    from precis.server.asgi_app import make_app
    from precis.server.limits import Limits
    from precis.server.middleware import Access
    from precis.server.model_pool import ModelPool
    from precis.server.served_model import ServedModel

    models = ModelPool.of(ServedModel.load(model_to_use(None, None), name="default"))
    client = TestClient(make_app(models, limits=Limits(), access=Access()), base_url="http://127.0.0.1")
    return client.__enter__()


def _asked(body: bytes) -> Result:
    """Send a body to /v1/chat/completions of a service with the default model; a refusal has the exit code 2."""
    answer = _service().post(
        "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
    )
    if answer.status_code != 200:
        return Result(2, "", answer.text)
    return Result(0, answer.json()["choices"][0]["message"]["content"], "")


def _solid(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _all_cases(folder: Path, only: str) -> Iterator[tuple[str, Case, Path]]:
    """Yield each case with its name and its folder."""
    if folder.is_dir():
        for case in cases_of(_HERE / "cases.toml"):
            yield case.file, case, folder.resolve()
    elif not only:
        print(f"{folder}: no such folder, so its cases are skipped; --cases FOLDER names another")
    with tempfile.TemporaryDirectory() as made:
        for case in cases_of(_HERE / "made.toml"):
            assert case.content is not None
            (Path(made) / case.file).write_bytes(case.content.encode(case.encoding))
            yield f"made: {case.file}", case, Path(made)


def main() -> int:
    """Run all cases; return 1 if one is not as expected."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, default=_USUAL, help="the folder of the cases in cases.toml")
    parser.add_argument("--only", default="", help="run only cases whose name contains this text")
    chosen = parser.parse_args()
    home, count, wrong = Path.cwd(), 0, 0
    for name, case, folder in _all_cases(chosen.cases, chosen.only):
        if chosen.only not in name:
            continue
        os.chdir(folder)
        try:
            why = problem(case, run(case))
        finally:
            os.chdir(home)
        count, wrong = count + 1, wrong + bool(why)
        print(f"{name}: {f'not: {why}' if why else 'as expected'}", flush=True)
    print(f"{count - wrong} of {count} as expected")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
