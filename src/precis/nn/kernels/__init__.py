"""C++ kernels: built on request by the machine's own compiler, kept in the user's cache, loaded from there.

torch's own `cpp_extension.load` would need ninja on the path, and a process that is killed while it builds leaves a
lock on which all later ones wait for ever. Here whoever comes first builds to a file of his own and moves it into
place; two who come at once build the same twice.
"""

import hashlib
import os
import platform
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
    return os.environ.get(COMPILE, "0").lower() not in ("", "0", "false", "no", "off")


def compiler() -> list[str]:
    """How the C++ compiler is called.

    Raises:
        UserError: $CXX cannot be read.
    """
    given = os.environ.get("CXX", "")
    try:
        return shlex.split(given) or ["c++"]
    except ValueError as problem:
        raise UserError(f"CXX={given}: {problem}; give the C++ compiler's name") from None


@cache
def load(name: str) -> None:
    """Register the operators of `NAME.cpp` with torch, building them if that was not done before (half a minute).

    Raises:
        UserError: the kernel cannot be built or loaded here.
    """
    source = Path(__file__).parent / f"{name}.cpp"
    command = _command(source)
    library = _cache() / f"{name}-{_key(source, command)}.so"
    if not library.exists():
        _build(command, library)
    try:
        torch.ops.load_library(str(library))
    except OSError as problem:
        raise UserError(
            f"{COMPILE}: {problem}; delete {library} and start again, or unset {COMPILE}"
        ) from None


def _command(source: Path) -> list[str]:
    """The compiler's command line, without the place of the result."""
    vectors = _VECTORS.get(torch.backends.cpu.get_cpu_capability(), [])
    home = Path(torch.__file__).parent
    places = (home / "include", home / "include" / "torch" / "csrc" / "api" / "include")
    headers = [flag for place in places for flag in ("-isystem", str(place))]
    libraries = ["-L", str(home / "lib"), "-lc10", "-ltorch_cpu", "-ltorch"]
    return [*compiler(), *_FLAGS, *vectors, *headers, str(source), *libraries]


def _key(source: Path, command: list[str]) -> str:
    """Changes with the source, with torch, with the system and with how it is compiled."""
    system = (platform.machine(), *platform.libc_ver())
    flags = [part for part in command if part != str(source)]
    text = "\0".join([source.read_text(), torch.__version__, *system, *flags])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cache() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "precis" / "kernels"
    except RuntimeError as problem:
        raise UserError(f"{COMPILE}: {problem}; name a folder in XDG_CACHE_HOME") from None


def _build(command: list[str], library: Path) -> None:
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=library.parent)
    except OSError as problem:
        raise UserError(f"{COMPILE}: {problem}; name a folder to build in with XDG_CACHE_HOME") from None
    with folder:
        made = Path(folder.name) / library.name
        try:
            done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
        except OSError as problem:
            raise _refusal(str(problem)) from None
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            raise _refusal(said[0] if said else f"{command[0]} ended with status {done.returncode}")
        made.replace(library)


def _refusal(why: str) -> UserError:
    return UserError(
        f"{COMPILE}: the C++ kernel of attention cannot be built here ({why}); install GCC 10 or newer (CXX names "
        f"it), or unset {COMPILE}"
    )
