"""C++ kernels: built on request by the machine's own compiler, kept in the user's cache, loaded from there.

torch's own `cpp_extension.load` would need ninja on the path, and a process that is killed while it builds leaves a
lock on which all later ones wait for ever. Here whoever comes first builds to a file of his own and moves it into
place; two who come at once build the same twice.
"""

import hashlib
import os
import shlex
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch

from precis.errors import UserError

COMPILE = "PRECIS_COMPILE"
"""The variable of the environment that asks for kernels; `CXX` names the compiler, else c++."""

# Vectors as wide as torch's own kernels use on this processor: a shared cache may serve others.
_VECTORS = {
    "AVX2": ["-mavx2", "-mfma"],
    "AVX512": ["-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"],
}
_FLAGS = ["-O3", "-std=c++20", "-shared", "-fPIC", "-fopenmp", "-fno-math-errno", "-fno-trapping-math"]


def compiling() -> bool:
    """Whether the user asked for kernels."""
    return os.environ.get(COMPILE, "0") not in ("", "0")


def compiler() -> list[str]:
    """How the C++ compiler is called."""
    return shlex.split(os.environ.get("CXX") or "c++")


@cache
def load(name: str) -> None:
    """Register the operators of `NAME.cpp` with torch, building them if that was not done before (half a minute).

    Raises:
        UserError: the kernel cannot be built or loaded here.
    """
    source = Path(__file__).parent / f"{name}.cpp"
    command = _command(source)
    library = _cache() / f"{name}-{_key(source, command)}.so"
    try:
        if not library.exists():
            _build(command, library)
        torch.ops.load_library(str(library))
    except OSError as problem:
        raise _refusal(str(problem)) from problem


def _command(source: Path) -> list[str]:
    """The compiler's command line, without the place of the result."""
    from torch.utils.cpp_extension import include_paths

    vectors = _VECTORS.get(torch.backends.cpu.get_cpu_capability(), [])
    headers = [flag for path in include_paths("cpu") for flag in ("-isystem", path)]
    libraries = ["-L", str(Path(torch.__file__).parent / "lib"), "-lc10", "-ltorch_cpu", "-ltorch"]
    return [*compiler(), *_FLAGS, *vectors, *headers, str(source), *libraries]


def _key(source: Path, command: list[str]) -> str:
    """Changes with the source, with torch and with how it is compiled."""
    text = "\0".join([source.read_text(), torch.__version__, *command])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "precis" / "kernels"


def _build(command: list[str], library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            raise _refusal(said[0] if said else f"{command[0]} ended with status {done.returncode}")
        made.replace(library)


def _refusal(why: str) -> UserError:
    return UserError(
        f"{COMPILE}: the C++ kernel of attention cannot be used here ({why}); install a C++ compiler that knows C++20 "
        f"and OpenMP (CXX names it), or unset {COMPILE}"
    )
