"""Small changes of the code that some test must notice: `python -m tests.mutants NAME ...`, or `make mutants`.

It changes one place of a module (a comparison, a sign, a number, a condition) and runs the fast tests that enter the
changed function, the quickest first, until one fails (`tests/entered.py` knows them). They are those of the folder that
mirrors the module's package and of files with the module's name, or of `--tests`. A change that no test notices
survives; either a test is missing, or the change lacks an effect, and then `surviving_mutants.toml` gives the reason.
The test that notices a change runs again without it: a test that fails anyway notices nothing.

The changed module exists only in a forked process that has already imported the libraries, and in the processes that
its tests start (the reader of documents, commands), which find it by a `sitecustomize` in a temporary folder. Nothing
is written to the sources. A process that ignores `PYTHONPATH` does not see the change.
"""

import argparse
import ast
import gc
import importlib
import importlib.machinery
import importlib.util
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType
from typing import Any, Literal

import pytest

from tests.changes import Mutant, modules_of, mutants
from tests.entered import MARKS, ROOT, KnownTest, entered_by, imports, tests_of

KNOWN = Path(__file__).with_name("surviving_mutants.toml")
SECONDS = 20  # of the processor for the tests of one change, beyond what they need; more is an endless loop
PATIENCE = 4  # times as long on the clock, since the machine may be busy
FIRST = 12  # tests in the first process: most changes are noticed there, and few files are read
MOST = 30.0  # seconds of tests for one change
Outcome = Literal["noticed", "survived", "out of time", "failed anyway"]
# Of the Makefile
_TOOLS = (
    "benchmarks", "experiments", "test_mutants.py", "test_entered.py", "test_perturbed.py", "test_simulate.py",
)  # fmt: skip
_ROOMS = {"precis_text": ("text",), "precis_judge": ("judge",), "experiments": ("experiments",)}
_SITE = """
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
class Changed(SourceFileLoader):
    def get_code(self, name):
        return compile(open({changed!r}, encoding="utf-8").read(), self.path, "exec")
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            return spec_from_file_location(name, {file!r}, loader=Changed(name, {file!r}))
sys.meta_path.insert(0, Finder)
"""  # of the processes that tests start
_LIBRARIES = (
    "torch", "transformers", "transformers.modeling_utils", "transformers.models.bart.modeling_bart",
    "transformers.models.t5.modeling_t5", "transformers.generation", "safetensors.torch", "tokenizers", "scipy.stats",
    "hypothesis", "jaxtyping", "beartype", "typer", "rich.console", "rich.progress", "xxhash", "pydantic", "fastapi",
    "uvicorn", "httpx", "prometheus_client", "sentencepiece", "pandas", "rouge_score.rouge_scorer",
)  # fmt: skip


class _Changed(importlib.machinery.SourceFileLoader):
    """Finds and loads the one changed module."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(mutant.file))
        self._mutant = mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, self._mutant.file, loader=self)

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._mutant.tree, str(self._mutant.file), "exec")


def files_near(modules: Iterable[str]) -> list[Path]:
    """Return the files of tests in the folders that mirror the packages of modules, and those with a module's name.

    A module without such a folder has the files that import it.
    """
    files = _files([ROOT / "tests"])
    found: set[Path] = set()
    for module in set(modules):
        folder, own = _folder(module), f"test_{module.rpartition('.')[2]}.py"
        for file in files:
            is_inside = (
                folder in file.parents if folder != ROOT / "tests" else imports(file.read_text(), module)
            )
            if is_inside or file.name == own:
                found.add(file)
    return sorted(found)


def _folder(module: str) -> Path:
    top, *inner = module.split(".")[:-1] or [module]
    folder = ROOT.joinpath("tests", *_ROOMS.get(top, ()), *inner)
    while not folder.is_dir():
        folder = folder.parent
    return folder


def _files(places: Sequence[Path]) -> list[Path]:
    """Return the files of tests in these folders, without the tests of tools, unless one of these is named."""
    tools = [ROOT / "tests" / name for name in _TOOLS]
    found = {file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))}
    left = [tool for tool in tools if not any(place.is_relative_to(tool) for place in places)]
    return sorted(file for file in found if not any(file.is_relative_to(tool) for tool in left))


class _Chosen:
    """Runs only the chosen tests, and writes down the first that fails, or the file that cannot be imported."""

    def __init__(self, tests: Iterable[str], place: Path) -> None:
        self._tests = set(tests)
        self._place = place

    @staticmethod
    def _name(node: Any) -> str:
        test = node.nodeid.partition("::")[2]
        return f"{node.path}::{test}" if test else str(node.path)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose."""
        items[:] = [item for item in items if not self._tests.isdisjoint((str(item.path), self._name(item)))]

    def pytest_exception_interact(self, node: Any) -> None:
        """Keep the first, and end at once, without what fixtures would tidy up."""
        self._place.write_text(self._name(node), "utf-8")
        os._exit(pytest.ExitCode.TESTS_FAILED)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """End, without the collections of garbage that pytest would begin."""
        os._exit(exitstatus)


def tried(mutant: Mutant, tests: Sequence[KnownTest]) -> Outcome:
    """Run the tests that may notice a change, as many as `MOST` seconds allow, and first a few."""
    outcome: Outcome = "survived"
    for some in (tests[:FIRST], within(tests[FIRST:], MOST)):
        if some and outcome == "survived":
            outcome = outcome_of(mutant, [each.name for each in some], sum(each.seconds for each in some))
    return outcome


def within(tests: Sequence[KnownTest], seconds: float) -> Sequence[KnownTest]:
    """Return the first tests that together take no more than these seconds."""
    for number, test in enumerate(tests):
        seconds -= test.seconds
        if seconds < 0:
            return tests[:number]
    return tests


def outcome_of(mutant: Mutant, tests: Sequence[str], seconds: float = 0.0) -> Outcome:
    """Run tests, or files of them, in a forked process with the change.

    It ends when it takes `SECONDS` of the processor more than three times what the tests take without the change.
    Tests that wait for ever end after `PATIENCE` times as long.
    """
    assert mutant.module not in sys.modules, f"{mutant.module}: was imported before it was changed"
    with tempfile.TemporaryDirectory() as folder:
        outcome = _outcome(mutant, tests, Path(folder), seconds)
        first = Path(folder) / "first"
        if outcome == "noticed" and first.exists() and _fails_anyway(first.read_text("utf-8")):
            return "failed anyway"
        return outcome


@cache
def _fails_anyway(test: str) -> bool:
    """Return whether a test fails without any change."""
    with tempfile.TemporaryDirectory() as folder:
        return _outcome(None, [test], Path(folder), MOST) != "survived"


def _outcome(mutant: Mutant | None, tests: Sequence[str], folder: Path, seconds: float) -> Outcome:
    files = [*dict.fromkeys(test.partition("::")[0] for test in tests)]
    limit = SECONDS + 3 * seconds + len(files) / 5
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        _run_changed(mutant, files, _Chosen(tests, folder / "first"), folder, limit)
    deadline = time.monotonic() + PATIENCE * limit
    try:
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return _meaning(os.waitstatus_to_exitcode(status))
            time.sleep(0.05)
        return "out of time"
    finally:  # also at Ctrl-C, which a group of its own does not get
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # with the processes that tests started and left behind
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _meaning(code: int) -> Outcome:
    if code == -signal.SIGXCPU:
        return "out of time"
    return "survived" if code in (0, pytest.ExitCode.NO_TESTS_COLLECTED) else "noticed"


def _change_started(mutant: Mutant, folder: Path) -> None:
    """Let the processes that this one starts import the changed module too."""
    changed = folder / "changed"
    changed.write_text(ast.unparse(mutant.tree), "utf-8")
    site = _SITE.format(changed=str(changed), module=mutant.module, file=str(mutant.file))
    (folder / "sitecustomize.py").write_text(site, "utf-8")
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def _run_changed(
    mutant: Mutant | None, files: Sequence[str], chosen: _Chosen, folder: Path, limit: float
) -> None:
    used = sum(os.times()[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + limit) + 1, resource.RLIM_INFINITY))
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silence, stream)
    code = 1
    try:
        if mutant is not None:
            finder: Any = _Changed(mutant)
            sys.meta_path.insert(0, finder)
            _change_started(mutant, folder)
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", MARKS]
        code = int(pytest.main([*options, *files], plugins=[chosen]))
    finally:
        os._exit(code)


def changed_since(commit: str) -> list[str]:
    """Return the modules of the packages that differ from a commit."""
    command = ["git", "diff", "--name-only", "--diff-filter=AM", commit, "--", "packages/*/src/*.py"]
    names = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    parts = [Path(name).with_suffix("").parts[3:] for name in names]
    return [".".join(each) for each in parts if each[-1] != "__init__"]


def main() -> int:
    """Change, test and count; the exit code is 1 if too many changes without a reason survive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="modules or packages, such as precis_text or precis.nn.masks"
    )
    parser.add_argument("--since", metavar="COMMIT", help="the modules that differ from this commit")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="the number of changes, drawn by the seed (default: all)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--least",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="the share of changes to notice or explain (default: 1)",
    )
    parser.add_argument(
        "--tests",
        nargs="+",
        metavar="FOLDER",
        help="folders or files of the tests to choose from (default: see above)",
    )
    given = parser.parse_args()
    names = dict.fromkeys([*modules_of(given.names), *(changed_since(given.since) if given.since else [])])
    found = [mutant for name in names for mutant in mutants(name)]
    if given.sample is not None and given.sample < len(found):
        found = random.Random(given.seed).sample(found, given.sample)
    _import_libraries()
    places = [Path(place).resolve() for place in given.tests or ()]
    files = _files(places) if places else files_near({mutant.module for mutant in found})
    tests = entered_by(files)
    reasons = tomllib.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    return _report(found, lambda mutant: tried(mutant, tests_of(mutant, tests)), reasons, least=given.least)


def _import_libraries() -> None:
    """Import what tests need and no change concerns before the forks: once for all, instead of seconds for each."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    for plugin in entry_points(group="pytest11"):
        importlib.import_module(plugin.module)
    gc.collect()
    gc.freeze()  # else each fork's first collection copies all of them


def _report(
    found: Sequence[Mutant],
    try_one: Callable[[Mutant], Outcome],
    reasons: dict[str, str],
    *,
    least: float = 1.0,
) -> int:
    """Try the changes, print the survivors and the share of the others; Ctrl-C ends it with the figure so far.

    A change that ran out of time counts neither way: its tests may loop without end, or the machine may be busy. One
    whose test fails anyway does not count either, and the exit code is 1.
    """
    outcomes: Counter[Outcome] = Counter()
    unexplained = 0
    try:
        for mutant in found:
            outcome = try_one(mutant)
            outcomes[outcome] += 1
            if outcome == "noticed":
                continue
            reason = reasons.get(mutant.name)
            unexplained += outcome == "survived" and reason is None
            told = f" ({reason})" if reason else ""
            print(f"{outcome}: line {mutant.line}, {mutant.name}{told}", flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {outcomes.total()} of {len(found)} changes")
    ended = outcomes["noticed"] + outcomes["survived"]
    share = f", {outcomes['noticed'] / ended:.0%}" if ended else ""
    late = f"; {outcomes['out of time']} ran out of time" if outcomes["out of time"] else ""
    broken = outcomes["failed anyway"]
    late += f"; {broken} were tried with a test that fails without them" if broken else ""
    print(
        f"{outcomes['noticed']} of {ended} changes noticed{share}; {unexplained} survive without a reason{late}"
    )
    is_enough = ended - unexplained >= least * ended and not broken
    return int(not is_enough or outcomes.total() < len(found))


if __name__ == "__main__":
    raise SystemExit(main())
