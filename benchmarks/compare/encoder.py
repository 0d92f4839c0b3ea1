"""Whole dense encoders, forward and training step, and batches with padding.

256 wide, 6 layers, 4 heads, fp32, random weights, no dropout. A training step is forward and backward of the sum of
the states. The padded batch draws its lengths from SAMSum's dialogues.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.compare.comparisons import Bench, Comparison, Figure
from benchmarks.compare.contenders import BenchSettings, Cell, Contender, blocks_kept
from benchmarks.compare.kernel import OURS, both_ways
from benchmarks.compare.peers import VOCABULARY, Size, build, states_of

# Words and punctuation marks of SAMSum's training dialogues, every fortieth from the shortest to the longest.
SAMSUM = (
    2,
    22,
    26,
    30,
    34,
    38,
    42,
    45,
    49,
    53,
    56,
    60,
    63,
    68,
    72,
    76,
    81,
    86,
    92,
    97,
    102,
    108,
    115,
    121,
    128,
    135,
    142,
    150,
    157,
    166,
    176,
    186,
    197,
    208,
    223,
    241,
    261,
    287,
    324,
    384,
    1047,
)


def encode(
    *,
    name: str,
    tokens: int = 0,
    batch: int = 1,
    backward: bool = False,
    samsum: bool = False,
    packed: bool = True,
) -> Callable[[], object]:
    """Prepare one of `peers.NAMES` on random tokens.

    Args:
        samsum: use rows of SAMSum's lengths instead of full ones, and ignore `tokens`.
        packed: False: ours computes the padding too.
    """
    if not packed:
        from precis.nn import packing

        packing.WASTE = 2.0  # a share that no batch wastes
    encoder = build(name, Size()).train(backward)
    ids, mask = samsum_batch(batch) if samsum else (torch.randint(4, VOCABULARY, (batch, tokens)), None)

    def forward() -> object:
        with torch.no_grad():
            return states_of(encoder, ids, mask)

    def both() -> object:
        encoder.zero_grad(set_to_none=True)
        states = states_of(encoder, ids, mask)
        if mask is not None:
            states = states[mask.bool()]
        return states.sum().backward()

    return both if backward else forward


def samsum_batch(rows: int) -> tuple[Tensor, Tensor]:
    """Draw random ids and a mask, with lengths spread over SAMSum's distribution, in random order."""
    generator = torch.Generator().manual_seed(0)
    places = (torch.arange(rows) + 0.5) / rows * (len(SAMSUM) - 1)
    low = places.long()
    quantiles = torch.tensor(SAMSUM, dtype=torch.float)
    share = places - low
    lengths = (quantiles[low] * (1 - share) + quantiles[low + 1] * share).round().long()
    lengths = lengths[torch.randperm(rows, generator=generator)]
    mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    ids = torch.randint(4, VOCABULARY, mask.shape, generator=generator) * mask
    return ids, mask.long()


_LENGTHS = {64: 8, 128: 8, 256: 4, 512: 2, 1024: 1, 2048: 1, 4096: 1}
_MAKE = "benchmarks.compare.encoder:encode"


def bench(*, quick: bool) -> Bench:
    """Return the benchmark with the goals of docs/benchmarks/goals.md; `quick` has short inputs, fewer contenders."""
    lengths = {n: batch for n, batch in _LENGTHS.items() if not quick or n <= 512}
    rows = 8 if quick else 16
    cells = [Cell(name=f"forward {n}", arguments={"tokens": n, "batch": b}) for n, b in lengths.items()]
    cells += [
        Cell(name="training 512", arguments={"tokens": 512, "batch": 2, "backward": True}),
        Cell(name=f"{rows} of SAMSum's lengths, forward", arguments={"samsum": True, "batch": rows}),
        Cell(
            name=f"{rows} of SAMSum's lengths, training",
            arguments={"samsum": True, "batch": rows, "backward": True},
        ),
    ]
    peer = Contender(name="transformers", make=_MAKE, arguments={"name": "transformers"})
    kept = blocks_kept(peer)
    full = {c.name: "no padding" for c in cells if not c.arguments.get("samsum")}
    padded = {"name": "precis", "packed": False}
    return Bench(
        name="encoder",
        contenders=[
            *both_ways(Contender(name="precis", make=_MAKE, arguments={"name": "precis"})),
            peer,
            kept,
            Contender(name="BART", make=_MAKE, arguments={"name": "bart"}),
            Contender(name="precis, padded", make=_MAKE, arguments=padded, skip=full),
        ],
        cells=cells,
        comparisons=_comparisons(cells),
        settings=BenchSettings(rounds=2, seconds=0.1, memory=False) if quick else BenchSettings(),
    )


def _comparisons(cells: list[Cell]) -> list[Comparison]:
    """Require our two variants to be nowhere slower than transformers, however memory is allocated."""
    further = {("training 512", "precis"): 1.3}
    found = []
    for cell in cells:
        for ours in OURS:
            found += [
                Comparison(
                    cell=cell.name,
                    theirs="transformers",
                    ours=ours,
                    goal=1.0,
                    further_goal=further.get((cell.name, ours)),
                ),
                Comparison(cell=cell.name, theirs="transformers, blocks kept", ours=ours, goal=1.0),
                Comparison(cell=cell.name, theirs="BART", ours=ours),
                Comparison(cell=cell.name, theirs="transformers", ours=ours, figure=Figure.tensors),
            ]
        if cell.arguments.get("samsum"):
            found.append(Comparison(cell=cell.name, theirs="precis, padded", goal=1.3))
    return found
