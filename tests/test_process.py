"""Torch gets as many threads as the process may use; what the C library keeps goes back to the system."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from precis.process import trim_heap

PROGRAM = """
import sys, torch
from precis_text import cores
cores.available_cores = lambda: 3
from precis import process
from precis.process import use_threads
for calls in sys.argv[1:]:
    process._DECIDED.clear()  # as a new process has it
    torch.set_num_threads(8)
    exec(calls)
    print(torch.get_num_threads(), flush=True)
"""
DECIDED = {
    "use_threads(None)": 3,
    "use_threads(5)": 5,
    "use_threads(5); use_threads(None)": 5,
    "use_threads(None); torch.set_num_threads(6); use_threads(None)": 6,
    "torch.set_num_threads(1); use_threads(None)": 1,
}
FORKED = (
    "use_threads(None); from multiprocessing import get_context\n"
    "child = get_context('fork').Process(target=lambda: (use_threads(None), print(torch.get_num_threads())))\n"
    "child.start(); child.join()"
)


def threads_after(*calls: str, **variables: str) -> list[int]:
    """Return torch's number of threads after calls, in a process where 3 cores are available and torch sees 8."""
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    words = [sys.executable, "-c", PROGRAM, *calls]
    done = subprocess.run(words, capture_output=True, check=True, env=environment | variables)
    return [int(line) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_the_default_applies_once_and_a_number_always() -> None:
    assert dict(zip(DECIDED, threads_after(*DECIDED), strict=True)) == DECIDED


@pytest.mark.long
def test_a_variable_is_kept() -> None:
    assert threads_after("use_threads(None)", OMP_NUM_THREADS="6") == [6]


@pytest.mark.long
def test_a_forked_process_decides_for_itself() -> None:
    assert threads_after(FORKED) == [1, 3]


@pytest.mark.parametrize(
    ("said", "spins"), [({}, "3000"), ({"GOMP_SPINCOUNT": "70"}, "70"), ({"OMP_WAIT_POLICY": "PASSIVE"}, "0")]
)
def test_openmp_bounds_the_spinning_unless_the_user_says_how_to_wait(
    said: dict[str, str], spins: str
) -> None:
    library = next((Path(torch.__file__).parent / "lib").glob("libgomp*"), None)
    if library is None:
        pytest.skip("this torch has another OpenMP than GNU's")
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    environment |= {"OMP_DISPLAY_ENV": "VERBOSE", **said}
    loads = "import precis, ctypes, sys; ctypes.CDLL(sys.argv[1])"  # as `import torch` does, in a tenth of the time
    words = [sys.executable, "-c", loads, str(library)]
    done = subprocess.run(words, capture_output=True, check=True, env=environment, text=True)
    assert f"GOMP_SPINCOUNT = '{spins}'" in done.stderr


@pytest.mark.long
def test_loading_a_model_limits_the_threads() -> None:
    loading = "from precis.generation.model_loader import load_model; load_model('default')"
    assert threads_after(loading) == [3]


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library, which may keep what is free"
)
def test_what_is_free_between_what_is_in_use_is_given_back() -> None:
    size = 100_000  # below what glibc maps apart
    parts = [bytes(size) for _ in range(1000)]
    pinned = parts[::100]
    del parts
    kept = resident()
    trim_heap()
    assert kept - resident() > 500 * size
    assert len(pinned) == 10
