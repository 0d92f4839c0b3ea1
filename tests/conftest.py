"""Shared by all tests: `tests/` importable (conformance suite, tiny models), no network, and one thread a process, so
that parallel workers do not fight over the cores."""

import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import torch

from precis.nn.disentangled import kernels

torch.set_num_threads(1)
if kernels.wish() is not kernels.Wish.never:  # now, not in the middle of a test that looks at what is printed
    kernels.is_ready("disentangled")
