"""The process that reads documents. It uses no network, writes no file, and ends with its input.

    precis -> worker:  a line of JSON {"module": ..., "size": bytes, "seconds": processor time}, then the bytes
    worker -> precis:  a line of JSON: {"passages": [...]} or {"problem": ...}

A malicious document may crash its reader, so it is read here, where the system limits time and memory. The process
starts no other one but Tesseract, which inherits these limits.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
import warnings
from importlib import import_module
from typing import Any

from precis_text.documents import recognition
from precis_text.documents.conservation import counted
from precis_text.documents.passages import Passages
from precis_text.errors import UserError, first_line

MEMORY = 768 << 20  # bytes
_FORBIDDEN = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "urllib.", "shutil.",
)  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse operations that no document reader needs."""
    if event in ("subprocess.Popen", "os.posix_spawn") and arguments[0] == recognition.PROGRAM is not None:
        return
    opens = event == "open" and isinstance(arguments[2], int) and not isinstance(arguments[0], int)
    writes = opens and arguments[2] & _WRITES  # a number is a pipe that is open already
    if writes or event.startswith(_FORBIDDEN):
        raise PermissionError(f"reading a document attempted {event}, which is not allowed")


def _bound_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _bound_time(seconds: float) -> None:
    """Let the system end this process after `seconds` more of processor time."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def _answer(module: str, content: bytes) -> dict[str, Any]:
    try:
        read: Passages | list[Passages] = import_module(f"precis_text.documents.{module}").read(content)
        documents = counted(module, content, read if isinstance(read, list) else [read])
    except UserError as error:
        return {"problem": str(error)}
    except MemoryError:
        return {
            "problem": f"takes more than {MEMORY >> 20} MiB of memory to read; it is damaged or malicious"
        }
    except RecursionError:
        return {"problem": "is nested too deeply to read; it is damaged or malicious"}
    except Exception as error:
        return {"problem": f"is damaged: {first_line(error)}; save or download it again"}
    if not any(passages.text.strip() for passages in documents):
        return {"problem": "contains no text"}
    return {"passages": [passages.to_dict() for passages in documents]}


def main() -> None:
    """Read documents until the input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep the output of libraries out of the answers
    warnings.simplefilter("ignore")
    sys.setswitchinterval(1)
    _bound_memory()
    sys.addaudithook(_watch)
    while line := requests.readline():
        request = json.loads(line)
        content = requests.read(request["size"])
        _bound_time(request["seconds"])
        answer = json.dumps(_answer(request["module"], content)).encode()
        answers.write(answer + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
