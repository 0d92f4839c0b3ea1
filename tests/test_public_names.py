"""What `from precis import ...` offers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import precis


def test_at_most_fifteen_names():
    assert len(precis.__all__) <= 15
    assert set(precis.__all__) == set(precis._HOMES)


@pytest.mark.parametrize("name", precis.__all__)
def test_every_name_is_there(name):
    assert getattr(precis, name).__name__ == name


def test_each_of_the_three_systems_has_its_entry_points():
    assert {
        "ZCodePPForConditionalGeneration",
        "ProphetNetForConditionalGeneration",
        "attach",
        "load_adapter",
        "method",
        "Prefix",
    } <= set(precis.__all__)


def test_the_guide_uses_every_name():
    page = (Path(__file__).parent.parent / "docs" / "guide" / "python.md").read_text()
    assert [name for name in precis.__all__ if not re.search(rf"\b{name}\(|\b{name}\.", page)] == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Sumarizer'"):
        _ = precis.Sumarizer


def test_importing_precis_loads_neither_torch_nor_transformers():
    code = "import precis, sys; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
