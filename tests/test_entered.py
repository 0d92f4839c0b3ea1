"""Known are the functions that a test enters, its fixtures and processes too, and so the tests that try a change."""

from pathlib import Path

import pytest

from tests import entered
from tests.changes import Mutant
from tests.entered import KnownTest, entered_by

SOURCE = """
def made():
    return helped()
def helped():
    return 1
def started():
    return 2
"""
TESTS = """
import os, subprocess, sys
import pytest
import entered_module
@pytest.fixture(scope="module")
def one():
    return entered_module.made()
def test_alone():
    assert entered_module.helped() == 1
def test_first(one):
    assert one == 1
def test_second(one):
    assert one == 1
def test_forked():
    if os.fork() == 0:
        entered_module.started()
        os._exit(0)
    os.wait()
def test_started():
    paths = os.pathsep.join([os.environ["PYTHONPATH"], {folder!r}])
    code = "import entered_module; entered_module.started()"
    subprocess.run([sys.executable, "-P", "-c", code], check=True, env={{**os.environ, "PYTHONPATH": paths}})
def test_nothing():
    pass
def test_failing():
    assert entered_module.helped() == 2
@pytest.mark.long
def test_long():
    pass
"""


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "entered_module.py").write_text(SOURCE)
    (tmp_path / "test_it.py").write_text(TESTS.format(folder=str(tmp_path)))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "test_it.py"


def by_test(file: Path) -> dict[str, set[str]]:
    found = entered_by(
        [file], [str(file.parent / "entered_module.py")], file.parent / "kept" / "entered.json"
    )
    return {test.name.partition("::")[2]: {name for _, name in test.entered} for test in found}


def test_functions_of_fixtures_and_of_other_processes_count_for_each_test(
    tests: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert by_test(tests) == {
        "test_alone": {"helped"},
        "test_first": {"made", "helped"},
        "test_second": {"made", "helped"},
        "test_forked": {"started"},
        "test_started": {"<module>", "started"},
        "test_nothing": set(),
    }
    assert f"fails without a change, and so notices none: {tests}::test_failing" in capfd.readouterr().out


def test_tests_run_again_when_their_file_or_one_that_they_enter_differs(
    tests: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    again = "1 of 1 files of tests run, to see what they enter"
    for change, runs in (("", True), ("", False), ("def more():\n    pass\n", True), ("", False)):
        source = tests.parent / "entered_module.py"
        source.write_text(source.read_text() + change)
        entered._digest.cache_clear()
        by_test(tests)
        assert (again in capfd.readouterr().out) == runs


def change(function: str, *defines: str) -> Mutant:
    file = entered.ROOT / "packages/precis/src/precis/storage/locks.py"
    return Mutant("precis.storage.locks", file, 0, 1, "1", "2", function, frozenset(defines))


def names(mutant: Mutant, tests: list[KnownTest]) -> list[str]:
    return [test.name for test in entered.tests_of(mutant, tests)]


def test_a_change_is_tried_by_the_tests_that_enter_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(change("").file)
    slow, quick = (KnownTest(f"test_a.py::{s}", s, frozenset({(file, "Lock.take")})) for s in (2.0, 1.0))
    own = KnownTest("test_locks.py::own", 5.0, frozenset({(file, "Lock.take")}))
    other = KnownTest("test_a.py::other", 0.1, frozenset({(file, "none_of_these")}))
    assert names(change("Lock.take"), [slow, quick, own, other]) == [own.name, quick.name, slow.name]


def entering(*functions: str) -> list[KnownTest]:
    file = str(change("").file)
    return [KnownTest(f"test_a.py::{name}", 1.0, frozenset({(file, name)})) for name in functions]


def test_a_change_of_a_constant_is_tried_by_the_tests_of_what_mentions_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entered, "FEW", 1)
    found = names(change("", "LOCK_FILE"), entering("is_file_of", "locked", "is_marked"))
    assert found == ["test_a.py::locked", "test_a.py::is_marked"]


def test_few_tests_are_filled_up_with_those_of_the_neighbourhood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entered, "FEW", 2)
    tests = entering("_lock", "_acquire", "_open")
    assert names(change("is_file_of"), tests) == ["test_a.py::_acquire", "test_a.py::_lock"]


def test_what_a_constant_is_made_into_counts_too(tmp_path: Path) -> None:
    file = tmp_path / "made.py"
    file.write_text("A = 1\nB = A + 1\nC = 3\n")
    made = Mutant("made", file, 0, 1, "1", "2", "", frozenset({"A"}))
    assert entered._dependent(made) == {"A", "B"}
