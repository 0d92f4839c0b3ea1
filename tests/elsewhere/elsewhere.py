"""An accelerator for machines that have none: to see whether code and tests put tensors on the device that was chosen.

    PYTHONPATH=tests/elsewhere python -m pytest tests/training

torch finds this folder on the path, as it finds any vendor's device (entry point `torch.backends`), and loads it in
this process and in all that it starts. Then `torch.accelerator` names the device "elsewhere" and Accelerate trains on
it. Its memory is the CPU's and all work is done there, but torch takes it for another device: tensors of both in one
operation, or the CPU's generator for a tensor elsewhere, are an error as on CUDA; autocast and the threads of backward
passes are those of an accelerator. What it cannot show: speed, CUDA's own kernels, and waiting for the device.

`device.cpp` is built once by the machine's C++ compiler ($CXX, else c++), in half a minute, and kept in the user's
cache.
"""

import hashlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

NAME = "elsewhere"


def load() -> None:
    """Make the device known to torch, and let Accelerate choose it."""
    torch.ops.load_library(str(_library()))
    torch.utils.rename_privateuse1_backend(NAME)  # type: ignore[attr-defined]
    torch._register_device_module(NAME, _module())
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)  # type: ignore[attr-defined]
    nn.Module._apply = _keeping_parameters(nn.Module._apply)  # type: ignore[method-assign]
    os.environ.setdefault("ACCELERATE_TORCH_DEVICE", NAME)


def _keeping_parameters(apply: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """Parameters that move here stay the same objects, as on CUDA: optimizers and tied layers know them. torch does
    that of itself for the devices that it ships.
    """

    @wraps(apply)
    def keeping(module: nn.Module, move: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        before = torch.__future__.get_swap_module_params_on_conversion()
        moves = any(
            move(p.new_empty(0)).device.type != p.device.type for p in module.parameters(recurse=False)
        )
        torch.__future__.set_swap_module_params_on_conversion(before or moves)
        try:
            return apply(module, move, recurse)
        finally:
            torch.__future__.set_swap_module_params_on_conversion(before)

    return keeping


def _module() -> ModuleType:
    """What torch asks of `torch.elsewhere`. Random numbers are the CPU's, so one seed is enough."""
    module = ModuleType(f"torch.{NAME}")
    answers = {
        "_is_in_bad_fork": lambda: False,
        "current_device": lambda: 0,
        "device": lambda _: nullcontext(),
        "device_count": lambda: 1,
        "get_amp_supported_dtype": lambda: [torch.bfloat16, torch.float16],
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "manual_seed": lambda _: None,
        "manual_seed_all": lambda _: None,
        "set_device": lambda _: None,
        "set_rng_state": lambda state, *_: torch.set_rng_state(state),
        "synchronize": lambda *_: None,
    }
    for name, answer in answers.items():
        setattr(module, name, answer)
    return module


def _library() -> Path:
    """The built device; whoever comes first builds to a file of his own and moves it into place."""
    source = Path(__file__).with_name("device.cpp")
    home = Path(torch.__file__).parent
    places = (home / "include", home / "include" / "torch" / "csrc" / "api" / "include")
    command = [
        *(shlex.split(os.environ.get("CXX", "")) or ["c++"]),
        *("-O1", "-std=c++20", "-shared", "-fPIC"),
        *(flag for place in places for flag in ("-isystem", str(place))),
        str(source),
        *("-L", str(home / "lib"), "-lc10", "-ltorch_cpu", "-ltorch"),
    ]
    text = "\0".join([source.read_text(), torch.__version__, *command])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "precis" / "tests"
    library = cache / f"{NAME}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    if not library.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            made = Path(folder) / library.name
            subprocess.run([*command, "-o", str(made)], check=True)
            made.replace(library)
    return library
