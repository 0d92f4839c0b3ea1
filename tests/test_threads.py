"""Torch gets as many threads as the process may use, and keeps what the user sets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

PROGRAM = """
import torch
from precis_text import cores
cores.available_cores = lambda: 3
torch.set_num_threads(8)
from precis.threads import use_threads
{calls}
print(torch.get_num_threads())
"""


def threads_after(calls: str, **variables: str) -> int:
    """Return torch's number of threads in a process of its own where 3 cores are available, and torch sees 8."""
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    words = [sys.executable, "-c", PROGRAM.format(calls=calls)]
    done = subprocess.run(words, capture_output=True, check=True, env=environment | variables)
    return int(done.stdout)


@pytest.mark.parametrize(
    ("calls", "threads"),
    [
        ("use_threads(None)", 3),
        ("use_threads(5)", 5),
        ("use_threads(5); use_threads(None)", 5),
        ("use_threads(None); torch.set_num_threads(6); use_threads(None)", 6),
        ("torch.set_num_threads(1); use_threads(None)", 1),
    ],
)
def test_the_default_applies_once_and_a_number_always(calls: str, threads: int) -> None:
    assert threads_after(calls) == threads


def test_a_variable_is_kept() -> None:
    assert threads_after("use_threads(None)", OMP_NUM_THREADS="6") == 6


def test_a_forked_process_decides_for_itself() -> None:
    forked = (
        "use_threads(None); from multiprocessing import get_context; from precis_text import cores\n"
        "child = get_context('fork').Process(target=lambda: (use_threads(None), print(torch.get_num_threads())))\n"
        "child.start(); child.join(); raise SystemExit"
    )
    assert threads_after(forked) == 1


@pytest.mark.parametrize(
    ("said", "spins"), [({}, "3000"), ({"GOMP_SPINCOUNT": "70"}, "70"), ({"OMP_WAIT_POLICY": "PASSIVE"}, "0")]
)
def test_openmp_bounds_the_spinning_unless_the_user_says_how_to_wait(
    said: dict[str, str], spins: str
) -> None:
    if "libgomp" not in " ".join(_libraries()):
        pytest.skip("this torch has another OpenMP than GNU's")
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    environment |= {"OMP_DISPLAY_ENV": "VERBOSE", **said}
    words = [sys.executable, "-c", "import precis, torch"]
    done = subprocess.run(words, capture_output=True, check=True, env=environment, text=True)
    assert f"GOMP_SPINCOUNT = '{spins}'" in done.stderr


def _libraries() -> list[str]:
    """Return the names of the files in torch's folder of libraries."""
    return [file.name for file in (Path(torch.__file__).parent / "lib").iterdir()]


def test_loading_a_model_limits_the_threads() -> None:
    loading = "from precis.generation.model_loader import load_model; load_model('default')"
    assert threads_after(loading) == 3
