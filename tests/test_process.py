"""What the C library keeps goes back to the system."""

import ctypes
import os
from pathlib import Path

import pytest

from precis.process import trim_heap


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
