"""The table of command lines that nobody can mean, the folder that they run in, and what is asked of each answer."""

import contextlib
import io
import json
import os
import pickle
import shlex
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precis.cli import main
from tests.tiny_models import our_tokenizer, save

TABLE = Path(__file__).with_name("wrong_command_lines.txt")
SPECIAL = {
    "{long}": "x" * 5000,
    "{esc}": "\x1b[31mred",  # colours the terminal, if it gets there
    "{bytes}": os.fsdecode(b"\xff"),
    "{emoji}": "\N{SNOWMAN}",
}
LONGEST = 320  # characters of a useful line
SECONDS = 20  # of one command; a right answer comes before there is any work
_NOBODY = 65534


@dataclass(frozen=True)
class WrongLine:
    """A row of the table: what follows `precis`, and what the answer must hold."""

    number: int
    text: str
    wanted: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        return [_special(word) for word in shlex.split(self.text)]

    @property
    def as_nobody(self) -> bool:
        """Whether it is about rights, of which an administrator has all."""
        return any(name in self.text for name in ("secret", "locked", "private"))


def wrong_lines() -> list[WrongLine]:
    """The table's rows."""
    rows = []
    for number, row in enumerate(TABLE.read_text().splitlines(), start=1):
        if row and not row.startswith("#"):
            text, _, wanted = row.partition(" => ")
            rows.append(WrongLine(number, text, tuple(_special(word) for word in wanted.split(" | "))))
    return rows


@contextlib.contextmanager
def wrong_place() -> Iterator[Path]:
    """A folder with something of every kind, where every user may look, and in it the process."""
    top = Path(tempfile.mkdtemp(prefix="precis-wrong-"))
    top.chmod(0o755)
    folder, words, pack = top / "work", top / "words", top / "packed"
    (top / "long.txt").write_text("Ann sings in the hall. Bob listens to her.\n" * 40)
    our_tokenizer().save_pretrained(words)
    packed = ["data", "pack", str(top / "long.txt"), "--tokenizer", str(words), "--out", str(pack)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main([*packed, "--workers", "1", "--dev-share", "0"]) == 0
        models = save("zcodepp", top / "zcodepp"), save("bart", top / "other")
    folder.mkdir()
    _fill(folder, model=models[0], other=models[1], pack=pack)
    folder.chmod(0o777)
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        for name in ("private", "locked"):
            (folder / name).chmod(0o755)
        shutil.rmtree(top)


def _fill(folder: Path, *, model: Path, other: Path, pack: Path) -> None:
    """`model` is one of ours, `other` a BART; both are linked to, and so is the pack."""
    for name, place in {"model": model, "bart": other, "pack": pack}.items():
        (folder / name).symlink_to(place, target_is_directory=True)
    for name in (
        "bare",
        "thesis",
        "pairs",
        "badconfig",
        "unfinished/checkpoints",
        "locked",
        "private",
        "data",
    ):
        (folder / name).mkdir(parents=True)
    good = {"document": "Ann sings in the hall. Bob listens to her.", "summary": "Ann sings."}
    for place, count in {"pairs/train": 4, "pairs/dev": 3, "pairs/test": 3, "one": 1, "two": 2}.items():  # type: ignore[assignment]
        rows = [
            json.dumps({**good, "document": f"{good['document']} Then {row} more."}) for row in range(count)
        ]
        (folder / f"{place}.jsonl").write_text("\n".join(rows) + "\n")
    texts = {
        "a.txt": good["document"],
        "empty.txt": "",
        "empty.jsonl": "",
        "broken.jsonl": json.dumps(good) + '\n{"document": \n',
        "wrong.jsonl": json.dumps({"article": "Ann sings.", "headline": "Song"}) + "\n",
        "semicolon.csv": "document;summary\nAnn sings.;Song\n",
        "fake.parquet": "no parquet",
        "pairs.xlsx": "no text",
        "short.txt": "one\ntwo\n",
        "thesis/short.txt": "one\n",
        "thesis/thesis.txt": "mine",
        "badconfig/config.json": "{",
        "secret.txt": "mine",
        "secret.jsonl": json.dumps(good),
        "private/config.json": "{}",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    for path in [place for there in (model, other, pack) for place in (there, *there.rglob("*"))]:
        path.chmod(0o755 if path.is_dir() else 0o644)  # for every user
    (folder / "notes.pdf").write_bytes(b"%PDF-1.7\n\0\xff\xfe binary")
    for name in ("weights.pt", "secret.pt"):
        (folder / name).write_bytes(pickle.dumps({"weight": [1.0]}))
    for name, mode in {
        "secret.txt": 0,
        "secret.jsonl": 0,
        "secret.pt": 0,
        "private": 0,
        "locked": 0o555,
    }.items():
        (folder / name).chmod(mode)


def problems_of(line: WrongLine, folder: Path) -> list[str]:
    """Run it in the folder; what is not as it should be: the code, the one line, the words, the untouched folder."""
    before = _contents(folder)
    code, err = _run(line)
    after = _contents(folder)
    _remove(
        folder, {Path(name).parts[0] for name in after.keys() - before.keys()}
    )  # for the lines that follow
    said = [one for one in err.splitlines() if one.startswith("error: ")]
    answer = said[-1] if said else err
    found = {
        f"exit code {code}": code != 2,
        f"{len(said)} lines of error": len(said) != 1 or not err.rstrip().endswith(answer),
        "a traceback": "Traceback" in err,
        "'unexpected'": "unexpected" in answer,
        f"{len(answer)} characters": len(answer) > LONGEST,
        "control characters": any(not character.isprintable() for character in answer),
        **{f"no {word!r}": word not in answer for word in line.wanted},
        "something is written": _without_lock(after) != before,
    }
    return [problem for problem, is_one in found.items() if is_one] + (
        [f"it says: {err}"] if any(found.values()) else []
    )


def _run(line: WrongLine) -> tuple[int, str]:
    err = io.StringIO()
    with (
        contextlib.redirect_stderr(err),
        contextlib.redirect_stdout(io.StringIO()),
        _without_rights(line.as_nobody),
        _limited(SECONDS),
    ):
        code = main(line.words)
    return code, err.getvalue()


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _without_rights(wanted: bool) -> Iterator[None]:
    """As a user who may not do everything, where this is one who may."""
    if not (wanted and os.geteuid() == 0):
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def _contents(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        written = 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns
        found[str(path.relative_to(folder))] = (status.st_size if written else 0, written)
    return found


def _remove(folder: Path, names: set[str]) -> None:
    for name in names:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _without_lock(contents: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """A run takes its folder before it loads a model."""
    return {name: what for name, what in contents.items() if name not in ("out", "out/lock")}


def _special(word: str) -> str:
    for name, value in SPECIAL.items():
        word = word.replace(name, value)
    return word
