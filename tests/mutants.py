"""Small changes of the code that some test must notice: `python -m tests.mutants NAME ...`, or `make mutants`.

It changes one place of a module (a comparison, a sign, a number, a condition) and runs the tests of that module: the
file with its name, then the files that import it. A change that no test notices survives; either a test is missing, or
the change lacks an effect, and then `surviving_mutants.toml` gives the reason. The test that notices a change runs
again without it: a test that fails anyway notices nothing.

The changed module exists only in a forked process that has already imported the libraries, and in the processes that
its tests start (the reader of documents, commands), which find it by a `sitecustomize` in a temporary folder. Nothing
is written to the sources. A process that ignores `PYTHONPATH` does not see the change.
"""

import argparse
import ast
import copy
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any, Literal

import pytest

ROOT = Path(__file__).parents[1]
KNOWN = Path(__file__).with_name("surviving_mutants.toml")
SECONDS = 180  # of the processor for the tests of one change; more is an endless loop
PATIENCE = 5  # times as long on the clock, since the machine may be busy
Outcome = Literal["noticed", "survived", "out of time", "failed anyway"]
_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
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
    "hypothesis", "jaxtyping", "beartype", "typer", "rich.console", "xxhash",
)  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A changed module.

    Attributes:
        number: its place among the changes of the module.
        line: the line of the change in the source.
        was, now: the source of the changed expression.
    """

    module: str
    file: Path
    number: int
    line: int
    was: str
    now: str

    @property
    def tree(self) -> ast.Module:
        """The changed module, built on demand: a package has thousands of changes."""
        tree = ast.parse(self.file.read_text())
        parent, field, index, _, new = next(islice(_changes(tree), self.number, None))
        _put(parent, field, index, new)
        return ast.fix_missing_locations(ast.parse(ast.unparse(tree)))

    @property
    def name(self) -> str:
        """The change in words, without its line, which other changes move."""
        return f"{self.module}: {self.was} -> {self.now}"


def changed_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the changes of one node, its children left as they are."""
    new: Any = copy.copy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        new.ops = [_COMPARED[type(node.ops[0])](), *node.ops[1:]]
        yield new
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED and not _is_text(node):
        new.op = _COMPUTED[type(node.op)]()
        yield new
    elif isinstance(node, ast.BoolOp):
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
        new.value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield new
    elif isinstance(node, ast.Name) and node.id in _NAMES and isinstance(node.ctx, ast.Load):
        new.id = _NAMES[node.id]
        yield new
    elif isinstance(node, ast.If | ast.IfExp):
        new.test = ast.UnaryOp(ast.Not(), node.test)
        yield new


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str))
        for s in sides
    )


def mutants(module: str) -> list[Mutant]:
    """Return all changes of a module, in the order of its lines."""
    file = _source(module)
    found = []
    for number, (_, _, _, node, new) in enumerate(_changes(ast.parse(file.read_text()))):
        was, now = (ast.unparse(part.test if isinstance(part, ast.If) else part) for part in (node, new))
        found.append(Mutant(module, file, number, getattr(node, "lineno", 0), was, now))
    return found


def _source(module: str) -> Path:
    """Return the file of a module. `find_spec` of a name with dots would import its package, and so the module."""
    top, *inner = module.split(".")
    spec = importlib.util.find_spec(top)
    for part in inner:
        assert spec is not None, f"{module}: no such module"
        spec = importlib.machinery.PathFinder.find_spec(part, spec.submodule_search_locations)
    assert spec is not None, f"{module}: no such module"
    assert spec.origin is not None, f"{module}: lacks a source"
    return Path(spec.origin)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, ast.AST]]:
    """Yield each change: the parent, the field and the index of a node, the node, and its replacement."""
    for parent, field, index, node in _places(tree):
        for new in changed_nodes(node):
            yield parent, field, index, node, new


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield the nodes that may change, each with its parent: no annotations, texts of errors, or decorators.

    No assertions either; `zip(..., strict=True)` is one.
    """
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params") or isinstance(
            value, ast.JoinedStr
        ):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(child, ast.AST) and not _is_assertion_or_text(child):
                yield node, field, index, child
                yield from _places(child)


def _is_assertion_or_text(node: ast.AST) -> bool:
    is_strict = isinstance(node, ast.keyword) and node.arg == "strict"
    return is_strict or isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr)


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


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


def tests_of(module: str) -> list[str]:
    """Return the test files of a module: the one with its name first, then the others that import it.

    If there are none, they are the files of the nearest folder of tests that mirrors the module's package.
    """
    own = f"test_{module.rpartition('.')[2]}.py"
    files = [f for f in sorted((ROOT / "tests").rglob("test_*.py")) if f.name == own or _imports(f, module)]
    top, *inner = module.split(".")[:-1]
    folder = ROOT.joinpath("tests", *_ROOMS.get(top, ()), *inner)
    while not files:
        files, folder = sorted(folder.glob("test_*.py")), folder.parent
    return [str(file) for file in sorted(files, key=lambda file: file.name != own)]


def _imports(file: Path, module: str) -> bool:
    text = file.read_text()
    package, _, last = module.rpartition(".")
    return (
        f"from {module} import" in text
        or f"import {module}" in text
        or f"from {package} import {last}" in text
    )


class _First:
    """Writes down the first test that fails, or the file that cannot be imported."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def pytest_exception_interact(self, node: Any) -> None:
        """Keep it."""
        if not self._place.exists():
            test = node.nodeid.partition("::")[2]
            self._place.write_text(f"{node.path}::{test}" if test else str(node.path), "utf-8")


def outcome_of(mutant: Mutant, files: Sequence[str]) -> Outcome:
    """Run the tests in a forked process with the change, and end it after `SECONDS` of the processor.

    Tests that wait for ever end after `PATIENCE` times as long.
    """
    assert mutant.module not in sys.modules, f"{mutant.module}: was imported before it was changed"
    with tempfile.TemporaryDirectory() as folder:
        outcome = _outcome(mutant, files, Path(folder))
        first = Path(folder) / "first"
        if outcome == "noticed" and first.exists() and _fails_anyway(first.read_text("utf-8")):
            return "failed anyway"
        return outcome


@cache
def _fails_anyway(test: str) -> bool:
    """Return whether a test fails without any change."""
    with tempfile.TemporaryDirectory() as folder:
        return _outcome(None, [test], Path(folder)) != "survived"


def _outcome(mutant: Mutant | None, files: Sequence[str], folder: Path) -> Outcome:
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        _run_changed(mutant, files, folder)
    deadline = time.monotonic() + PATIENCE * SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGXCPU:
                return "out of time"
            return "survived" if code == pytest.ExitCode.OK else "noticed"
        time.sleep(0.05)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "out of time"


def _change_started(mutant: Mutant, folder: Path) -> None:
    """Let the processes that this one starts import the changed module too."""
    changed = folder / "changed"
    changed.write_text(ast.unparse(mutant.tree), "utf-8")
    site = _SITE.format(changed=str(changed), module=mutant.module, file=str(mutant.file))
    (folder / "sitecustomize.py").write_text(site, "utf-8")
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def _run_changed(mutant: Mutant | None, files: Sequence[str], folder: Path) -> None:
    used = sum(os.times()[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SECONDS, resource.RLIM_INFINITY))
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silence, stream)
    code = 1
    try:
        if mutant is not None:
            finder: Any = _Changed(mutant)
            sys.meta_path.insert(0, finder)
            _change_started(mutant, folder)
        chosen = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not gpu and not browser"]
        code = int(pytest.main([*chosen, *files], plugins=[_First(folder / "first")]))
    finally:
        os._exit(code)


def modules_of(names: Sequence[str]) -> list[str]:
    """Return the modules that these names mean: modules, or packages with all in them."""
    found = []
    for name in names:
        file = _source(name)
        if file.name != "__init__.py":
            found.append(name)
            continue
        inner = sorted(
            f for f in file.parent.rglob("*.py") if f.read_text().strip() and f.name != "__init__.py"
        )
        found += [".".join((name, *f.relative_to(file.parent).with_suffix("").parts)) for f in inner]
    return found


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
        help="of changes to notice or explain (default: 1)",
    )
    parser.add_argument(
        "--also", nargs="*", default=[], metavar="FOLDER", help="of tests to run behind those of the module"
    )
    given = parser.parse_args()
    names = [*modules_of(given.names), *(changed_since(given.since) if given.since else [])]
    also = [str(file) for folder in given.also for file in sorted((ROOT / folder).rglob("test_*.py"))]
    tested = {name: [*dict.fromkeys([*tests_of(name), *also])] for name in dict.fromkeys(names)}
    found = [mutant for name in tested for mutant in mutants(name)]
    if given.sample is not None and given.sample < len(found):
        found = random.Random(given.seed).sample(found, given.sample)
    _import_libraries()
    reasons = tomllib.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    return _report(found, tested, reasons, least=given.least)


def _import_libraries() -> None:
    """Import what tests need and no change concerns before the forks: once for all, instead of seconds for each."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    for plugin in entry_points(group="pytest11"):
        importlib.import_module(plugin.module)


def _report(
    found: Sequence[Mutant], tested: dict[str, list[str]], reasons: dict[str, str], *, least: float = 1.0
) -> int:
    """Try the changes, print the survivors and the share of the others; Ctrl-C ends it with the figure so far.

    A change that ran out of time counts neither way: its tests may loop without end, or the machine may be busy. One
    whose test fails anyway does not count either, and the exit code is 1.
    """
    outcomes: Counter[Outcome] = Counter()
    unexplained = 0
    try:
        for mutant in found:
            outcome = outcome_of(mutant, tested[mutant.module])
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
