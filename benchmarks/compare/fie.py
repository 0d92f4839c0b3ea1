"""Encoding one long document: fusion-in-encoder against dense and sparse encoders.

256 wide, 6 layers, 4 heads; chunk 256, last layer global; fp32, batch 1, no gradients, random weights. LED has a
window of 512, PEGASUS-X blocks of 512, LongT5 its transient-global attention; BART is dense without relative
positions.
"""

from dataclasses import replace

from benchmarks.compare.comparisons import Bench, Comparison, Figure
from benchmarks.compare.contenders import BenchSettings, Cell, Contender, blocks_kept
from benchmarks.compare.kernel import OURS, both_ways

_LENGTHS = (1024, 2048, 4096, 8192, 16_384)
_MAKE = "benchmarks.compare.encoder:encode"
# transformers' dense encoder takes a minute and 7 GB at 8192 tokens
_LONGEST_DENSE = 8192
_LONGEST_KEPT = 4096
# (tokens, peer, figure) -> wanted ratio
_GOALS = {
    (8192, "transformers", Figure.time): 20.0,
    (8192, "transformers", Figure.tensors): 25.0,
    (16_384, "LongT5", Figure.time): 1.0,
    (16_384, "LongT5", Figure.tensors): 4.0,
    (16_384, "LED", Figure.time): 1.0,
}


def bench(*, quick: bool) -> Bench:
    """Return the benchmark with the goals of docs/benchmarks/goals.md; `quick` has one length and fewer contenders."""
    lengths = _LENGTHS[:1] if quick else _LENGTHS
    peers = _peers(quick=quick)
    return Bench(
        name="fie",
        contenders=[
            *both_ways(Contender(name="precis", make=_MAKE, arguments={"name": "precis-fusion"})),
            *peers,
        ],
        cells=[Cell(name=f"{n} tokens", arguments={"tokens": n}) for n in lengths],
        comparisons=[
            comparison
            for n in lengths
            for ours in OURS
            for peer in peers
            if f"{n} tokens" not in peer.skip
            for comparison in _comparisons(n, peer.name, ours)
        ],
        settings=BenchSettings(rounds=2, seconds=0.1, memory=False) if quick else BenchSettings(rounds=5),
    )


def _comparisons(tokens: int, peer: str, ours: str) -> list[Comparison]:
    return [
        Comparison(
            cell=f"{tokens} tokens",
            theirs=peer,
            ours=ours,
            figure=figure,
            goal=_GOALS.get((tokens, peer, figure)),
        )
        for figure in (Figure.time, Figure.tensors, Figure.process)
    ]


def _peers(*, quick: bool) -> list[Contender]:
    deberta, longt5, led, pegasus, bart = (
        Contender(name=name, make=_MAKE, arguments={"name": encoder})
        for name, encoder in (
            ("transformers", "transformers"),
            ("LongT5", "longt5"),
            ("LED", "led"),
            ("PEGASUS-X", "pegasus-x"),
            ("BART", "bart"),
        )
    )
    if quick:
        return [deberta, longt5, led, pegasus, bart]
    deberta = replace(deberta, skip=_longer_than(_LONGEST_DENSE, "minutes and gigabytes"))
    return [
        *both_ways(Contender(name="precis, dense", make=_MAKE, arguments={"name": "precis"})),
        deberta,
        replace(blocks_kept(deberta), skip=_longer_than(_LONGEST_KEPT, "the shorter cells show the setting")),
        longt5,
        led,
        pegasus,
        bart,
    ]


def _longer_than(tokens: int, reason: str) -> dict[str, str]:
    return {f"{n} tokens": reason for n in _LENGTHS if n > tokens}
