"""The checks of shapes, which `make test` switches on for some tests, find a wrong shape, and leave no module out."""

import re
from pathlib import Path

import jaxtyping
import pytest
import torch

from precis.generation.fast.packed_decoder import heads_of
from precis.nn.attention import split_heads
from tests.shape_checks import PLACES

ROOT = Path(__file__).parents[2]
# torch exports these modules, and checks cannot be traced
TRACED = {"precis.export.onnx_graphs"}


def words_of(variable: str) -> list[str]:
    """Return what the Makefile assigns to a variable."""
    found = re.search(rf"^{variable} *:= ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    return found.group(1).replace("\\\n", " ").split()


def test_the_hook_finds_a_wrong_shape(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("jaxtyping_packages"):
        pytest.skip("run without --jaxtyping-packages")
    with pytest.raises(jaxtyping.TypeCheckError, match="split_heads"):
        split_heads(torch.zeros(2, 8), 2)
    assert split_heads(torch.zeros(2, 3, 8), 2).shape == (2, 2, 3, 4)
    with pytest.raises(jaxtyping.TypeCheckError, match="heads_of"):
        heads_of(torch.zeros(2, 3, 8), documents=2, tokens=3, heads=2)
    assert heads_of(torch.zeros(6, 8), documents=2, tokens=3, heads=2).shape == (2, 2, 3, 4)


def test_every_module_that_states_shapes_has_them_checked() -> None:
    source = ROOT / "packages" / "precis" / "src"
    stating = {
        ".".join(file.relative_to(source).with_suffix("").parts)
        for file in source.rglob("*.py")
        if re.search(r"^from jaxtyping import|^import jaxtyping", file.read_text(), re.MULTILINE)
    }
    checked = tuple(f"{name}." for name in words_of("SHAPES"))
    assert {name for name in stating if not f"{name}.".startswith(checked)} == TRACED


def test_the_two_runs_of_make_test_divide_the_tests_by_the_same_places() -> None:
    assert sorted(words_of("SHAPED")) == sorted(f"tests/{place}" for place in PLACES)
    assert all((ROOT / "tests" / place).exists() for place in PLACES)
