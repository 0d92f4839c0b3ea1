"""How large the code is, and what is in it twice: `python -m tests.house`, which `make check` runs.

Counted is `src/precis`: lines of Python files, modules (a package's empty `__init__.py` is none), the longest
functions, and runs of lines that stand in two places. Blank lines, comments and imports are left out of runs.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "precis"
MOST_LINES = 57_600  # docs/adr/0014
MOST_MODULES = 335
LONGEST_FUNCTION = 110
SHORTEST_RUN = 12


@dataclass(frozen=True)
class Run:
    """Equal lines in two places."""

    lines: int
    first: str
    second: str


def modules() -> list[Path]:
    """Python files with something in them."""
    return [file for file in sorted(SOURCE.rglob("*.py")) if file.read_text().strip()]


def functions(file: Path) -> Iterator[tuple[int, str]]:
    """Lines and place of each function."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield length, f"{file.relative_to(SOURCE)}:{node.lineno} {node.name}"


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
    return f"{file.relative_to(SOURCE)}:{line}"


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


def main() -> int:
    """Print the figures; 1 if one of them is too large."""
    files = modules()
    lines = sum(len(file.read_text().splitlines()) for file in files)
    lengths = sorted((each for file in files for each in functions(file)), reverse=True)
    twice = runs(files)
    code = sum(map(lines_of_code, files))
    print(
        f"{lines:,} lines (at most {MOST_LINES:,}), {code:,} of code; {len(files)} modules (at most {MOST_MODULES})"
    )
    p90 = sorted(length for length, _ in lengths)[int(0.9 * len(lengths))]
    print(f"{len(lengths):,} functions, 90% up to {p90} lines; the longest (at most {LONGEST_FUNCTION}):")
    for length, place in lengths[:5]:
        print(f"  {length:4} {place}")
    print(f"{len(twice)} runs of {SHORTEST_RUN} lines or more in two places (none)")
    for run in twice:
        print(f"  {run.lines:4} {run.first}  {run.second}")
    too_large = (
        lines > MOST_LINES or len(files) > MOST_MODULES or lengths[0][0] > LONGEST_FUNCTION or bool(twice)
    )
    return int(too_large)


if __name__ == "__main__":
    sys.exit(main())
