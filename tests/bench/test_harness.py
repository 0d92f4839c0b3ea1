"""The harness: contenders in processes of their own, in turn; what goes wrong is named."""

import pytest

from precis.bench.harness import BenchSettings, Cell, Contender, measure
from precis.errors import RunError

CONTENDERS = """
import os

def make(*, name, cell, log):
    def one_pass():
        with open(log, "a") as file:
            print(name, cell, os.getpid(), file=file)
    return one_pass

def fail(*, name, cell, log):
    raise ValueError("no such size")
"""


@pytest.fixture
def contender(tmp_path):
    (tmp_path / "contenders_of_a_test.py").write_text(CONTENDERS)

    def build(name, *, function="make", **options):
        return Contender(
            name=name,
            make=f"contenders_of_a_test:{function}",
            arguments={"name": name, "log": str(tmp_path / "log")},
            environment={"PYTHONPATH": str(tmp_path)},
            **options,
        )

    return build


SETTINGS = BenchSettings(rounds=3, seconds=0.0, threads=1, memory=False)


def test_contenders_take_turns_in_processes_of_their_own(contender, tmp_path):
    cells = [Cell(name="small", arguments={"cell": "small"}), Cell(name="large", arguments={"cell": "large"})]
    contenders = [
        contender("one"),
        contender("two", skip={"large": "too slow"}),
        contender("three", requires="no_such_package"),
        contender("four", program="no-such-program"),
    ]
    told = []
    results = measure(contenders, cells, SETTINGS, tell=told.append)
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    small = [name for name, cell, _ in lines if cell == "small"]
    assert small == ["one", "two", *("one", "two"), *("two", "one"), *("one", "two")]  # warm-up, three rounds
    assert len({pid for _, _, pid in lines}) == 2
    assert len(results.of("small", "one").samples) == len(results.of("large", "one").samples) == 3
    assert results.of("large", "two") is None
    assert set(results.left_out) == {
        ("two", "large", "too slow"),
        ("three", "", "no_such_package is not installed"),
        ("four", "", "no-such-program is not installed"),
    }
    assert told == ["small: timed", "large: timed"]


def test_a_contender_that_fails_is_named_with_its_cell_and_error(contender):
    cell = Cell(name="small", arguments={"cell": "small"})
    with pytest.raises(RunError, match="broken, small: ValueError: no such size"):
        measure([contender("broken", function="fail")], [cell], SETTINGS, tell=lambda _: None)
