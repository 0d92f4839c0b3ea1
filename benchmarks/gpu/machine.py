"""Stage "machine": the card and the versions, and what a large matrix product reaches, in each number format.

The peak of a format is the fastest median over the sizes. It is what shares of the peak are shares of: a card's data
sheet counts a clock that it does not hold.
"""

import shutil
import statistics
import subprocess
from collections.abc import Callable
from importlib import metadata
from typing import Any

import torch

from benchmarks.compare.machine import describe
from benchmarks.gpu.device import facts
from benchmarks.gpu.race import StageRun

SEED = 0
_SIZES, _TOY_SIZES = (4096, 8192, 16_384), (128,)
_ROUNDS, _TOY_ROUNDS = 5, 2
_TURN_FLOPS = 2e13  # about 30 ms of an H100 in bf16
_FORMATS = {
    "bf16": (torch.bfloat16, "highest"),
    "fp16": (torch.float16, "highest"),
    "tf32": (torch.float32, "high"),
    "fp32": (torch.float32, "highest"),
}
_PACKAGES = ("triton", "disentangled-flash", "accelerate", "numpy")


def stage(run: StageRun) -> None:
    """Measure the rows "machine" and "peak of matrix products"."""
    run.attempt("machine", "facts", _facts)
    for name in _FORMATS:
        run.attempt("peak of matrix products", name, lambda name=name: _peak(name, run))  # type: ignore[misc]


def _facts() -> dict[str, Any]:
    found = {**facts(), **_driver(), **describe(), "seed": SEED}
    found |= {package: _version(package) for package in _PACKAGES}
    return {**found, "said": "; ".join(f"{name} {value}" for name, value in found.items())}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _driver() -> dict[str, str]:
    """Ask NVIDIA's tool for driver, power limit and highest clock; return nothing if the tool is missing."""
    tool = shutil.which("nvidia-smi")
    if tool is None or not torch.cuda.is_available():
        return {}
    asked = ("driver_version", "power.limit", "clocks.max.sm")
    try:
        done = subprocess.run(
            [tool, f"--query-gpu={','.join(asked)}", "--format=csv,noheader", "--id=0"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (subprocess.SubprocessError, OSError):
        return {}
    return dict(zip(asked, (part.strip() for part in done.stdout.split(",")), strict=False))


def _peak(name: str, run: StageRun) -> dict[str, Any]:
    """Measure the TFLOP/s of a square product, by size."""
    dtype, precision = _FORMATS[name]
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        by_size = {str(size): _products(size, dtype, run) for size in (_TOY_SIZES if run.dry else _SIZES)}
    finally:
        torch.set_float32_matmul_precision(before)
    medians = {size: statistics.median(rounds) for size, rounds in by_size.items()}
    best = max(medians, key=lambda size: medians[size])
    rounds = by_size[best]
    return {
        "tflops": medians[best],
        "tflops_low": min(rounds),
        "tflops_high": max(rounds),
        "size": int(best),
        "by_size": by_size,
        "said": f"{medians[best]:.4g} TFLOP/s ({min(rounds):.4g}-{max(rounds):.4g}) at {best} x {best}",
    }


def _products(size: int, dtype: torch.dtype, run: StageRun) -> list[float]:
    left, right = _random(size, dtype, run.device.kind), _random(size, dtype, run.device.kind)
    out = torch.empty_like(left)
    flops = 2 * size**3
    count = 1 if run.dry else max(1, round(_TURN_FLOPS / flops))
    product: Callable[[], object] = lambda: torch.mm(left, right, out=out)  # noqa: E731
    product()
    rounds = _TOY_ROUNDS if run.dry else _ROUNDS
    return [flops / run.device.time_ms(product, count) / 1e9 for _ in range(rounds)]


def _random(size: int, dtype: torch.dtype, kind: str) -> torch.Tensor:
    generator = torch.Generator(kind).manual_seed(SEED)
    return torch.randn(size, size, device=kind, dtype=torch.float32, generator=generator).to(dtype)
