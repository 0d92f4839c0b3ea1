"""Build the site of the documentation, without a network: `python docs/build.py [--pages]`.

    docs/, README.md, examples/*.ipynb and others -> build/pages, links turned -> zensical, strict -> build/site

A link to a page of the site leads there. A link to another file of the repository becomes its name, since the site does
not hold it. A link to nothing is an error. `--pages` writes only the pages.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
_ELSEWHERE = {
    "README.md": "index.md",
    "packages/precis-model-small/README.md": "model.md",
    "ARCHITECTURE.md": "architecture.md",
    "PAPERS.md": "papers.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^()\s]+)\)")
_PICTURE = re.compile(r"(!\[[^\]]*\])\(([^()\s:]+)\)")
_STYLE = """\
:root { --md-text-font: system-ui, sans-serif; --md-code-font: ui-monospace, monospace; }
.md-typeset table:not([class]) { font-size: 0.68rem; line-height: 1.4; }
.md-typeset table:not([class]) th, .md-typeset table:not([class]) td { min-width: 0; padding: 0.3em 0.6em; }
.md-header__source:not(:has(*)) { display: none; }
"""


class BrokenLinkError(Exception):
    """A page links to a file that is not there."""


def sources() -> dict[Path, str]:
    """Return each Markdown file of the site with its place there."""
    found = {ROOT / name: place for name, place in _ELSEWHERE.items()}
    for file in sorted((ROOT / "docs").rglob("*.md")):
        found[file] = file.relative_to(ROOT / "docs").as_posix()
    return found


def notebooks() -> dict[Path, str]:
    """Return each notebook with its place on the site."""
    return {file: f"notebooks/{file.stem}.md" for file in sorted((ROOT / "examples").glob("*.ipynb"))}


def from_notebook(file: Path) -> str:
    """Return a notebook as a page: its texts and, as code, its cells."""
    parts = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    parts.insert(1, f"The notebook itself is `{file.relative_to(ROOT).as_posix()}`.")
    return "\n\n".join(parts) + "\n"


def turned(text: str, file: Path, places: dict[Path, str]) -> str:
    """Return the page with its links as they are on the site.

    Raises:
        BrokenLinkError: it links to a file that is not there.
    """

    def turn(match: re.Match[str]) -> str:
        words, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return match.group()
        named = (file.parent / path).resolve()
        if named.is_dir() and (named / "README.md") in places:
            named = named / "README.md"
        if named in places:
            here = os.path.relpath(places[named], Path(places[file]).parent)
            return f"[{words}]({Path(here).as_posix()}{hash_}{anchor})"
        if not named.exists():
            raise BrokenLinkError(f"{file.relative_to(ROOT)}: links to {target}, which is not there")
        return f"{words} (`{named.relative_to(ROOT).as_posix()}`)"

    def show(match: re.Match[str]) -> str:
        words, target = match.groups()
        image = (file.parent / target).resolve()
        if not image.is_file():
            raise BrokenLinkError(f"{file.relative_to(ROOT)}: shows {target}, which is not there")
        here = os.path.relpath(image.relative_to(ROOT / "docs"), Path(places[file]).parent)
        return f"{words}({Path(here).as_posix()})"

    return _LINK.sub(turn, _PICTURE.sub(show, text))


def api() -> str:
    """Return the page of the public names, each with its docstring."""
    from precis import homes

    names = [f"::: {module}.{name}" for name, module in homes().items()]
    intro = "# The public names\n\nEach is imported from `precis`. The guide shows them at work.\n"
    return "\n\n".join([intro, *names]) + "\n"


def write_pages() -> None:
    """Write all pages to `build/pages`."""
    shutil.rmtree(PAGES, ignore_errors=True)
    places = sources() | notebooks()
    for file, place in sources().items():
        page = PAGES / place
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(turned(file.read_text(encoding="utf-8"), file, places), encoding="utf-8")
    (PAGES / "notebooks").mkdir()
    for file, place in notebooks().items():
        (PAGES / place).write_text(from_notebook(file), encoding="utf-8")
    for image in (ROOT / "docs").rglob("*.png"):
        copied = PAGES / image.relative_to(ROOT / "docs")
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(image, copied)
    (PAGES / "api.md").write_text(api(), encoding="utf-8")
    (PAGES / "site.css").write_text(_STYLE, encoding="utf-8")


def main() -> int:
    """Build, and return zensical's exit code."""
    try:
        write_pages()
    except BrokenLinkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if "--pages" in sys.argv[1:]:
        return 0
    zensical = shutil.which("zensical") or str(Path(sys.executable).with_name("zensical"))
    return subprocess.run([zensical, "build", "--clean", "--strict"], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
