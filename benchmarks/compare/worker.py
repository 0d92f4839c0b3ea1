"""A contender's own process: JSON lines in, JSON lines out. Started by `benchmarks.compare.process`, not by hand.

{"do": "prepare", "make": "module:function", "arguments": {...}, "threads": 2}   build, one pass to warm up
{"do": "time", "seconds": 0.3}     passes until these seconds are over, at least one
{"do": "memory", "tensors": true}  one pass; peak of the process above what it held before, and of its tensors
{"do": "release"}                  forget what was prepared

An error is an answer too: {"error": "ValueError: ...", "unable": false}; unable where it says what the user can mend.
"""

import ctypes
import gc
import importlib
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from benchmarks.compare.machine import Moment, reset_peak, resident_mb
from precis_text.errors import UserError

Pass = Callable[[], object]


def prepare(make: str, arguments: dict[str, Any], threads: int) -> Pass:
    """Import and call `module:function`; the pass has run once when this returns."""
    import torch

    torch.set_num_threads(threads)
    module, name = make.split(":")
    torch.manual_seed(0)
    one_pass: Pass = getattr(importlib.import_module(module), name)(**arguments)
    one_pass()
    return one_pass


def time_passes(one_pass: Pass, seconds: float) -> dict[str, Any]:
    """Measure the wall and CPU seconds of a pass, and the CPUs that others used meanwhile."""
    walls: list[float] = []
    start = Moment.now()
    while not walls or time.perf_counter() - start.wall < seconds:
        begin = time.perf_counter()
        one_pass()
        walls.append(time.perf_counter() - begin)
    cpu = (time.process_time() - start.own) / len(walls)
    return {
        "wall": statistics.median(walls),
        "cpu": cpu,
        "passes": len(walls),
        "foreign": start.foreign_cpus(),
    }


def peak_memory(one_pass: Pass, *, tensors: bool = True) -> dict[str, Any]:
    """Measure the peak MB of the process, the part that one pass adds, and the peak of its tensors.

    Args:
        tensors: False: the tensors are not torch's, so they are not measured.
    """
    _trim_memory()
    before = resident_mb("VmRSS")
    reset_peak()
    one_pass()
    peak = resident_mb("VmHWM")
    above = peak - before if peak is not None and before is not None else None
    return {"process_mb": peak, "added_mb": above, "tensors_mb": _tensor_peak(one_pass) if tensors else None}


def _tensor_peak(one_pass: Pass) -> float:
    """Measure the most MB of tensors that one pass holds at a time, from torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        one_pass()
    results = profiler.profiler.kineto_results if profiler.profiler is not None else None
    if results is None:
        raise RuntimeError("the profiler kept no events")
    changes = [(e.start_ns(), e.nbytes()) for e in results.events() if e.name() == "[memory]"]
    held = highest = 0
    for _, size in sorted(changes, key=lambda change: change[0]):
        held += size
        highest = max(highest, held)
    return highest / 2**20


def _trim_memory() -> None:
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)


def _answer(request: dict[str, Any], current: list[Pass]) -> dict[str, Any]:
    """Do what a line asks; `current` holds what was prepared."""
    match request["do"]:
        case "prepare":
            current[:] = [prepare(request["make"], request["arguments"], request["threads"])]
            return {}
        case "time":
            return time_passes(current[0], request["seconds"])
        case "memory":
            return peak_memory(current[0], tensors=request["tensors"])
        case "release":
            current.clear()
            _trim_memory()
            return {}
        case other:
            raise ValueError(f"a worker cannot {other!r}")


def _one_line(error: Exception) -> str:
    first = next(iter(str(error).splitlines()), "")
    return first if isinstance(error, UserError) else f"{type(error).__name__}: {first}"


def main() -> None:
    # what libraries print must not mix with the answers: standard output becomes standard error
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    current: list[Pass] = []
    for line in sys.stdin:
        try:
            answer = _answer(json.loads(line), current)
        except Exception as error:  # reported to the parent, which continues without this contender
            traceback.print_exc()
            answer = {"error": _one_line(error), "unable": isinstance(error, UserError)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
