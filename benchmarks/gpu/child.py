"""A stage's own process: python -m benchmarks.gpu.child MODULE:FUNCTION ROWS SECONDS [--dry]. Started by `stages`."""

import argparse
import importlib
import sys
import time
from pathlib import Path

import torch

from benchmarks.gpu.device import Device
from benchmarks.gpu.notes import Notes
from benchmarks.gpu.race import DeviceLostError, StageRun
from benchmarks.gpu.stages import DEVICE_LOST


def main() -> None:
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("make")
    parser.add_argument("rows", type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    module, function = options.make.split(":")
    device = Device("cpu" if options.dry else "cuda")
    if device.on_card:
        torch.cuda.set_device(0)
    run = StageRun(
        device=device, notes=Notes(options.rows), deadline=began + options.seconds, dry=options.dry
    )
    try:
        getattr(importlib.import_module(module), function)(run)
    except DeviceLostError:
        sys.exit(DEVICE_LOST)


if __name__ == "__main__":
    main()
