"""A short form of the tests in the modes that this machine is not in: `python -m tests.modes`.

    mode            | stands for                          | how
    ----------------|-------------------------------------|---------------------------------------------------
    old-processor   | a CPU with neither AVX-512 nor bf16 | torch, oneDNN and NumPy are told to use AVX2 and no more
    bf16            | a CPU that multiplies in bf16       | every run computes under autocast to bf16
    no-kernel       | a machine without a C++ compiler    | attention uses only torch

The whole suite in a mode is `make test` with the mode's variables in the environment (`python -m tests.modes --list`).
`python -m tests.modes --perturb` runs the whole fast suite as the machine is, in the modes that it is not in, and with
sums in other orders, and lists every test whose outcome changes (`tests/perturbed.py`; five runs, half an hour).
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from precis.nn.disentangled.cpp_loader import COMPILE, is_ready
from precis.recipes.run_plan import PRECISION, native_precision
from tests import perturbed

MODES: Mapping[str, Mapping[str, str]] = {
    "old-processor": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    "bf16": {PRECISION: "bf16"},
    "no-kernel": {COMPILE: "0"},
}
REPORTS = Path("runs/perturbed")
SHORT = (
    "tests/nn",
    "tests/parity",
    "tests/generation",
    "tests/cli/test_end_to_end.py",
    "tests/cli/test_precision.py",
    "tests/cli/commands/test_ground_command.py",
    "tests/phases/train/test_prefix_tuning.py",
    "tests/experiments/test_prefix_study.py",
    "tests/training/test_resume.py",
)


def absent() -> list[str]:
    """Modes that `make test` does not cover on this machine as it is."""
    modern = "AVX512" in torch.backends.cpu.get_cpu_capability()
    return [
        *(["old-processor"] if modern or native_precision() == "bf16" else []),
        *(["bf16"] if native_precision() == "fp32" else []),
        *(["no-kernel"] if is_ready("disentangled") else []),
    ]


def here() -> str:
    """The mode that the machine is in, in one line."""
    kernel = "ready" if is_ready("disentangled") else "not ready"
    return (
        f"this machine: {os.cpu_count()} processors, CPU capability {torch.backends.cpu.get_cpu_capability()}, native "
        f"precision {native_precision()}, C++ kernel {kernel}; modes it is not in: {', '.join(absent()) or 'none'}"
    )


def run(mode: str, variables: Mapping[str, str], tests: tuple[str, ...]) -> int:
    """pytest's exit status for the tests in a mode."""
    print(f"mode {mode}: {' '.join(f'{name}={value}' for name, value in variables.items())}", flush=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "worksteal",
        "-m",
        "not slow and not gpu",
    ]
    return subprocess.run([*command, *tests], env={**os.environ, **variables}, check=False).returncode


def main() -> int:
    """Run the absent modes; 0 where all of them pass."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--list", action="store_true", help="print the modes and what sets them, and run nothing"
    )
    parser.add_argument("--here", action="store_true", help="print the machine's own mode, and run nothing")
    parser.add_argument(
        "--mode",
        choices=[*MODES, *perturbed.PERTURBATIONS],
        action="append",
        help="run this one, whatever the machine is",
    )
    parser.add_argument(
        "--perturb",
        action="store_true",
        help="run the fast suite with sums in other orders; 1 if a test's outcome changes; reports: runs/perturbed",
    )
    parser.add_argument("tests", nargs="*", help="with --perturb: these tests alone")
    asked = parser.parse_args()
    if asked.tests and not asked.perturb:
        parser.error("tests can be named with --perturb alone")
    known = {**MODES, **perturbed.PERTURBATIONS}
    if asked.list:
        for name, variables in known.items():
            print(name, *(f"{key}={value}" for key, value in variables.items()))
        return 0
    if asked.here:
        print(here())
        return 0
    if asked.perturb:
        chosen = asked.mode or [*absent(), *perturbed.PERTURBATIONS]
        return perturbed.run({name: known[name] for name in chosen}, asked.tests, REPORTS)
    return max((run(mode, known[mode], SHORT) for mode in asked.mode or absent()), default=0)


if __name__ == "__main__":
    sys.exit(main())
