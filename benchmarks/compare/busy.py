"""Decoding on a busy machine: each contender by itself, and next to 1, 2 and 4 processes that spin.

The decoders, sizes and searches are those of `benchmarks.compare.decode` at batch 1. Each round times all contenders
next to each number of neighbours, so other load on the machine changes all of them alike. A slowdown is the time with
neighbours over the time without them in the same round. "precis fp32, 300000 spins" and similar names are ours with
another waiting time of idle threads than `precis.process.bound_waiting` sets. GNU's OpenMP itself sets 300,000. "precis
fp32, operators" is ours without C++ kernels: a parallel region for each operator of a decoding step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.compare import decode
from benchmarks.compare.comparisons import Bench, Comparison, Figure
from benchmarks.compare.contenders import BenchSettings, Cell
from precis.nn.disentangled.cpp_loader import COMPILE

NEIGHBOURS = (0, 1, 2, 4)
SLOWDOWN = 1 / 1.3
"""The goal: our slowdown next to two neighbours is at most 1.3 times the peer's."""

SPINS = (1_000, 300_000)
"""How often a thread without work looks for some before it sleeps, for the contenders that show the choice."""

_BITS = ("fp32", "int8")


def bench(*, quick: bool = False) -> Bench:
    """Return the benchmark; `quick` has fp32 of CTranslate2 and ours, up to 2 neighbours, and fewer rounds."""
    of_decode = decode.bench(quick=True)
    bits = _BITS[:1] if quick else _BITS
    cells = [replace(cell, neighbours=NEIGHBOURS[:3] if quick else NEIGHBOURS) for cell in of_decode.cells]
    playing = {f"{who} {each}" for who in ("precis", "CTranslate2 BART") for each in bits}
    contenders = [each for each in of_decode.contenders if each.name in playing | {"transformers BART"}]
    settings = {f"{spins} spins": {"GOMP_SPINCOUNT": str(spins)} for spins in SPINS}
    settings["operators"] = {COMPILE: "0"}
    variants = [
        replace(each, name=f"{each.name}, {how}", environment=environment)
        for each in contenders
        if each.name == "precis fp32"
        for how, environment in settings.items()
    ]
    return Bench(
        name="busy",
        contenders=[*(each for each in contenders if each.name in playing or not quick), *variants],
        cells=cells,
        comparisons=[comparison for cell in cells for comparison in _comparisons(cell, bits)],
        settings=BenchSettings(rounds=3 if quick else 5, memory=not quick),
    )


def _comparisons(cell: Cell, precisions: Sequence[str]) -> list[Comparison]:
    """Compare slowdowns for each number of neighbours, CPU time without neighbours, and time with two."""
    found = []
    for theirs, ours in [(f"CTranslate2 BART {bits}", f"precis {bits}") for bits in precisions]:
        found.append(Comparison(cell=cell.name, theirs=theirs, ours=ours, figure=Figure.cpu, goal=1.0))
        for count in cell.neighbours:
            name = cell.beside(count)
            found.append(Comparison(cell=name, theirs=theirs, ours=ours))
            if count:
                goal = SLOWDOWN if count == 2 else None
                found.append(Comparison(cell=name, theirs=theirs, ours=ours, alone=cell.name, goal=goal))
    return found
