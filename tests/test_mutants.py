"""The runner of mutants changes what it says, and tells a noticed change from a survivor."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import changes, mutants
from tests.changes import Mutant, modules_of
from tests.entered import ROOT, KnownTest

SOURCE = '''
"""A docstring with 1 number."""
def larger(a: int, b: int) -> int:
    if a <= b:
        raise ValueError(f"{a + 1}")
    return max(a, b) + 2
'''


def tries(file: Path) -> Callable[[Mutant], mutants.Outcome]:
    return lambda mutant: mutants.outcome_of(mutant, [str(file)])


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "larger_of_two.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("larger_of_two", None)
    return "larger_of_two"


def test_each_change_is_one_place_outside_texts_and_errors(module: str) -> None:
    found = [(mutant.was, mutant.now) for mutant in changes.mutants(module)]
    assert found == [
        ("a <= b", "not a <= b"),
        ("a <= b", "a < b"),
        ("max(a, b) + 2", "max(a, b) - 2"),
        ("max", "min"),
        ("2", "3"),
    ]
    assert len({ast.unparse(mutant.tree) for mutant in changes.mutants(module)}) == len(found)


def test_equal_changes_of_a_function_have_names_of_their_own(module: str, tmp_path: Path) -> None:
    (tmp_path / "larger_of_two.py").write_text("A = 7\ndef larger(a):\n    return a[7:7]\n")
    changes._text.cache_clear()
    assert [mutant.name for mutant in changes.mutants(module)] == [
        "larger_of_two: 7 -> 8",
        "larger_of_two.larger: 7 -> 8",
        "larger_of_two.larger: 7 -> 8, place 2",
    ]


def test_that_two_rows_are_equally_long_is_an_assertion_and_is_not_changed() -> None:
    pairs = ast.parse("dict(zip(names, values, strict=True))")
    assert [*changes._changes(pairs)] == []
    assert len([*changes._changes(ast.parse("sorted(names, reverse=True)"))]) == 1
    assert [*changes._changes(ast.parse("if TYPE_CHECKING:\n    import this"))] == []


def test_a_change_is_noticed_or_survives(module: str, tmp_path: Path) -> None:
    file = tmp_path / "test_larger.py"
    file.write_text("from larger_of_two import larger\ndef test_it():\n    assert larger(3, 1) == 5\n")
    found = {mutant.now: mutants.outcome_of(mutant, [str(file)]) for mutant in changes.mutants(module)}
    assert found == {
        "not a <= b": "noticed",
        "a < b": "survived",
        "max(a, b) - 2": "noticed",
        "min": "noticed",
        "3": "noticed",
    }


def test_a_change_knows_the_function_around_it_and_what_its_statement_defines(tmp_path: Path) -> None:
    source = """
LIMIT, OTHER = 3, 4
class Reader:
    MOST = 5
    def read(self, least: int = 6) -> int:
        def inner() -> int:
            return 7
        return [8 for _ in range(9)]
def alone() -> int:
    return 10
"""
    (tmp_path / "with_names.py").write_text(source)
    sys.path.insert(0, str(tmp_path))
    try:
        found = {mutant.was: mutant for mutant in changes.mutants("with_names")}
    finally:
        sys.path.remove(str(tmp_path))
    functions = {was: mutant.function for was, mutant in found.items()}
    read = "Reader.read"
    inner = "Reader.read.<locals>.inner"
    assert functions == {
        "3": "",
        "4": "",
        "5": "",
        "6": read,
        "7": inner,
        "8": read,
        "9": read,
        "10": "alone",
    }
    assert found["3"].defines == {"LIMIT", "OTHER"}
    assert found["5"].defines == {"Reader", "MOST"}


def test_only_the_chosen_tests_of_a_file_run(module: str, tmp_path: Path) -> None:
    file = tmp_path / "test_larger.py"
    file.write_text(
        "from larger_of_two import larger\n"
        "def test_weak():\n    assert larger(3, 1) > 0\n"
        "def test_strong():\n    assert larger(3, 1) == 5\n"
    )
    sign = changes.mutants(module)[2]
    assert mutants.outcome_of(sign, [f"{file}::test_weak"]) == "survived"
    assert mutants.outcome_of(sign, [f"{file}::test_strong"]) == "noticed"


def test_looking_for_modules_imports_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "numbers_of_two" / "inner"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("from numbers_of_two.inner.larger import larger\n")
    (package / "larger.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    assert modules_of(["numbers_of_two"]) == ["numbers_of_two.inner.larger"]
    found = changes.mutants("numbers_of_two.inner.larger")
    assert found[0].file == package / "larger.py"
    assert not [name for name in sys.modules if name.startswith("numbers_of_two")]
    file = tmp_path / "test_larger.py"
    file.write_text("from numbers_of_two import larger\ndef test_it():\n    assert larger(3, 1) == 5\n")
    assert mutants.outcome_of(found[0], [str(file)]) == "noticed"
    with pytest.raises(AssertionError, match=r"numbers_of_two\.none: no such module"):
        changes.mutants("numbers_of_two.none")


def test_processes_that_a_test_starts_have_the_change_too(module: str, tmp_path: Path) -> None:
    file = tmp_path / "test_larger.py"
    file.write_text(
        "import os, subprocess, sys\n"
        "def test_it():\n"
        f"    paths = os.pathsep.join([*filter(None, [os.environ.get('PYTHONPATH')]), {str(tmp_path)!r}])\n"
        "    code = 'import larger_of_two as it; assert it.larger(3, 1) == 5; assert \"_two.py\" in it.__file__'\n"
        "    subprocess.run([sys.executable, '-P', '-c', code], check=True, env={**os.environ, 'PYTHONPATH': paths})\n"
    )
    unchanged, bound, sign, *_ = changes.mutants(module)
    assert [mutants.outcome_of(each, [str(file)]) for each in (bound, sign)] == ["survived", "noticed"]
    assert mutants.outcome_of(unchanged, [str(file)]) == "noticed"


def near(module: str) -> list[str]:
    return [str(file.relative_to(ROOT / "tests")) for file in mutants.files_near([module])]


def test_files_near_a_module_are_in_the_folder_of_its_package_or_have_its_name_or_else_import_it() -> None:
    names = near("precis.storage.locks")
    assert "storage/test_seal.py" in names
    assert "test_kills.py" not in names
    assert "text/documents/test_reader.py" in near("precis_text.documents.reader")
    assert "test_public_names.py" not in near("precis_text.documents.reader")
    assert "test_process.py" in near("precis.process")
    assert len(near("precis.process")) < 50
    assert modules_of(["precis_text.support"])[0].startswith("precis_text.support.")


def test_tests_of_tools_are_left_out_unless_they_are_named() -> None:
    folder = ROOT / "tests"
    every, tools = (
        mutants._files([folder]),
        mutants._files([folder / "benchmarks", folder / "test_mutants.py"]),
    )
    assert folder / "storage" / "test_locks.py" in every
    assert folder / "test_mutants.py" not in every
    assert not [file for file in every if file.is_relative_to(folder / "benchmarks")]
    assert folder / "test_mutants.py" in tools
    assert folder / "benchmarks" / "test_startup.py" in tools


def test_the_quickest_tests_run_first_and_all_within_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[list[str]] = []

    def run(mutant: Mutant, tests: list[str], seconds: float) -> mutants.Outcome:
        runs.append(tests)
        assert seconds == 10.0 * len(tests)
        return "survived"

    monkeypatch.setattr(mutants, "outcome_of", run)
    monkeypatch.setattr(mutants, "FIRST", 2)
    monkeypatch.setattr(mutants, "MOST", 60.0)
    change = Mutant("module", Path("module.py"), 0, 1, "1", "2")
    tests = [KnownTest(f"test_{number}", 10.0, frozenset()) for number in range(20)]
    assert mutants.tried(change, tests) == "survived"
    assert runs == [["test_0", "test_1"], [f"test_{number}" for number in range(2, 8)]]
    runs.clear()
    assert mutants.tried(change, []) == "survived"
    assert runs == []


def test_a_change_whose_tests_do_not_end_counts_neither_way(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test_larger.py"
    file.write_text("import time\ndef test_it():\n    time.sleep(30)\n")
    monkeypatch.setattr(mutants, "SECONDS", 1)
    assert mutants._report(changes.mutants(module)[:1], tries(file), {}) == 0
    assert capsys.readouterr().out.endswith(
        "0 of 0 changes noticed; 0 survive without a reason; 1 ran out of time\n"
    )


@pytest.mark.parametrize(
    "failing", ["def test_it():\n    assert larger(3, 1) == 6\n", "import none_of_these\n"]
)
def test_a_test_that_fails_without_the_change_notices_nothing(
    module: str, tmp_path: Path, failing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test_larger.py"
    file.write_text("from larger_of_two import larger\n" + failing)
    bound = changes.mutants(module)[1]
    assert mutants.outcome_of(bound, [str(file)]) == "failed anyway"
    assert mutants._report([bound], tries(file), {}, least=0.0) == 1
    assert capsys.readouterr().out.endswith("; 1 were tried with a test that fails without them\n")


def test_an_interruption_ends_the_run_with_the_figure_so_far(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def try_one(mutant: Mutant) -> mutants.Outcome:
        if mutant.number:
            raise KeyboardInterrupt
        return "noticed"

    assert mutants._report(changes.mutants(module), try_one, {}, least=0.0) == 1
    assert capsys.readouterr().out == (
        "interrupted after 1 of 5 changes\n1 of 1 changes noticed, 100%; 0 survive without a reason\n"
    )


def test_a_survivor_with_a_reason_is_explained(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    bound = changes.mutants(module)[1]
    assert mutants._report([bound], lambda _: "survived", {bound.name: "both are right"}) == 0
    assert capsys.readouterr().out.startswith(
        "survived: line 4, larger_of_two.larger: a <= b -> a < b (both are right)"
    )


def test_every_reason_is_that_of_a_change_which_exists() -> None:
    reasons = [*tomllib.loads(mutants.KNOWN.read_text())]
    modules = [
        name for name in modules_of(["precis", "precis_text"]) if any(key.startswith(name) for key in reasons)
    ]
    known = {mutant.name for module in modules for mutant in changes.mutants(module)}
    assert not [key for key in reasons if key not in known]


@pytest.mark.parametrize(("least", "code"), [(1.0, 1), (0.0, 0)])
def test_a_share_may_survive(module: str, tmp_path: Path, least: float, code: int) -> None:
    file = tmp_path / "test_nothing.py"
    file.write_text("def test_it():\n    pass\n")
    assert mutants._report(changes.mutants(module)[:1], tries(file), {}, least=least) == code


def test_a_change_that_loops_without_end_runs_out_of_time(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the processor's time, which other work on the machine does not use up."""
    file = tmp_path / "test_larger.py"
    file.write_text("def test_it():\n    while True:\n        pass\n")
    monkeypatch.setattr(mutants, "SECONDS", 1)
    monkeypatch.setattr(mutants, "PATIENCE", 1000)
    assert mutants.outcome_of(changes.mutants(module)[0], [str(file)]) == "out of time"


def test_what_is_imported_before_the_forks_is_none_of_ours() -> None:
    code = "import sys; from tests import mutants; mutants._import_libraries(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = done.stdout.split()
    assert "torch" in loaded
    assert not [name for name in loaded if name.startswith("precis")]
    tools = {"tests.mutants", "tests.changes", "tests.entered", "tests.entering"}
    assert {name for name in loaded if name.startswith("tests.")} == tools
