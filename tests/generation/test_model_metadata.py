"""The intended use of a model is checked before it is stored or used."""

from typing import Any, cast

import pytest

from precis.generation.model_metadata import ModelUse
from precis_text.errors import UserError


@pytest.mark.parametrize("modes", [(), ("abstract", "sing"), ("sing",), ["abstract"]])
def test_modes_are_one_or_several_of_those_that_exist(modes: tuple[str, ...] | list[str]) -> None:
    with pytest.raises(UserError, match="must be a list of at least one of abstract and extract"):
        ModelUse(modes=cast(Any, modes))
    assert ModelUse(modes=("extract", "abstract")).mode_for(None) == "extract"
