"""How large the code is, and what is in it twice: `python -m tests.house`, which `make check` runs.

It counts lines and modules of `packages/precis` and of all packages (an empty `__init__.py` does not count). It lists
the longest functions, runs of lines that occur twice, and modules of packages and experiments that share a name. Runs
leave out blank lines, comments and imports. It also calls the English check and compares the versions of the packages.
"""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import english

ROOT = Path(__file__).parents[1]
SOURCES = {
    place.name: place / "src" for place in sorted((ROOT / "packages").iterdir()) if (place / "src").is_dir()
}
MOST_LINES = {"precis": 55_522, "all packages": 76_540}  # docs/adr/0022: they only fall, but for a feature
MOST_MODULES = 297  # of packages/precis
LONGEST_FUNCTION = 101
LONGEST_OF_MOST = 25  # lines of nine functions in ten
SHORTEST_RUN = 12


@dataclass(frozen=True)
class Run:
    """Equal lines in two places."""

    lines: int
    first: str
    second: str


def modules(source: Path) -> list[Path]:
    """Return the Python files that are not empty."""
    return [file for file in sorted(source.rglob("*.py")) if file.read_text().strip()]


def functions(file: Path) -> Iterator[tuple[int, str]]:
    """Lines and place of each function."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield length, f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"


def code_lines(file: Path) -> list[tuple[int, str]]:
    """Numbered lines without blanks, comments and imports, without their indentation."""
    text = file.read_text()
    imported = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    return [(n, line) for n, line in numbered if n not in imported and line and not line.startswith("#")]


def runs(files: list[Path], *, shortest: int = SHORTEST_RUN) -> list[Run]:
    """Runs of at least `shortest` equal lines, each pair of places once, as long as they go."""
    lines = {file: code_lines(file) for file in files}
    windows: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for file, found in lines.items():
        texts = [text for _, text in found]
        for start in range(len(texts) - shortest + 1):
            windows[tuple(texts[start : start + shortest])].append((file, start))
    pairs = {
        (first, second)
        for places in windows.values()
        for first in places
        for second in places
        if first < second
    }
    found_runs = []
    for (one, start), (other, begin) in sorted(pairs):
        if ((one, start - 1), (other, begin - 1)) in pairs:
            continue  # the run began before
        length = shortest
        while ((one, start + length - shortest + 1), (other, begin + length - shortest + 1)) in pairs:
            length += 1
        found_runs.append(
            Run(length, _place(one, lines[one][start][0]), _place(other, lines[other][begin][0]))
        )
    return found_runs


def _place(file: Path, line: int) -> str:
    return f"{file.relative_to(ROOT)}:{line}"


def lines_of_code(file: Path) -> int:
    """Lines of a module without those that are blank, a comment or part of a docstring."""
    text = file.read_text()
    told = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and line.strip()[0] != "#" and at not in told for at, line in lines)


def same_names(files: list[Path]) -> list[list[Path]]:
    """Return groups of modules that share a name."""
    named: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        if file.name not in ("__init__.py", "__main__.py"):
            named[file.name].append(file)
    return [group for group in named.values() if len(group) > 1]


def one_version() -> bool:
    """Print the version of all packages; return whether they agree."""
    told = subprocess.run(
        [sys.executable, ROOT / "tools" / "version.py"], capture_output=True, text=True, check=False
    )
    print(f"version {told.stdout.strip()}" if told.returncode == 0 else told.stderr.strip())
    return told.returncode == 0


def main() -> int:
    """Print the figures; 1 if one of them is too large."""
    of_package = {name: modules(source) for name, source in SOURCES.items()}
    files = [file for found in of_package.values() for file in found]
    lines = {
        name: sum(len(file.read_text().splitlines()) for file in found) for name, found in of_package.items()
    }
    lines["all packages"] = sum(lines.values())
    lengths = sorted((each for file in files for each in functions(file)), reverse=True)
    twice, shared = runs(files), same_names([*files, *modules(ROOT / "experiments" / "src")])
    for name, count in lines.items():
        limit = f" (at most {MOST_LINES[name]:,})" if name in MOST_LINES else ""
        print(f"{name}: {count:,} lines{limit}")
    print(f"precis: {len(of_package['precis'])} modules (at most {MOST_MODULES})")
    print(f"{sum(map(lines_of_code, files)):,} lines of code in all packages")
    p90 = sorted(length for length, _ in lengths)[int(0.9 * len(lengths))]
    print(
        f"{len(lengths):,} functions, 90% up to {p90} lines (at most {LONGEST_OF_MOST}); "
        f"the longest (at most {LONGEST_FUNCTION}):"
    )
    for length, place in lengths[:5]:
        print(f"  {length:4} {place}")
    print(f"{len(twice)} runs of {SHORTEST_RUN} lines or more in two places (none)")
    for run in twice:
        print(f"  {run.lines:4} {run.first}  {run.second}")
    print(f"{len(shared)} names that several modules have (none)")
    for group in shared:
        print("  " + "  ".join(str(file.relative_to(ROOT)) for file in group))
    too_large = any(lines[name] > most for name, most in MOST_LINES.items())
    too_long = lengths[0][0] > LONGEST_FUNCTION or p90 > LONGEST_OF_MOST
    too_many = len(of_package["precis"]) > MOST_MODULES
    agree = [english.main([]) == 0, one_version()]
    return int(too_large or too_long or too_many or bool(twice) or bool(shared) or not all(agree))


if __name__ == "__main__":
    sys.exit(main())
