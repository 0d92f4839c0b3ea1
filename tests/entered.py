"""The functions that each test enters; they decide which tests try a change.

The tests run once with `tests/entering.py`. What they enter is kept in `.pytest_cache`, until their file or a file that
they enter differs. What a fixture of more than one test enters counts for every test that uses it.
"""

import ast
import hashlib
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import entering
from tests.changes import Mutant, functions_around, names_stored

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".pytest_cache" / "entered.json"
SOURCES = (*sorted(map(str, ROOT.glob("packages/*/src"))), str(ROOT / "experiments" / "src"))
MARKS = "not long and not slow and not gpu and not browser"
FEW = 20  # tests of a change: fewer are filled up with those of its neighbourhood
OWN = 0.1  # a test of the file with the module's name counts as so much quicker
Function = tuple[str, str]  # the file and the name


@dataclass(frozen=True)
class KnownTest:
    """A test that passes without a change, and the functions that it enters."""

    name: str
    seconds: float
    entered: frozenset[Function]

    @property
    def file(self) -> str:
        """The file of it."""
        return self.name.partition("::")[0]


def entered_by(files: Sequence[Path], roots: Sequence[str] = SOURCES, kept: Path = CACHE) -> list[KnownTest]:
    """Return what the tests of these files enter; those that fail without a change are printed and left out."""
    known = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    stale = [file for file in files if not _holds(known.get(str(file)))]
    if stale:
        print(f"{len(stale)} of {len(files)} files of tests run, to see what they enter", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            is_whole = False
            try:
                is_whole = _looked(stale, Path(folder), (*roots, str(ROOT / "tests")))
            finally:  # also when it is interrupted
                known |= _found(Path(folder)) if not is_whole else _none(stale) | _found(Path(folder))
                kept.parent.mkdir(exist_ok=True)
                kept.write_text(json.dumps(known), "utf-8")
        assert is_whole, "the tests ended before all had run"
    return [
        test
        for file in files
        if str(file) in known
        for test in _tests(known[str(file)], str(file), tuple(roots))
    ]


def _tests(kept: dict[str, Any], file: str, roots: tuple[str, ...]) -> Iterator[KnownTest]:
    functions = [(place, name) for place, name in kept["functions"]]
    for name, seconds, outcome, numbers in kept["tests"]:
        entered = frozenset(functions[n] for n in numbers if functions[n][0].startswith(roots))
        if outcome == "passed":
            yield KnownTest(f"{file}::{name}", seconds, entered)
        elif outcome == "failed":
            print(f"fails without a change, and so notices none: {file}::{name}")


def _holds(kept: dict[str, Any] | None) -> bool:
    return kept is not None and all(_digest(file) == digest for file, digest in kept["digests"].items())


@cache
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if Path(file).exists() else ""


def _looked(files: Sequence[Path], folder: Path, roots: Sequence[str]) -> bool:
    """Run tests in a forked process that writes down what they enter; return whether it came to the end."""
    for name in (entering.LOG, entering.NUMBER, "found"):
        (folder / name).write_bytes(bytes(8 if name == entering.NUMBER else 0))
    pid = os.fork()
    if pid == 0:
        _look(files, folder, roots)
    try:
        _, status = os.waitpid(pid, 0)
    except KeyboardInterrupt:  # which the forked process gets too
        os.waitpid(pid, 0)
        raise
    return os.waitstatus_to_exitcode(status) in (
        0,
        pytest.ExitCode.TESTS_FAILED,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    )


def _found(folder: Path) -> dict[str, Any]:
    """Return what is known of each file whose tests have run."""
    return dict(map(json.loads, (folder / "found").read_text("utf-8").splitlines()))


def _none(files: Sequence[Path]) -> dict[str, Any]:
    return {
        str(file): {"digests": {str(file): _digest(str(file))}, "functions": [], "tests": []}
        for file in files
    }


def _look(files: Sequence[Path], folder: Path, roots: Sequence[str]) -> None:
    code = 1
    try:
        site = entering.SITE.format(file=entering.__file__, folder=str(folder), roots=tuple(roots))
        (folder / "sitecustomize.py").write_text(site, "utf-8")
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(folder), os.environ.get("PYTHONPATH", "")])
        )
        looks = _Looks(folder, roots)
        options = [
            "-q",
            "--no-header",
            "--no-summary",
            "--disable-warnings",
            "--continue-on-collection-errors",
        ]
        options += ["-p", "no:cacheprovider", "-p", "no:xdist", "-m", MARKS]
        code = int(pytest.main([*options, *map(str, files)], plugins=[looks]))
    finally:
        sys.stdout.flush()
        os._exit(code)


class _Looks:
    """Writes a line for each file of tests: what each test enters, and the files that it concerns."""

    def __init__(self, folder: Path, roots: Sequence[str]) -> None:
        self._log = (folder / entering.LOG).open("rb")
        self._number = os.open(folder / entering.NUMBER, os.O_WRONLY)
        self._found = folder / "found"
        self._turns = 0
        self._enter = entering.start(str(folder), roots)
        self._entered: set[Function] = set()
        self._shared: dict[int, set[Function]] = {}  # by the fixture
        self._seconds = 0.0  # of fixtures that other tests have too
        self._outcome = "skipped"
        self._tests: dict[str, list[tuple[str, float, str, set[Function]]]] = defaultdict(list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Keep what the test enters."""
        self._turn()
        sys.settrace(self._enter)
        self._entered, self._seconds, self._outcome = set(), 0.0, "skipped"
        begun = _used()
        done = yield
        seconds = max(0.0, _used() - begun - self._seconds)
        entered = self._entered | self._turn()
        fixtures = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
        entered.update(*(self._shared.get(id(each), ()) for some in fixtures for each in some))
        name = item.nodeid.partition("::")[2]
        self._tests[str(item.path)].append((name, seconds, self._outcome, entered))
        if nextitem is None or nextitem.path != item.path:
            self._keep(str(item.path))
        return done

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        """Keep what a fixture of several tests enters."""
        if fixturedef.scope == "function":
            return (yield)
        before, self._entered = self._entered | self._turn(), set()
        begun = _used()
        try:
            return (yield)
        finally:
            own = self._entered | self._turn()
            self._shared.setdefault(id(fixturedef), set()).update(own)
            self._entered = before | own
            self._seconds += _used() - begun

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep whether the test passes, fails or is skipped."""
        if report.failed or (report.when == "call" and self._outcome != "failed"):
            self._outcome = report.outcome

    def _turn(self) -> set[Function]:
        """Return what was entered since the last turn."""
        self._turns += 1
        os.pwrite(self._number, self._turns.to_bytes(8, "little"), 0)
        lines = self._log.read().decode().splitlines()
        return {(file, name) for file, _, name in (line.partition("\t") for line in lines)}

    def _keep(self, file: str) -> None:
        tests = self._tests[file]
        functions = sorted({function for *_, entered in tests for function in entered})
        number = {function: n for n, function in enumerate(functions)}
        concerned = {file, *(place for place, _ in functions), *map(str, _conftests(Path(file)))}
        kept = {
            "digests": {each: _digest(each) for each in sorted(concerned)},
            "functions": functions,
            "tests": [(*told, sorted(number[each] for each in entered)) for *told, entered in tests],
        }
        with self._found.open("a", encoding="utf-8") as found:
            found.write(json.dumps([file, kept]) + "\n")


def _used() -> float:
    """Return the seconds of the processor so far; those of the clock would count other work on the machine."""
    return sum(os.times()[:4])


def _conftests(file: Path) -> Iterator[Path]:
    return (folder / "conftest.py" for folder in file.parents if (folder / "conftest.py").exists())


def tests_of(mutant: Mutant, tests: Sequence[KnownTest]) -> list[KnownTest]:
    """Return the tests that may notice a change, the quickest first.

    They enter its function, or one that mentions the name which the changed statement defines. Few are filled up with
    tests that enter a function which mentions the name, then the module, then a module that imports it: a function
    whose answer is kept, or that runs at import, is entered by one test or none.
    """
    names = {mutant.function.rpartition(".")[2]} if mutant.function else _dependent(mutant)
    importers = _importers(mutant.module)
    users = {
        (str(file), function)
        for file in (mutant.file, *importers)
        for function, mentioned in _mentioned(file).items()
        if names & mentioned
    }
    own = {(str(mutant.file), mutant.function)} if mutant.function else users
    places = [own, users, _all_of([mutant.file]), _all_of(importers)]
    chosen: dict[str, KnownTest] = {}
    last = f"test_{mutant.module.rpartition('.')[2]}.py"
    for place in places:
        found = [test for test in tests if not test.entered.isdisjoint(place) and test.name not in chosen]
        found.sort(key=lambda test: test.seconds * (OWN if test.file.endswith(last) else 1))
        chosen |= {test.name: test for test in (found if place is own else found[: FEW - len(chosen)])}
        if len(chosen) >= FEW:
            break
    return [*chosen.values()]


def _dependent(mutant: Mutant) -> set[str]:
    """Return the names that a changed statement defines, and those of the module that are made of them."""
    names = set(mutant.defines)
    for statement in ast.parse(mutant.file.read_text()).body:
        mentioned = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if isinstance(statement, ast.Assign | ast.AnnAssign) and names & mentioned:
            names |= names_stored(statement)
    return names


@cache
def _mentioned(file: Path) -> dict[str, set[str]]:
    """Return the names that each function of a file mentions."""
    found: dict[str, set[str]] = defaultdict(set)
    for node, function in functions_around(ast.parse(file.read_text())).items():
        name = getattr(node, "id", None) or getattr(node, "attr", None)
        if function and name:
            found[function].add(name)
    return found


def _all_of(files: Iterable[Path]) -> Collection[Function]:
    return {(str(file), function) for file in files for function in _mentioned(file)}


@cache
def _importers(module: str) -> tuple[Path, ...]:
    return tuple(file for file, text in _texts().items() if imports(text, module))


def imports(text: str, module: str) -> bool:
    """Return whether a source imports a module or something from it."""
    package, _, last = module.rpartition(".")
    wanted = (f"from {module} import", f"import {module}", f"from {package} import {last}")
    return any(each in text for each in wanted)


@cache
def _texts() -> dict[Path, str]:
    return {file: file.read_text() for place in SOURCES for file in sorted(Path(place).rglob("*.py"))}
