"""The one version of all packages: `python tools/version.py` checks and prints it; given a version, it sets it."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+(?:(?:a|b|rc)[0-9]+)?"
_PLACES = (
    re.compile(rf'(?m)^(version = ")({_VERSION})(")'),
    re.compile(rf'(?m)^(__version__ = ")({_VERSION})(")'),
    re.compile(rf"(?m)^(version: )({_VERSION})()$"),
    re.compile(rf'("precis-[a-z-]+(?:\[[a-z,]+\])?==)({_VERSION})(")'),
)


def files() -> list[Path]:
    """Return every file that names the version."""
    projects = [*(ROOT / "packages").glob("*/pyproject.toml"), ROOT / "experiments" / "pyproject.toml"]
    return [
        *sorted(projects),
        ROOT / "packages" / "precis" / "src" / "precis" / "version.py",
        ROOT / "CITATION.cff",
    ]


def named() -> dict[str, list[str]]:
    """Return the versions that each file names."""
    return {
        file.relative_to(ROOT).as_posix(): [
            match.group(2) for place in _PLACES for match in place.finditer(file.read_text(encoding="utf-8"))
        ]
        for file in files()
    }


def write(version: str) -> None:
    """Set the version in every file."""
    for file in files():
        text = file.read_text(encoding="utf-8")
        for place in _PLACES:
            text = place.sub(rf"\g<1>{version}\g<3>", text)
        file.write_text(text, encoding="utf-8")


def main(words: list[str]) -> int:
    """Print the version, or set it; 1 if the files disagree."""
    if words:
        if not re.fullmatch(_VERSION, words[0]):
            print(f"{words[0]} is not a version such as 0.2.0", file=sys.stderr)
            return 2
        write(words[0])
    versions = named()
    distinct = {version for found in versions.values() for version in found}
    if len(distinct) == 1 and all(versions.values()):
        print(distinct.pop())
        return 0
    print("the files name different versions:", file=sys.stderr)
    for file, found in versions.items():
        print(f"  {file}: {', '.join(found) or 'none'}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
