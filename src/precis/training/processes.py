"""Processes that wait for each other, on whatever devices they train.

Accelerate's own barrier names a device of the machine's accelerator. Processes that keep to the CPU beside a GPU
(``ACCELERATE_USE_CPU=true``) have no such group, and torch refuses it: "No backend type associated with device type
cuda". Here they wait as processes of the CPU.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from accelerate import Accelerator
from torch import distributed


def wait_for_everyone(accelerator: Accelerator) -> None:
    """Return when every process of the run has called this."""
    if accelerator.device.type != "cpu":
        accelerator.wait_for_everyone()
    elif distributed.is_initialized():
        distributed.barrier()


@contextmanager
def main_process_first(accelerator: Accelerator) -> Iterator[None]:
    """What is inside is done by the main process, and then by the others: a download, a file that all need."""
    if not accelerator.is_main_process:
        wait_for_everyone(accelerator)
    yield
    if accelerator.is_main_process:
        wait_for_everyone(accelerator)
