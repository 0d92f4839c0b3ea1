"""Tests run as the machine is and perturbed, and those named whose outcome changes."""

from pathlib import Path

import pytest

from tests import modes, perturbed

SOME = """
import os
import pytest

TWO = os.environ.get("PRECIS_TEST_THREADS") == "2"


def test_holds():
    assert True


@pytest.mark.parametrize("seed", [0, 1])
def test_by_rounding(seed):
    assert not TWO or seed


def test_fails():
    assert False, "always"


@pytest.mark.skipif(TWO, reason="nothing to look at")
def test_elsewhere():
    assert True


@pytest.fixture
def left():
    yield
    assert not TWO, "left over"


def test_leaves_something(left):
    assert True
"""
SETTINGS = {"two-threads": perturbed.PERTURBATIONS["two-threads"]}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "test_some.py").write_text(SOME)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(perturbed, "FAST", ("-p", "no:xdist", "-p", "no:cacheprovider"))
    monkeypatch.setenv(perturbed.THREADS, "1")
    return tmp_path


def test_a_test_whose_outcome_changes_is_named(suite: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert perturbed.run(SETTINGS, ["test_some.py"], suite / "reports") == 1
    lines = capfd.readouterr().out.splitlines()
    told = lines[lines.index("as-is: 1 failed, 5 passed") :]
    assert told == [
        "as-is: 1 failed, 5 passed",
        "two-threads: 3 failed, 2 passed, 1 skipped",
        "tests whose outcome changes: 2",
        "  test_some.py::test_by_rounding[0]",
        "    as-is: passed",
        "    two-threads: failed: assert (not True or 0)",
        "  test_some.py::test_leaves_something",
        "    as-is: passed",
        '    two-threads: failed: failed on teardown with "AssertionError: left over',
        "tests that fail wherever they run:",
        "  test_some.py::test_fails",
    ]


def test_tests_that_are_skipped_or_fail_everywhere_are_no_change(
    suite: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert perturbed.run(SETTINGS, ["test_some.py", "-k", "fails or elsewhere"], suite / "reports") == 0
    assert "tests whose outcome changes: 0" in capfd.readouterr().out


def test_a_run_without_a_report_is_a_failure(suite: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert perturbed.run(SETTINGS, ["--no-such-option"], suite / "reports") == 1
    assert "pytest left no report" in capfd.readouterr().out


def test_the_machines_own_mode_is_told_in_one_line() -> None:
    told = modes.here()
    assert "\n" not in told
    for part in ("CPU capability", "native precision", "C++ kernel"):
        assert part in told


def test_modes_and_perturbations_have_names_of_their_own() -> None:
    assert not {*modes.MODES, perturbed.AS_IS} & set(perturbed.PERTURBATIONS)
