"""Decoding beside other work: each contender alone, and beside 1, 2 and 4 processes that spin.

The decoders, sizes and searches are those of `benchmarks.compare.decode` at batch 1. Each round times all contenders
beside each number of neighbours, so what else the machine does changes all of them alike. A slowdown is the time beside
neighbours over the time alone in the same round.
"""

from __future__ import annotations

from benchmarks.compare import decode
from benchmarks.compare.comparisons import Bench, Comparison, Figure
from benchmarks.compare.contenders import BenchSettings, Cell

NEIGHBOURS = (0, 1, 2, 4)
SLOWDOWN = 1 / 1.3
"""The goal: our slowdown beside two neighbours is at most 1.3 times the peer's."""

_BITS = ("fp32", "int8")


def bench(*, quick: bool = False) -> Bench:
    """The benchmark; `quick` has only 0 and 2 neighbours, and fewer rounds."""
    of_decode = decode.bench(quick=True)
    cells = [
        Cell(name=cell.name, arguments=cell.arguments, neighbours=(0, 2) if quick else NEIGHBOURS)
        for cell in of_decode.cells
    ]
    playing = {"transformers BART"} | {
        f"{who} {bits}" for who in ("precis", "CTranslate2 BART") for bits in _BITS
    }
    return Bench(
        name="busy",
        contenders=[each for each in of_decode.contenders if each.name in playing],
        cells=cells,
        comparisons=[comparison for cell in cells for comparison in _comparisons(cell)],
        settings=BenchSettings(rounds=3 if quick else 5, memory=not quick),
    )


def _comparisons(cell: Cell) -> list[Comparison]:
    """Slowdowns beside each number of neighbours, CPU time alone, and time beside two neighbours."""
    found = []
    for theirs, ours in [(f"CTranslate2 BART {bits}", f"precis {bits}") for bits in _BITS]:
        found.append(Comparison(cell=cell.name, theirs=theirs, ours=ours, figure=Figure.cpu, goal=1.0))
        for count in cell.neighbours:
            name = cell.beside(count)
            found.append(Comparison(cell=name, theirs=theirs, ours=ours))
            if count:
                goal = SLOWDOWN if count == 2 else None
                found.append(Comparison(cell=name, theirs=theirs, ours=ours, alone=cell.name, goal=goal))
    return found
