"""Find or build the C++ kernels: prebuilt in a wheel, or built once by the machine's own compiler and cached.

    PRECIS_COMPILE | what happens
    ---------------|--------------------------------------------------------------------------------------------
    unset          | the kernel where it is there or can be built; else torch alone, said once in one line
    0              | torch alone
    1              | the kernel, or an error that says why not

A process decides once, at its first use, and stays with it: the ways differ by rounding. Of processes that start at
once one builds and the others wait for it. What could not be built is not tried again until the source, torch or the
compiler changes, or somebody asks for it: `python -m precis.nn.disentangled.kernels`, which `make install` calls,
builds the kernel now and says where it is.

torch's own `cpp_extension.load` would need ninja on the path, and a process that is killed while it builds leaves a
lock on which all later ones wait for ever. Here the lock is the system's and ends with its process.
"""

import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import cache
from pathlib import Path
from typing import IO

import torch

from precis.errors import UserError
from precis.nn.disentangled import compiling
from precis.nn.disentangled.compiling import BUILD_SECONDS, KernelError
from precis.untrusted import parse_json

COMPILE = "PRECIS_COMPILE"
"""The variable of the environment that says whether kernels are wanted; `CXX` names the compiler, else c++."""


class Wish(Enum):
    """What the environment says."""

    never = "never"
    where_possible = "where possible"
    always = "always"


class _UnknownMachineError(KernelError):
    """There is no kernel for this processor or system, which a user cannot mend."""


def wish() -> Wish:
    """What `PRECIS_COMPILE` says now."""
    said = os.environ.get(COMPILE, "").lower()
    if said in ("", "auto"):
        return Wish.where_possible
    return Wish.never if said in ("0", "false", "no", "off") else Wish.always


def is_ready(name: str, wanted: Wish | None = None) -> bool:
    """Whether this process computes with the kernel; the first call may build it (half a minute).

    Args:
        wanted: what is asked for; if None, what the environment says.

    Raises:
        UserError: the kernel is insisted on (PRECIS_COMPILE=1) and cannot be had.
    """
    return _is_ready(name, wish() if wanted is None else wanted)


@cache
def _is_ready(name: str, wanted: Wish) -> bool:
    if wanted is Wish.never:
        return False
    if wanted is Wish.always:
        load(name)
        return True
    try:
        _load(name, again=False)
    except KernelError as problem:
        if not problem.known and not isinstance(problem, _UnknownMachineError):
            _tell(
                f"attention is computed by torch alone, more slowly: no C++ kernel ({problem}). Try again with "
                f"`python -m precis.nn.disentangled.kernels`; {COMPILE}=0 asks for none"
            )
        return False
    return True


def load(name: str) -> Path:
    """Register the operators of `cpp/NAME.cpp` with torch, building them if need be; return where they are.

    Raises:
        UserError: the kernel cannot be built or loaded here.
    """
    try:
        return _load(name, again=True)
    except KernelError as problem:
        raise UserError(
            f"{COMPILE}: the C++ kernel of attention cannot be built here ({problem}); install GCC 10 or newer (CXX "
            f"names it), or set {COMPILE}=0"
        ) from None


_loaded: dict[str, Path] = {}


def _load(name: str, *, again: bool) -> Path:
    """Load the kernel, or raise `KernelError`; `again` builds it even if that failed before."""
    if name not in _loaded:
        source, level = Path(__file__).parent / "cpp" / f"{name}.cpp", _level()
        try:
            _loaded[name] = _prebuilt(source, level) or _built(source, level, again=again)
        except OSError as problem:
            raise KernelError(f"{problem}; name a folder of your own in XDG_CACHE_HOME") from None
    return _loaded[name]


def _level() -> str:
    """The level that torch's own kernels use: a home on a network serves machines of several kinds."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        raise _UnknownMachineError("it is for x86-64 Linux with glibc")
    capability = torch.backends.cpu.get_cpu_capability()
    if capability not in compiling.LEVELS:
        raise _UnknownMachineError("it needs a processor with AVX2")
    return capability


def _prebuilt(source: Path, level: str) -> Path | None:
    """The wheel's library, if it has one for this torch that this system can load."""
    library = compiling.prebuilt(source, level, torch.__version__)
    if not library.exists():
        return None
    try:
        torch.ops.load_library(str(library))
    except OSError:  # made for a newer system: the machine's own compiler may do better
        return None
    return library


def _built(source: Path, level: str, *, again: bool) -> Path:
    """The cache's library, built if there is none."""
    command = compiling.command(source, level, Path(torch.__file__).parent)
    flags = [part for part in command if part != str(source)]
    key = compiling.digest(source, torch.__version__, platform.machine(), *platform.libc_ver(), *flags)
    library = _cache() / f"{source.stem}-{key}.so"
    if not library.exists():
        _build(command, library, again=again)
    _refuse_what_others_can_write(library)
    try:
        torch.ops.load_library(str(library))
    except OSError as problem:
        raise KernelError(f"{problem}; delete {library} and start again") from None
    return library


def _refuse_what_others_can_write(library: Path) -> None:
    """Raise `KernelError` for a library that somebody else could have put there: it is code."""
    for place in (library.parent, library):
        state = place.stat()
        if state.st_uid not in (0, os.getuid()) or state.st_mode & 0o022:
            raise KernelError(
                f"{place} can be written by others, who could put their code there; name a folder of your own in "
                "XDG_CACHE_HOME"
            )


def _cache() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "precis" / "kernels"
    except RuntimeError as problem:
        raise KernelError(f"{problem}; name a folder in XDG_CACHE_HOME") from None


def _build(command: list[str], library: Path, *, again: bool) -> None:
    folder = library.parent
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)  # whatever the umask: `_refuse_what_others_can_write`
    except OSError as problem:
        raise KernelError(f"{problem}; name a folder to build in with XDG_CACHE_HOME") from None
    if not os.access(folder, os.W_OK):
        raise KernelError(f"{folder} cannot be written to; name a folder to build in with XDG_CACHE_HOME")
    refusal = _Refusal(library.with_suffix(".failed"), command[0])
    came = time.time()
    with _alone(library.with_suffix(".lock")):
        if library.exists():
            return
        refusal.heed(since=came if again else 0.0)
        try:
            compiling.check_compiler()
            _tell_building(folder)
            compiling.build(command, library)
            library.chmod(0o755)
        except KernelError as problem:
            if not problem.passing:
                refusal.note(str(problem))
            raise
        refusal.forget()


class _Refusal:
    """A note beside the cache's libraries: why this compiler could not build this source."""

    def __init__(self, file: Path, program: str) -> None:
        self._file = file
        place = shutil.which(program)
        self._compiler = [program, place, Path(place).stat().st_mtime_ns if place else 0]

    def heed(self, *, since: float) -> None:
        """Raise `KernelError` if there is a note from after the moment `since`."""
        try:
            noted = parse_json(self._file.read_bytes())
            is_new = self._file.stat().st_mtime >= since
            compiler, why = noted["compiler"], str(noted["why"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        if is_new and compiler == self._compiler:
            raise KernelError(why, known=True)

    def note(self, why: str) -> None:
        """Write the note, if the folder can be written to."""
        with suppress(OSError):
            self._file.write_text(json.dumps({"why": why, "compiler": self._compiler}), encoding="utf-8")

    def forget(self) -> None:
        """Remove the note."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let one process at a time in; if the file system has no locks, two may build the same.

    Raises:
        KernelError: another process holds the lock for longer than a build may take.
    """
    try:
        lock = file.open("w")
    except OSError:  # of somebody else, who left it: two may then build the same
        yield
        return
    with lock:
        _wait_for(lock)
        yield


def _wait_for(lock: IO[str]) -> None:
    import fcntl  # Linux is all that comes here

    deadline = time.monotonic() + BUILD_SECONDS
    while time.monotonic() < deadline:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.1)
        except OSError:  # no locks here
            return
    raise KernelError(f"another process has been building it for {BUILD_SECONDS} seconds")


def _tell_building(folder: Path) -> None:
    _tell(
        f"building the C++ kernel of attention, once, about half a minute; it is kept in {folder} ({COMPILE}=0 asks "
        "for none)"
    )


def _tell(line: str) -> None:
    print(f"precis: {line}", file=sys.stderr, flush=True)


def main() -> int:
    """Build the kernel and return the exit status. Without a compiler that is 0, unless the kernel is insisted on."""
    if wish() is Wish.never:
        print(f"precis: {COMPILE} asks for no C++ kernel")
        return 0
    try:
        print(f"precis: the C++ kernel of attention is {load('disentangled')}")
    except UserError as problem:
        print(f"precis: {problem}", file=sys.stderr)
        return 2 if wish() is Wish.always else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
