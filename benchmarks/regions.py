"""Parallel regions, wall and processor seconds of decoding on a busy machine: `python -m benchmarks.regions`.

Threads wait for each other at the end of a region. A library between torch and GNU's OpenMP counts the regions.
Inside its one region our C++ step meets three times a layer more, by its own barrier (`meeting.h`). The models and
searches are those of `benchmarks.compare.decode` at batch 1, with 2 threads by default. A step's number is the
difference between 64 and 32 new tokens, divided by 32; it does not depend on what else the machine does. Then all
decoders take turns with 64 tokens. "operators" is the fast loop without C++ kernels. Names with int8 have weights in
8 bits. CTranslate2 always writes 64 tokens, so its regions are not counted. It needs Linux and a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

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
_FEW, _MANY = 32, 64  # new tokens
BEAMS = (1, 5)
DECODERS: Mapping[str, Mapping[str, str]] = {
    "precis": {},
    "operators": {"PRECIS_COMPILE": "0"},
    "transformers BART": {},
    "CTranslate2 BART": {},
    "precis int8": {},
    "operators int8": {"PRECIS_COMPILE": "0"},
    "CTranslate2 BART int8": {},
}


def build(folder: Path) -> Path:
    """Compile the counter against torch's OpenMP, and return its path."""
    import torch

    place = Path(torch.__file__).parent / "lib"
    openmp = next(iter(place.glob("libgomp*")), None)
    if openmp is None:
        sys.exit(f"{place}: torch lacks GNU OpenMP here; use a build of torch for Linux")
    source, library = folder / "counter.c", folder / "counter.so"
    source.write_text(_COUNTER, encoding="utf-8")
    command = ["cc", "-shared", "-fPIC", "-fopenmp", str(source), str(openmp), f"-Wl,-rpath,{place}", "-ldl"]
    subprocess.run([*command, "-o", str(library)], check=True)
    return library


def decoder(name: str) -> Callable[[int, int], object]:
    """Return what writes a number of tokens with a number of beams."""
    from benchmarks.compare import decode
    from precis.generation.fast.fast_decoder import FastDecoder
    from precis.generation.fast.packed_linear import AsGiven, Int8

    bits = "int8" if name.endswith("int8") else "fp32"
    if name.startswith("CTranslate2"):
        made = {
            beams: decode.ctranslate2(kind="bart", bits=bits, batch=1, beams=beams, encoder_layers=1)
            for beams in BEAMS
        }
        return lambda beams, _: made[beams]()
    inputs = decode.inputs_of(1)
    if name == "transformers BART":
        model = decode.model_of("bart", 1)
        return lambda beams, tokens: model.generate(
            **inputs, generation_config=decode.exact_config(beams, tokens=tokens)
        )
    loop = FastDecoder(decode.model_of("zcodepp", 1), Int8() if bits == "int8" else AsGiven())
    return lambda beams, tokens: loop(inputs, decode.exact_config(beams, tokens=tokens))


def serve(name: str, library: str) -> None:
    """Print the regions of a step for each search, then decode with each number of beams read, and print seconds."""
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    write = decoder(name)
    counter = ctypes.c_long.in_dll(ctypes.CDLL(library), "precis_regions")
    for beams in BEAMS:
        write(beams, _FEW)  # packs and warms up
        counts = []
        for tokens in (_FEW, _MANY):
            before = counter.value
            write(beams, tokens)
            counts.append(counter.value - before)
        print((counts[1] - counts[0]) / (_MANY - _FEW), flush=True)
    for line in sys.stdin:
        began, used = time.perf_counter(), time.process_time()
        write(int(line), _MANY)
        print(time.perf_counter() - began, time.process_time() - used, flush=True)


def start(name: str, library: Path, threads: int) -> subprocess.Popen[str]:
    """Start the process of a decoder."""
    variables = {**DECODERS[name], "LD_PRELOAD": str(library), "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "benchmarks.regions", "--serve", name, str(library)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env={**os.environ, **variables}, stdin=pipe, stdout=pipe, text=True)


def answer(process: subprocess.Popen[str], question: str = "") -> list[float]:
    """Return the numbers of the next line of a process, after a question."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(question)
    process.stdin.flush()
    return [float(number) for number in process.stdout.readline().split()]


def main() -> None:
    """Count and time all decoders, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4, help="turns of each decoder")
    parser.add_argument("--threads", type=int, default=2, help="threads of each decoder")
    parser.add_argument(
        "--only", nargs="+", choices=DECODERS, default=[*DECODERS], metavar="NAME", help="decoders"
    )
    parser.add_argument("--serve", nargs=2, metavar=("NAME", "LIBRARY"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        return serve(*asked.serve)
    print(
        f"{'decoder':<24}{'beams':>6}{'regions':>9}{'wall s':>9}{'least':>7}{'most':>7}{'CPU s':>8}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        processes = {name: start(name, library, asked.threads) for name in asked.only}
        regions = {(name, beams): answer(of)[0] for name, of in processes.items() for beams in BEAMS}
        for beams in BEAMS:
            turns = [
                {name: answer(of, f"{beams}\n") for name, of in processes.items()}
                for _ in range(asked.rounds)
            ]
            for name in processes:
                walls, used = zip(*(turn[name] for turn in turns), strict=True)
                count = "-" if name.startswith("CTranslate2") else f"{regions[name, beams]:.1f}"
                row = (
                    f"{name:<24}{beams:>6}{count:>9}{median(walls):>9.2f}{min(walls):>7.2f}{max(walls):>7.2f}"
                )
                print(f"{row}{median(used):>8.2f}", flush=True)
        for process in processes.values():
            process.communicate()


if __name__ == "__main__":
    main()
