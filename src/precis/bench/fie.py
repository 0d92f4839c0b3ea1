"""`precis bench fie`: encoding one long document, fusion-in-encoder beside dense and sparse encoders.

256 wide, 6 layers, 4 heads; chunk 256, last layer global; fp32, batch 1, no gradients, random weights. LED has a
window of 512, PEGASUS-X blocks of 512, LongT5 its transient-global attention; BART is dense without relative
positions.
"""

from precis.bench.comparisons import Bench, Comparison, Figure
from precis.bench.compiled import OURS, both_ways
from precis.bench.harness import BenchSettings, Cell, Contender

_LENGTHS = (1024, 2048, 4096, 8192, 16_384)
_MAKE = "precis.bench.encoder:encode"
# transformers' dense encoder takes a minute and 7 GB at 8192 tokens
_LONGEST_DENSE = 8192
# (tokens, peer, figure) -> wanted ratio
_GOALS = {
    (8192, "transformers", Figure.time): 20.0,
    (8192, "transformers", Figure.tensors): 25.0,
    (16_384, "LongT5", Figure.time): 1.0,
    (16_384, "LongT5", Figure.tensors): 4.0,
    (16_384, "LED", Figure.time): 1.0,
}


def bench(*, quick: bool) -> Bench:
    """Goals are those of docs/benchmarks.md."""
    lengths = _LENGTHS[:2] if quick else _LENGTHS
    cells = [Cell(name=f"{n} tokens", arguments={"tokens": n}) for n in lengths]
    too_long = {f"{n} tokens": "minutes and gigabytes" for n in lengths if n > _LONGEST_DENSE}
    contenders = [
        *both_ways(Contender(name="precis", make=_MAKE, arguments={"name": "precis-fusion"})),
        *both_ways(Contender(name="precis, dense", make=_MAKE, arguments={"name": "precis"})),
        Contender(name="transformers", make=_MAKE, arguments={"name": "transformers"}, skip=too_long),
        Contender(name="LongT5", make=_MAKE, arguments={"name": "longt5"}),
        Contender(name="LED", make=_MAKE, arguments={"name": "led"}),
        Contender(name="PEGASUS-X", make=_MAKE, arguments={"name": "pegasus-x"}),
        Contender(name="BART", make=_MAKE, arguments={"name": "bart"}),
    ]
    comparisons = [
        Comparison(
            cell=f"{n} tokens",
            theirs=peer.name,
            ours=ours,
            figure=figure,
            goal=_GOALS.get((n, peer.name, figure)),
        )
        for n in lengths
        for ours in OURS
        for peer in contenders[len(OURS) :]
        for figure in (Figure.time, Figure.tensors, Figure.process)
    ]
    return Bench(
        name="fie",
        contenders=contenders,
        cells=cells,
        comparisons=comparisons,
        settings=BenchSettings(rounds=2, seconds=0.1) if quick else BenchSettings(rounds=5),
    )
