"""The command line answers, and refuses wrong input, in a small part of the time that importing torch takes."""

import pytest

from benchmarks.startup import REFERENCE, measure

MOST = {"import precis": 0.15, "precis --help": 0.3, "precis summarize": 0.75}
"""Shares of the processor time of `import torch`; every other command may take 0.5."""


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    return measure(3)


def test_the_first_answer_costs_a_part_of_importing_torch(found: dict[str, float]) -> None:
    shares = {name: seconds / found[REFERENCE] for name, seconds in found.items() if name != REFERENCE}
    assert {name: share for name, share in shares.items() if share > MOST.get(name, 0.5)} == {}
