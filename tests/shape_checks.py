"""The checker of tensor shapes in tests: jaxtyping's import hook gives it every function of the packages and modules
that the Makefile names (`SHAPES`).
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from beartype import BeartypeConf, beartype
from transformers import PreTrainedConfig
from transformers.utils import ModelOutput

Function = TypeVar("Function", bound=Callable[..., Any])
# Tests of these folders and files are run with checks; `SHAPED` in the Makefile names the same ones.
PLACES = (
    "nn", "models", "objectives", "tuning", "generation/fast", "evaluation/test_probes.py",
    "data/batches/test_unit_batches.py", "extract/test_unit_encoder.py", "phases/measure/test_attention_probe.py",
)  # fmt: skip
_CHECK = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int may be given for a float
# The hook wraps a dataclass's constructor by its fields; those of transformers accept more.
for accepts_more in (PreTrainedConfig, ModelOutput):
    setattr(accepts_more, "__no_type_check__", True)  # noqa: B010


def checked(function: Function) -> Function:
    """Return the function with checked arguments and result.

    Functions that return `Self` remain unchecked: beartype would need their class, and it decorates functions only.
    """
    if "Self" in str(inspect.signature(function).return_annotation):
        return function
    return _CHECK(function)
