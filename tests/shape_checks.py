"""The checker of tensor shapes in tests: jaxtyping's import hook gives it every function of the packages that
`addopts` in pyproject.toml names.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from beartype import BeartypeConf, beartype
from transformers import PreTrainedConfig
from transformers.utils import ModelOutput

Function = TypeVar("Function", bound=Callable[..., Any])
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
