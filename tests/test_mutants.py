"""The runner of mutants changes what it says, and tells a noticed change from a survivor."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests import mutants

SOURCE = '''
"""A docstring with 1 number."""
def larger(a: int, b: int) -> int:
    if a <= b:
        raise ValueError(f"{a + 1}")
    return max(a, b) + 2
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "larger_of_two.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("larger_of_two", None)
    return "larger_of_two"


def test_each_change_is_one_place_outside_texts_and_errors(module: str) -> None:
    found = [(mutant.was, mutant.now) for mutant in mutants.mutants(module)]
    assert found == [
        ("a <= b", "not a <= b"),
        ("a <= b", "a < b"),
        ("max(a, b) + 2", "max(a, b) - 2"),
        ("max", "min"),
        ("2", "3"),
    ]
    assert len({ast.unparse(mutant.tree) for mutant in mutants.mutants(module)}) == len(found)


def test_that_two_rows_are_equally_long_is_an_assertion_and_is_not_changed() -> None:
    pairs = ast.parse("dict(zip(names, values, strict=True))")
    assert [*mutants._changes(pairs)] == []
    assert len([*mutants._changes(ast.parse("sorted(names, reverse=True)"))]) == 1


def test_a_change_is_noticed_or_survives(module: str, tmp_path: Path) -> None:
    file = tmp_path / "test_larger.py"
    file.write_text("from larger_of_two import larger\ndef test_it():\n    assert larger(3, 1) == 5\n")
    found = {mutant.now: mutants.outcome_of(mutant, [str(file)]) for mutant in mutants.mutants(module)}
    assert found == {
        "not a <= b": "noticed",
        "a < b": "survived",
        "max(a, b) - 2": "noticed",
        "min": "noticed",
        "3": "noticed",
    }


def test_looking_for_modules_imports_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "numbers_of_two" / "inner"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("from numbers_of_two.inner.larger import larger\n")
    (package / "larger.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    assert mutants.modules_of(["numbers_of_two"]) == ["numbers_of_two.inner.larger"]
    found = mutants.mutants("numbers_of_two.inner.larger")
    assert found[0].file == package / "larger.py"
    assert not [name for name in sys.modules if name.startswith("numbers_of_two")]
    file = tmp_path / "test_larger.py"
    file.write_text("from numbers_of_two import larger\ndef test_it():\n    assert larger(3, 1) == 5\n")
    assert mutants.outcome_of(found[0], [str(file)]) == "noticed"
    with pytest.raises(AssertionError, match=r"numbers_of_two\.none: no such module"):
        mutants.mutants("numbers_of_two.none")


def test_processes_that_a_test_starts_have_the_change_too(module: str, tmp_path: Path) -> None:
    file = tmp_path / "test_larger.py"
    file.write_text(
        "import os, subprocess, sys\n"
        "def test_it():\n"
        f"    paths = os.pathsep.join([*filter(None, [os.environ.get('PYTHONPATH')]), {str(tmp_path)!r}])\n"
        "    code = 'import larger_of_two as it; assert it.larger(3, 1) == 5; assert \"_two.py\" in it.__file__'\n"
        "    subprocess.run([sys.executable, '-P', '-c', code], check=True, env={**os.environ, 'PYTHONPATH': paths})\n"
    )
    unchanged, bound, sign, *_ = mutants.mutants(module)
    assert [mutants.outcome_of(each, [str(file)]) for each in (bound, sign)] == ["survived", "noticed"]
    assert mutants.outcome_of(unchanged, [str(file)]) == "noticed"


def test_the_tests_of_a_module_are_those_with_its_name_and_those_that_import_it() -> None:
    names = [Path(file).name for file in mutants.tests_of("precis.storage.locks")]
    assert names[0] == "test_locks.py"
    assert "test_seal.py" not in names[:1]
    assert mutants.modules_of(["precis_text.support"])[0].startswith("precis_text.support.")


def test_further_folders_of_tests_run_behind_those_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def report(found: object, tested: dict[str, list[str]], *_: object, **__: object) -> int:
        tried.extend(*tested.values())
        return 0

    monkeypatch.setattr(sys, "argv", ["mutants", "precis.storage.locks", "--also", "tests/storage"])
    monkeypatch.setattr(mutants, "_import_libraries", lambda: None)
    monkeypatch.setattr(mutants, "_report", report)
    assert mutants.main() == 0
    own = mutants.tests_of("precis.storage.locks")
    assert tried[: len(own)] == own
    assert sorted({*tried} - {*own}) == sorted(
        str(file) for file in (mutants.ROOT / "tests/storage").rglob("test_*.py") if str(file) not in own
    )


def test_a_change_whose_tests_do_not_end_counts_neither_way(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test_larger.py"
    file.write_text("import time\ndef test_it():\n    time.sleep(30)\n")
    monkeypatch.setattr(mutants, "SECONDS", 1)
    assert mutants._report(mutants.mutants(module)[:1], {module: [str(file)]}, {}) == 0
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
    bound = mutants.mutants(module)[1]
    assert mutants.outcome_of(bound, [str(file)]) == "failed anyway"
    assert mutants._report([bound], {module: [str(file)]}, {}, least=0.0) == 1
    assert capsys.readouterr().out.endswith("; 1 were tried with a test that fails without them\n")


@pytest.mark.parametrize(("least", "code"), [(1.0, 1), (0.0, 0)])
def test_a_share_may_survive(module: str, tmp_path: Path, least: float, code: int) -> None:
    file = tmp_path / "test_nothing.py"
    file.write_text("def test_it():\n    pass\n")
    assert mutants._report(mutants.mutants(module)[:1], {module: [str(file)]}, {}, least=least) == code


def test_a_change_that_loops_without_end_runs_out_of_time(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the processor's time, which other work on the machine does not use up."""
    file = tmp_path / "test_larger.py"
    file.write_text("def test_it():\n    while True:\n        pass\n")
    monkeypatch.setattr(mutants, "SECONDS", 1)
    monkeypatch.setattr(mutants, "PATIENCE", 1000)
    assert mutants.outcome_of(mutants.mutants(module)[0], [str(file)]) == "out of time"


def test_what_is_imported_before_the_forks_is_none_of_ours() -> None:
    code = "import sys; from tests import mutants; mutants._import_libraries(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=mutants.ROOT
    )
    loaded = done.stdout.split()
    assert "torch" in loaded
    assert not [name for name in loaded if name.startswith(("precis", "tests.")) and name != "tests.mutants"]
