"""Parallel regions of a decoding step: `python -m benchmarks.regions`.

Threads wait for each other at the end of a region. A library between torch and GNU's OpenMP counts the regions. Inside
its one region our C++ step meets three times a layer more, by its own barrier (`cpp/barrier.h`). The models and searches are those of `benchmarks.compare.decode` at batch 1, with 2 threads. A step's
number is the difference between 64 and 32 new tokens, divided by 32. "operators" is the lean loop without our C++
kernels. It needs Linux and a C compiler. The numbers do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

_COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
long precis_regions;
void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags) {
  static void (*next)(void (*)(void *), void *, unsigned, unsigned);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "GOMP_parallel");
  if ((threads ? threads : (unsigned)omp_get_max_threads()) > 1) ++precis_regions;
  next(work, data, threads, flags);
}
"""
_THREADS = 2
_FEW, _MANY = 32, 64  # new tokens


def build(folder: Path) -> Path:
    """Compile the counter against torch's OpenMP, and return its path."""
    import torch

    place = Path(torch.__file__).parent / "lib"
    openmp = next(iter(place.glob("libgomp*")), None)
    if openmp is None:
        sys.exit(f"{place}: torch has no GNU OpenMP here; use a build of torch for Linux")
    source, library = folder / "counter.c", folder / "counter.so"
    source.write_text(_COUNTER, encoding="utf-8")
    command = ["cc", "-shared", "-fPIC", "-fopenmp", str(source), str(openmp), f"-Wl,-rpath,{place}", "-ldl"]
    subprocess.run([*command, "-o", str(library)], check=True)
    return library


def of_step(library: Path, decode: Callable[[int], object]) -> float:
    """Return the regions of one step of a decoder that writes a number of tokens."""
    counter = ctypes.c_long.in_dll(ctypes.CDLL(str(library)), "precis_regions")
    decode(_FEW)  # packs and warms up
    found = []
    for tokens in (_FEW, _MANY):
        before = counter.value
        decode(tokens)
        found.append(counter.value - before)
    few, many = found
    return (many - few) / (_MANY - _FEW)


def count(name: str, library: Path) -> None:
    """Print the counts of a decoder, for each search."""
    import torch

    from benchmarks.compare import decode
    from precis.generation.fast.fast_decoder import FastDecoder
    from precis.generation.fast.packed_linear import AsGiven

    torch.set_num_threads(_THREADS)
    kind = "bart" if name == "transformers BART" else "zcodepp"
    model, inputs = decode.model_of(kind, 1), decode.inputs_of(1)
    loop = FastDecoder(model, AsGiven())
    for beams in (1, 5):

        def written(tokens: int, beams: int = beams) -> object:
            config = decode.exact_config(beams, tokens=tokens)
            return (
                loop(inputs, config)
                if kind == "zcodepp"
                else model.generate(**inputs, generation_config=config)
            )

        print(f"{name:<20}{beams:>6}{of_step(library, written):>10.1f}", flush=True)


def main() -> None:
    """Count each decoder in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", nargs=2, metavar=("NAME", "LIBRARY"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.count:
        name, library = asked.count
        return count(name, Path(library))
    print(f"{'decoder':<20}{'beams':>6}{'regions':>10}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        for name in ("precis", "operators", "transformers BART"):
            setting = {"PRECIS_COMPILE": "0"} if name == "operators" else {}
            environment = {
                **os.environ,
                **setting,
                "LD_PRELOAD": str(library),
                "OMP_NUM_THREADS": str(_THREADS),
            }
            command = [sys.executable, "-m", "benchmarks.regions", "--count", name, str(library)]
            subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()
