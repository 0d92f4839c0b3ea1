"""Checks of options that need none of the libraries that load models."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from precis_text.errors import UserError

# The types of devices that torch names; an extension of torch may add another.
_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


def refuse_unknown_device(name: str | None) -> None:
    """Refuse a type of device that torch lacks; whether this machine has the device is checked with torch.

    Raises:
        UserError: the type is unknown, and no extension is installed that could add it.
    """
    if name is None or name.partition(":")[0] in _TYPES:
        return
    if "torch" not in sys.modules and not entry_points(group="torch.backends"):
        raise unknown_device(name)


def unknown_device(name: str) -> UserError:
    """Return the error for a name that is not one of torch's."""
    return UserError(f"device {name!r} is unknown; use cpu, cuda or cuda:1")


def refuse_writing_options(options: Mapping[str, Any]) -> None:
    """Raise `UserError` for an option of models that write, neither None nor False, if a model selects sentences."""
    for name, value in options.items():
        if value is not None and value is not False:
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option} does not apply to --mode extract, which writes nothing; omit it")
