"""Writes down which functions of the sources are entered, also by the processes that a test starts.

`start` is called by the process that runs the tests, and by `sitecustomize` in those that it starts. All write into one
file. The number of the present test is in a file that all see: a process that outlives a test, such as the reader of
documents, then writes again what it enters.
"""

import mmap
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, FrameType

LOG, NUMBER = "log", "number"  # files of the folder
SITE = """
import os
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("tests_entering", {file!r})
entering = module_from_spec(spec)
spec.loader.exec_module(entering)
entering.start({folder!r}, {roots!r})
"""  # sitecustomize of the processes that tests start


def start(folder: str, roots: Sequence[str]) -> Callable[[FrameType, str, object], None]:
    """Write the file and the name of every function of the roots that this process enters from now on.

    Returns what notes one, for `sys.settrace`, which a test may set otherwise.
    """
    log = os.open(f"{folder}/{LOG}", os.O_WRONLY | os.O_APPEND)
    with open(f"{folder}/{NUMBER}", "rb") as file:  # noqa: PTH123 - pathlib takes every process longer to import
        number = mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ)
    places, now = tuple(roots), number[:]
    others: dict[int, CodeType] = {}  # the codes are kept, so that no other one gets their id
    entered: dict[int, CodeType] = {}

    def enter(frame: FrameType, event: str, _: object) -> None:
        nonlocal now
        code = frame.f_code
        if id(code) in others:
            return
        if number[:] != now:
            now = number[:]
            entered.clear()
        if id(code) in entered:
            return
        if not code.co_filename.startswith(places):
            others[id(code)] = code
            return
        entered[id(code)] = code
        os.write(log, f"{code.co_filename}\t{code.co_qualname}\n".encode())

    threading.settrace(enter)
    sys.settrace(enter)
    return enter
