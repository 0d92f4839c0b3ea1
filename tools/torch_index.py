"""Print the package index that `make install` takes torch from, or nothing for pip's own.

PyPI's torch for Linux comes with several gigabytes of CUDA. Without an NVIDIA device the index of CPU builds is printed
if it can be reached. The choice and its reason go to standard error. It uses only the standard library, because it runs
before anything is installed.
"""

import platform
import shutil
import subprocess
import sys
from urllib.error import URLError
from urllib.request import urlopen

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_SECONDS = 15


def has_nvidia_device() -> bool:
    """Test whether the driver lists a device."""
    if shutil.which("nvidia-smi") is None:
        return False
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return b"GPU" in listed.stdout


def can_reach(index: str) -> bool:
    """Test whether the index answers for torch."""
    try:
        with urlopen(f"{index}/torch/", timeout=_SECONDS) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError, ValueError):
        return False


def choose(index: str = CPU_INDEX) -> tuple[str, str]:
    """Choose the index, or "" for pip's own, and return it with the reason."""
    if platform.system() != "Linux":
        return "", "torch: pip's own build"
    if has_nvidia_device():
        return "", "torch: the build with CUDA, for the NVIDIA device that is here"
    if can_reach(index):
        return index, f"torch: the CPU build from {index}, because no NVIDIA device was found"
    return "", f"torch: {index} cannot be reached, so pip's own build is taken; it may come with CUDA"


if __name__ == "__main__":
    chosen, why = choose(*sys.argv[1:])
    print(why, file=sys.stderr)
    print(chosen)
