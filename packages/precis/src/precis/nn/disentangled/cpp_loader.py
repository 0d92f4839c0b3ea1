"""Find or build the C++ kernels: prebuilt in a wheel, or built once by the machine's own compiler and cached.

    PRECIS_COMPILE | effect
    ---------------|--------------------------------------------------------------------------------------------
    unset          | the kernel if it exists or can be built; else only torch, reported once in one line
    0              | only torch
    1              | the kernel, or an error that gives the reason

A process decides once, at its first use, and keeps the choice: the paths differ by rounding. If several processes start
at once, one builds and the others wait for it. A failed build is not repeated until the source, torch or the
compiler changes, or on request: `python -m precis.nn.disentangled.cpp_loader`, which `make install` calls,
builds the kernels now and prints their paths.

torch's own `cpp_extension.load` needs ninja on the path, and a process killed during a build leaves a
lock on which all later ones wait forever. Here the system releases the lock when its process ends.
"""

import json
import os
import platform
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import cache
from pathlib import Path
from typing import IO

import torch

from precis.nn.disentangled import cpp_build
from precis.nn.disentangled.cpp_build import BUILD_SECONDS, KernelError
from precis_text.bounded_io import parse_json
from precis_text.errors import UserError

COMPILE = "PRECIS_COMPILE"
"""The environment variable that enables or disables kernels; `CXX` names the compiler, else c++."""


class Wish(Enum):
    """The setting of `PRECIS_COMPILE`."""

    never = "never"
    where_possible = "where possible"
    always = "always"


class _UnknownMachineError(KernelError):
    """The kernel does not support this processor or system, which a user cannot fix."""


def wish() -> Wish:
    """Return the current setting of `PRECIS_COMPILE`."""
    said = os.environ.get(COMPILE, "").lower()
    if said in ("", "auto"):
        return Wish.where_possible
    return Wish.never if said in ("0", "false", "no", "off") else Wish.always


def is_ready(name: str, wanted: Wish | None = None) -> bool:
    """Return whether this process computes with the kernel; the first call may build it (half a minute).

    Args:
        wanted: the setting; if None, that of the environment.

    Raises:
        UserError: the kernel is required (PRECIS_COMPILE=1) and not available.
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
            _tell_once(
                f"attention uses only torch, which is slower: no C++ kernel ({problem}); try again with "
                f"`python -m precis.nn.disentangled.cpp_loader`, or set {COMPILE}=0 to use torch"
            )
        return False
    return True


def load(name: str) -> Path:
    """Register the operators of `cpp/NAME.cpp` with torch, building them if necessary; return their path.

    Raises:
        UserError: the kernel cannot be built or loaded here.
    """
    try:
        return _load(name, again=True)
    except KernelError as problem:
        raise UserError(
            f"{COMPILE}: the C++ kernel of {_purpose(name)} cannot be built here ({problem}); install GCC 10 or newer "
            f"(CXX names it), or set {COMPILE}=0"
        ) from None


KERNELS = {"disentangled": "attention", "decoding": "decoding steps"}
"""The name of each kernel's source -> what it computes."""

_loaded: dict[str, Path] = {}


def _purpose(name: str) -> str:
    return KERNELS.get(name, name)


def _load(name: str, *, again: bool) -> Path:
    """Load the kernel, or raise `KernelError`; `again` builds it even after an earlier failure."""
    if name not in _loaded:
        source, level = Path(__file__).parent / "cpp" / f"{name}.cpp", _level()
        try:
            _loaded[name] = _prebuilt(source, level) or _built(source, level, again=again)
        except OSError as problem:
            raise KernelError(f"{problem}; set XDG_CACHE_HOME to your own folder") from None
    return _loaded[name]


def _level() -> str:
    """Return the level that torch's own kernels use: a network home serves machines of several kinds."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        raise _UnknownMachineError("it is for x86-64 Linux with glibc")
    capability = torch.backends.cpu.get_cpu_capability()
    if capability not in cpp_build.LEVELS:
        raise _UnknownMachineError("it needs a processor with AVX2")
    return capability


def _prebuilt(source: Path, level: str) -> Path | None:
    """Return the wheel's library, if it has one for this torch that this system can load."""
    library = cpp_build.prebuilt(source, level, torch.__version__)
    if not library.exists():
        return None
    try:
        torch.ops.load_library(str(library))
    except OSError:  # built for a newer system: the machine's own compiler may do better
        return None
    return library


def _built(source: Path, level: str, *, again: bool) -> Path:
    """Return the cache's library; build it if it is missing."""
    command = cpp_build.command(source, level, Path(torch.__file__).parent)
    flags = [part for part in command if part != str(source)]
    key = cpp_build.digest(source, torch.__version__, platform.machine(), *platform.libc_ver(), *flags)
    library = _cache() / f"{source.stem}-{key}.so"
    _make_folder(library.parent)
    _refuse_what_others_can_write(library.parent)  # before the lock, a link there would lead to a user's file
    if not library.exists():
        _build(command, library, again=again)
    _refuse_what_others_can_write(library.parent, library)
    try:
        torch.ops.load_library(str(library))
    except OSError as problem:
        raise KernelError(f"{problem}; delete {library} and start again") from None
    return library


def _refuse_what_others_can_write(folder: Path, *files: Path) -> None:
    """Raise `KernelError` if another user could write or replace the folder of libraries, or one in it.

    A library is code. So it and its folder must be ours, and so must be every link on the way. The folders above may be
    shared only if no other user can rename what belongs to others (the sticky bit, as `/tmp` has).
    """
    strict = {folder.absolute(), folder.resolve(), *files}
    for place in (*strict, *folder.absolute().parents, *folder.resolve().parents):
        state = place.lstat()
        is_ours = state.st_uid in (0, os.getuid())
        if stat.S_ISLNK(state.st_mode):
            is_safe = is_ours
        elif place in strict:
            is_safe = is_ours and not state.st_mode & 0o022
        else:
            is_safe = bool(state.st_mode & stat.S_ISVTX) or (is_ours and not _others_write(state))
        if not is_safe:
            raise KernelError(
                f"{place} can be written by others, who could insert code; set XDG_CACHE_HOME to your own "
                "folder"
            )


def _others_write(state: os.stat_result) -> bool:
    """Return whether others can write a folder; the user's own group, where each user has one, does not count."""
    by_group = bool(state.st_mode & stat.S_IWGRP) and state.st_gid != os.getgid()
    return by_group or bool(state.st_mode & stat.S_IWOTH)


def _cache() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "precis" / "kernels"
    except RuntimeError as problem:
        raise KernelError(f"{problem}; set XDG_CACHE_HOME to a folder") from None


def _build(command: list[str], library: Path, *, again: bool) -> None:
    folder = library.parent
    if not os.access(folder, os.W_OK):
        raise KernelError(f"{folder} is not writable; set XDG_CACHE_HOME to a writable folder")
    refusal = _Refusal(library.with_suffix(".failed"), command[0])
    came = time.time()
    with _alone(library.with_suffix(".lock")):
        if library.exists():
            return
        refusal.heed(since=came if again else 0.0)
        try:
            cpp_build.check_compiler()
            _tell_building(library)
            cpp_build.build(command, library)
            library.chmod(0o755)
        except KernelError as problem:
            if not problem.passing:
                refusal.note(str(problem))
            raise
        refusal.forget()


def _make_folder(folder: Path) -> None:
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)  # whatever the umask: `_refuse_what_others_can_write`
    except OSError as problem:
        raise KernelError(f"{problem}; set XDG_CACHE_HOME to a writable folder") from None


class _Refusal:
    """A note next to the cache's libraries: the reason why this compiler could not build this source."""

    def __init__(self, file: Path, program: str) -> None:
        self._file = file
        place = shutil.which(program)
        self._compiler = [program, place, Path(place).stat().st_mtime_ns if place else 0]

    def heed(self, *, since: float) -> None:
        """Raise `KernelError` if a note is newer than `since`."""
        try:
            noted = parse_json(self._file.read_bytes())
            is_new = self._file.stat().st_mtime >= since
            compiler, why = noted["compiler"], str(noted["why"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        if is_new and compiler == self._compiler:
            raise KernelError(why, known=True)

    def note(self, why: str) -> None:
        """Write the note, if the folder is writable."""
        with suppress(OSError):
            self._file.write_text(json.dumps({"why": why, "compiler": self._compiler}), encoding="utf-8")

    def forget(self) -> None:
        """Remove the note."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let one process in at a time, if locks work; raise `KernelError` if another holds the lock for too long."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # not truncated: it may be a user's file
    try:
        lock = os.fdopen(os.open(file, flags, 0o666), "r+b")
    except OSError:  # a link, or the file belongs to another user: two processes may then build the same
        yield
        return
    with lock:
        _wait_for(lock)
        yield


def _wait_for(lock: IO[bytes]) -> None:
    import fcntl  # only reached on Linux

    deadline = time.monotonic() + BUILD_SECONDS
    while time.monotonic() < deadline:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.1)
        except OSError:  # locks are not supported
            return
    raise KernelError(f"another process has been building it for {BUILD_SECONDS} seconds")


def _tell_building(library: Path) -> None:
    name = library.name.partition("-")[0]
    _tell(
        f"building the C++ kernel of {_purpose(name)}, once, about half a minute; stored in {library.parent} "
        f"({COMPILE}=0 disables it)"
    )


@cache
def _tell_once(line: str) -> None:
    """Print a line that several kernels have in common."""
    _tell(line)


def _tell(line: str) -> None:
    print(f"precis: {line}", file=sys.stderr, flush=True)


def main() -> int:
    """Build the kernels and return the exit status. Without a compiler it is 0, unless the kernel is required."""
    if wish() is Wish.never:
        print(f"precis: {COMPILE} disables the C++ kernel")
        return 0
    try:
        for name in KERNELS:
            print(f"precis: the C++ kernel of {_purpose(name)} is {load(name)}")
    except UserError as problem:
        print(f"precis: {problem}", file=sys.stderr)
        return 2 if wish() is Wish.always else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
