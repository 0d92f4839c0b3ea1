"""The library's kernels give the plain path's numbers, in Triton's interpreter on the CPU."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("interpreted_flash.py")


@pytest.mark.skipif(
    importlib.util.find_spec("disentangled_flash") is None or importlib.util.find_spec("triton") is None,
    reason="needs the extra `cuda` and Triton, which are on Linux only",
)
@pytest.mark.slow
def test_kernels_in_the_interpreter_give_the_plain_path():
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        str(CASES),
    ]
    ran = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[3], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
