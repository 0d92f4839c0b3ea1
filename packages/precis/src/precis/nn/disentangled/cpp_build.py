"""Compilation of a kernel: levels of processors, flags, the compiler's command line, and names of results.

This file depends neither on torch nor on the rest of the package: the build of a wheel loads it too (`setup.py`).
"""

import hashlib
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

_AVX2 = ["-mavx2", "-mfma"]
_AVX512 = [*_AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"]

LEVELS = {"AVX2": _AVX2, "AVX512": _AVX512}
"""A processor's capability, by torch's name -> the flags that enable it. A kernel detects bf16 itself."""

BUILD_SECONDS = 600
"""Time limit of the compiler, which usually takes half a minute."""

_FLAGS = ["-O3", "-std=c++20", "-shared", "-fPIC", "-fopenmp", "-fno-math-errno", "-fno-trapping-math"]


class KernelError(Exception):
    """A kernel cannot be built or loaded here; the message gives the reason, in one line.

    Args:
        known: an earlier process found and reported it.
        passing: the cause may be temporary (a full disk, no memory), so the failure is not recorded.
    """

    def __init__(self, why: str, *, known: bool = False, passing: bool = False) -> None:
        super().__init__(why)
        self.known, self.passing = known, passing


def compiler() -> list[str]:
    """Return the command of the C++ compiler: $CXX, else c++; raise `KernelError` if $CXX cannot be parsed."""
    given = os.environ.get("CXX", "")
    try:
        return shlex.split(given) or ["c++"]
    except ValueError as problem:
        raise KernelError(f"CXX={given}: {problem}; give the C++ compiler's name") from None


def command(source: Path, level: str, torch_home: Path) -> list[str]:
    """Return the compiler's command line, without the output path.

    Args:
        level: one of `LEVELS`.
        torch_home: the folder of torch's package, with its headers and libraries.

    Raises:
        KernelError: $CXX cannot be parsed.
    """
    places = (torch_home / "include", torch_home / "include" / "torch" / "csrc" / "api" / "include")
    headers = [flag for place in places for flag in ("-isystem", str(place))]
    libraries = ["-L", str(torch_home / "lib"), "-lc10", "-ltorch_cpu", "-ltorch"]
    return [*compiler(), *_FLAGS, *LEVELS[level], *headers, str(source), *libraries]


def digest(source: Path, *others: str) -> str:
    """Return sixteen letters that change with the source, the headers in its folder, and the other texts."""
    files = (source, *sorted(source.parent.glob("*.h")))
    text = "\0".join([*(file.read_text(encoding="utf-8") for file in files), *others])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def prebuilt(source: Path, level: str, torch_version: str) -> Path:
    """Return the path of a wheel's kernel: it fits this source and this release of torch, on CPU and CUDA alike."""
    release = torch_version.partition("+")[0]
    flags = digest(source, *_FLAGS, *LEVELS[level])
    return source.parent / "prebuilt" / f"{source.stem}-{flags}-{level}-torch{release}.so"


def check_compiler() -> None:
    """Check in a tenth of a second that the compiler exists, has its headers, and is GCC.

    torch runs on GCC's OpenMP; another compiler's would start its own threads.

    Raises:
        KernelError: one of these conditions is not met.
    """
    called = compiler()
    if "Free Software Foundation" not in _run([*called, "--version"]):
        raise KernelError(f"{called[0]} is not GCC")
    _run([*called, *_FLAGS, "-E", "-x", "c++", "-"], given="#include <vector>\n#include <omp.h>\n")


def build(command: list[str], library: Path) -> None:
    """Compile to `library`, which appears complete or not at all; its folder must exist.

    Raises:
        KernelError: the compiler fails, or the folder is not writable.
    """
    try:
        folder = tempfile.TemporaryDirectory(dir=library.parent)
    except OSError as problem:
        raise KernelError(f"{problem}; set XDG_CACHE_HOME to a writable folder", passing=True) from None
    with folder:
        made = Path(folder.name) / library.name
        _run([*command, "-o", str(made)])
        try:
            made.replace(library)
        except OSError as problem:
            raise KernelError(str(problem), passing=True) from None


# Compiler messages that blame the machine, not the source.
_PASSING = ("Killed", "No space left", "Cannot allocate", "virtual memory exhausted", "out of memory")


def _run(words: list[str], given: str = "") -> str:
    """Run a compiler and return its output, in English."""
    try:
        done = subprocess.run(
            words,
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=BUILD_SECONDS,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise KernelError(f"{words[0]} took more than {BUILD_SECONDS} seconds", passing=True) from None
    except OSError as problem:
        raise KernelError(str(problem), passing=not isinstance(problem, FileNotFoundError)) from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        passing = done.returncode < 0 or any(word in done.stderr for word in _PASSING)
        why = said[0].strip() if said else f"{words[0]} exited with status {done.returncode}"
        raise KernelError(why, passing=passing)
    return done.stdout
