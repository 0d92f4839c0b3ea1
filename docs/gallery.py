"""Make the pictures of the gallery with the commands that its page shows: `make pictures`.

    commands of PICTURES, in a temporary folder, at toy size -> docs/gallery/NAME.png -> docs/gallery.md

Pictures of pages need playwright and Chromium (CHROMIUM names its path). It takes ten minutes on two cores, and the
result is committed. `--check` (`make pictures CHECK=1`) writes nothing. It names the pictures that look different when
they are made again (`docs/likeness.py`). `--only NAME` makes one picture and runs only the commands that it needs.
`--keep FOLDER` keeps the commands' output; finished commands are not repeated there.
"""

from __future__ import annotations

import argparse
import base64
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from docs.likeness import difference  # noqa: E402  the repository is no package

PLACE = ROOT / "docs" / "gallery"
_REPORT = ROOT / "examples" / "documents" / "report.txt"
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]

SETUP = (
    "precis data synthetic --out pairs --train 600 --dev 20 --test 40 --seed 1",
    "precis finetune --data pairs --recipe zcodepp-demo --steps 500 --batch-tokens 1500 --set train.validate_every=50 "
    "--out runs/first",
    "precis tune --model runs/first --data pairs --method hierblock --lr 0.003 --set prefix.length=10 --steps 200 "
    "--out runs/prefix",
)


@dataclass(frozen=True)
class Picture:
    """A picture of the gallery.

    Attributes:
        about: its subject, and the page of the guide about it.
        commands: the commands that make it, after `SETUP`.
        made: the file that the commands write; empty for a page in the browser.
        after: the pictures whose commands come before.
        trains: whether the commands of `SETUP` come before.
    """

    name: str
    title: str
    about: str
    commands: tuple[str, ...] = ()
    made: str = ""
    after: tuple[str, ...] = ()
    trains: bool = True


def _scored(share: int) -> tuple[str, str]:
    tune = (
        f"precis tune --model runs/first --data pairs --method prefix --lr 0.003 --set prefix.length=10 --share "
        f"{share / 100:g} --steps 60 --out runs/share-{share}"
    )
    return (
        tune,
        f"precis evaluate --model runs/share-{share} --data pairs --out runs/share-{share}/evaluation",
    )


PICTURES = (
    Picture(
        "curves",
        "A training run",
        "Every run folder contains `curves.png`, redrawn after each validation; see "
        "[finetune.md](guide/finetune.md). The ring marks the validation whose weights were kept.",
        made="runs/first/curves.png",
    ),
    Picture(
        "pretraining",
        "A pre-training run",
        "The same file from `precis pretrain`: both objectives of Z-Code++ and their parts; see "
        "[pretrain.md](guide/pretrain.md).",
        (
            "precis data pack texts --out packs/texts --vocab-size 3000",
            "precis pretrain --corpus packs/texts --recipe zcodepp-micro --block-length 128 --batch-size 8 "
            "--steps 200 --set train.validate_every=50 --out runs/pretrain",
        ),
        "runs/pretrain/curves.png",
    ),
    Picture(
        "tokens",
        "Attention over the tokens of one document",
        "With a single document the axes name its tokens; see [probe.md](guide/probe.md).",
        (
            "precis probe attention --model runs/first --data pairs --rows 1 --max-source 60 --max-target 40 "
            "--out tokens",
        ),
        "tokens/attention-cross.png",
    ),
    Picture(
        "prefix",
        "Attention over prefix and document",
        "The mean over twenty documents. Columns left of the white line belong to the prefix.",
        (
            "precis probe attention --model runs/first --adapter runs/prefix --data pairs --rows 20 --out probe",
        ),
        "probe/attention-encoder.png",
    ),
    Picture(
        "prefix-share",
        "How much attention a prefix gets",
        "From the same command, for each layer and each of the three attentions.",
        made="probe/prefix-share.png",
        after=("prefix",),
    ),
    Picture(
        "spectrum",
        "The spectrum of a prefix",
        "Cumulative singular values of the attention on the prefix, largest first.",
        (
            "precis probe spectrum --model runs/first --adapter runs/prefix --data pairs --rows 20 --out spectrum",
        ),
        "spectrum/spectrum.png",
    ),
    Picture(
        "shares",
        "Scores over the share of the data",
        "Runs with 5%, 20% and all of the pairs. Bars are bootstrap intervals over documents.",
        (
            *_scored(5),
            *_scored(20),
            *_scored(100),
            "precis probe curves runs/share-5 runs/share-20 runs/share-100 --by share --metric rouge1 --metric rougeL "
            "--out shares",
        ),
        "shares/curves.png",
    ),
    Picture(
        "service",
        "The page of `precis serve`",
        "A summary next to its source; each sentence shows its source passages. See [serve.md](guide/serve.md).",
        trains=False,
    ),
    Picture(
        "judging",
        "A page for judges",
        "Two anonymous summaries, and a verdict for each criterion. See [judge.md](guide/judge.md).",
        (
            "precis evaluate --model runs/first --data pairs --out scores",
            "precis judge new --predictions scores --data pairs --reference --judge Ann --judge Ben --judge Cleo "
            "--out study",
        ),
    ),
    Picture(
        "verdicts",
        "The report of a study",
        "From `precis judge report study`. The verdicts are random; no person judged these summaries.",
        after=("judging",),
    ),
)


def page() -> str:
    """Return the page: each picture below the commands that make it."""
    parts = [
        "# Gallery",
        "Plots and pages that precis makes, each with its commands, from tiny models and invented texts. "
        "`make pictures` makes all of them again. These commands come first:",
        _block(SETUP),
    ]
    for one in PICTURES:
        parts += [f"## {one.title}", one.about]
        parts += [_block(one.commands)] if one.commands else []
        parts.append(f"![{one.title.replace('`', '')}](gallery/{one.name}.png)")
    return "\n\n".join(parts) + "\n"


def _block(commands: tuple[str, ...]) -> str:
    return "\n".join(f"    {command}" for command in commands)


def run(command: str, folder: Path) -> None:
    """Run a command in the folder, unless it was run there before."""
    done = folder / "done.txt"
    if done.exists() and command in done.read_text(encoding="utf-8").splitlines():
        return
    print(command, flush=True)
    words = [sys.executable, "-m", *shlex.split(command)]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with done.open("a", encoding="utf-8") as file:
        file.write(command + "\n")


def _letters() -> str:
    """Return style sheets with the letters that matplotlib brings, so that machines draw the same pages."""
    from matplotlib import font_manager

    faces = []
    for name, kind in (("Serif", "serif"), ("Sans", "sans")):
        for weight in ("normal", "bold"):
            file = Path(font_manager.findfont(f"DejaVu {name}:weight={weight}", fallback_to_default=False))
            data = base64.b64encode(file.read_bytes()).decode()
            source = f"src: url(data:font/ttf;base64,{data})"
            faces.append(f"@font-face {{ font-family: gallery-{kind}; font-weight: {weight}; {source} }}")
    ours = ":root { --text: gallery-serif !important; --ui: gallery-sans !important }"
    return "\n".join([*faces, ours, "body { font-family: gallery-sans !important }"])


def visit(shown: Any, address: str) -> None:
    """Open an address with our letters."""
    shown.goto(address)
    shown.add_style_tag(content=_letters())


@contextmanager
def browser() -> Iterator[Any]:
    """Open a page of Chromium, in the size of the pictures."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        opened = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield opened.new_page(viewport={"width": 1200, "height": 800}, color_scheme="light", bypass_csp=True)
        opened.close()


@contextmanager
def served(command: str, folder: Path) -> Iterator[str]:
    """Run a command that prints where it answers; give the first address."""
    process = subprocess.Popen(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            address = next((word for word in line.split() if word.startswith("http://")), None)
            if address is not None:
                yield address
                return
        raise RuntimeError(f"{command}: names no address")
    finally:
        process.terminate()
        process.wait()


def service(folder: Path, image: Path) -> None:
    """Draw the page of `precis serve` with a summary and the passage of its second sentence."""
    with served("precis serve --port 8931", folder) as address, browser() as shown:
        visit(shown, address)
        shown.fill("#text", _REPORT.read_text(encoding="utf-8"))
        shown.click("#go")
        shown.wait_for_selector("#source mark", timeout=120_000)
        shown.locator(".sentence").nth(1).click()
        shown.wait_for_timeout(500)
        shown.screenshot(path=image)


def judging(folder: Path, image: Path) -> None:
    """Draw a judge's first page."""
    with served("precis judge serve study --port 8932", folder) as address, browser() as shown:
        visit(shown, address)
        shown.wait_for_timeout(1500)
        shown.screenshot(path=image)


def verdicts(folder: Path, image: Path) -> None:
    """Draw the report of random verdicts with unequal odds."""
    from precis_judge.judging_study import open_study
    from precis_judge.verdicts import VerdictStore

    rng, study = random.Random(0), open_study(folder / "study")
    with VerdictStore.opened(study) as store:
        for judge, pages in study.layout.pages.items():
            for number, shown_page in enumerate(pages):
                sides = ("left", "right") if shown_page.first_left else ("right", "left")
                choices = {key: rng.choices((*sides, "same"), (3, 5, 2))[0] for key in study.protocol.keys}
                store.add({"judge": judge, "page": number, "choices": choices, "reasons": {}, "seconds": 30})
    run("precis judge report study", folder)
    with browser() as shown:
        visit(shown, (folder / "study" / "report.html").as_uri())
        shown.screenshot(path=image)


_PAGES: dict[str, Callable[[Path, Path], None]] = {
    "service": service,
    "judging": judging,
    "verdicts": verdicts,
}


def make(folder: Path, only: set[str]) -> dict[str, Path]:
    """Run the commands of all pictures, or of these; return the file of each picture."""
    from precis.data.synthetic.corpus import make_pairs

    wanted = [one for one in PICTURES if not only or one.name in only]
    needed = {one.name for one in wanted} | {name for one in wanted for name in one.after}
    (folder / "texts").mkdir(exist_ok=True)
    for number, pair in enumerate(make_pairs(1500, seed=2)):
        (folder / "texts" / f"{number}.txt").write_text(pair.document, encoding="utf-8")
    for command in SETUP if any(one.trains for one in wanted) else ():
        run(command, folder)
    files = {}
    for one in PICTURES:
        for command in one.commands if one.name in needed else ():
            run(command, folder)
        if one in wanted:
            files[one.name] = folder / (one.made or f"{one.name}.png")
            if one.name in _PAGES:
                _PAGES[one.name](folder, files[one.name])
    return files


def check(files: dict[str, Path]) -> int:
    """Print the pictures that look different from those in the repository; the exit code is 1 if there are any."""
    found = {name: difference(file, PLACE / f"{name}.png") for name, file in files.items()}
    for name, what in found.items():
        print(f"{name}: {what or 'as in the repository'}")
    stale = [name for name, what in found.items() if what]
    if stale:
        print("make pictures draws them again; look at them, and commit them")
    if page() != (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"):
        print("docs/gallery.md: differs from docs/gallery.py; make pictures writes it")
        return 1
    return int(bool(stale))


def main() -> int:
    """Make the pictures and the page, or check them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=[one.name for one in PICTURES],
        metavar="NAME",
        help="one picture; repeatable",
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing to the repository")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the commands run")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = make(folder.resolve(), set(given.only))
        if given.check:
            return check(files)
        PLACE.mkdir(exist_ok=True)
        for name, file in files.items():
            shutil.copyfile(file, PLACE / f"{name}.png")
    finally:
        if given.keep is None:
            shutil.rmtree(folder)
    (ROOT / "docs" / "gallery.md").write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
