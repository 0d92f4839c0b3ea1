"""Coverage of the intervals of `precis judge report` on simulated verdicts of known preference.

    python -m benchmarks.judging.coverage [--repetitions 400] [--verdicts 10000]

Each repetition draws new documents and judges, and lets every judge see every document. The intervals of the win rate
and of the Bradley-Terry strength should hold the value for infinitely many documents and judges. A verdict is a
tie with a given chance; else the better system wins with odds that vary by document and by judge (normal in log-odds).
Exit code 1 if some intervals certainly hold the truth in less than 93% or in more than 97% of the repetitions: they are
too narrow or too wide for 95%.
"""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from precis_judge.verdict_statistics import Votes, strengths, win_rate

LEAST, MOST = 0.93, 0.97  # of intervals of 95%: the exact interval of the share must reach between them


@dataclass(frozen=True)
class World:
    """A source of verdicts: mean log-odds, spreads over documents and judges, and the share of ties."""

    name: str
    log_odds: float
    documents_spread: float
    judges_spread: float
    ties: float
    judges: int


WORLDS = (
    World("no preference, verdicts independent", 0.0, 0.0, 0.0, 0.2, 10),
    World("60:40, documents differ", 0.405, 1.0, 0.0, 0.2, 10),
    World("60:40, documents and judges differ", 0.405, 1.0, 0.3, 0.2, 10),
    World("75:25, both differ, 5 judges", 1.1, 1.0, 0.3, 0.2, 5),
    World("60:40, both differ, 3 judges", 0.405, 1.0, 0.3, 0.2, 3),
    World("60:40, one verdict a document", 0.405, 1.0, 0.0, 0.2, 1),
)


def true_rate(world: World) -> float:
    """Compute the win rate over all documents and judges."""
    points, weights = np.polynomial.hermite_e.hermegauss(61)
    spread = np.hypot(world.documents_spread, world.judges_spread)
    chance = np.average(1 / (1 + np.exp(-(world.log_odds + spread * points))), weights=weights)
    return float((1 - world.ties) * chance + world.ties / 2)


def simulated(world: World, verdicts: int, rng: np.random.Generator) -> Votes:
    """Simulate verdicts of every judge on every document."""
    documents = verdicts // world.judges
    odds = (
        world.log_odds
        + world.documents_spread * rng.standard_normal((documents, 1))
        + world.judges_spread * rng.standard_normal((1, world.judges))
    )
    won = (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)
    won[rng.random(odds.shape) < world.ties] = 0.5
    document, judge = np.indices(odds.shape).reshape(2, -1)
    zeros = np.zeros(won.size, dtype=np.int64)
    return Votes(document=document, judge=judge, first=zeros, second=zeros + 1, first_won=won.ravel())


def covered(world: World, verdicts: int, rng: np.random.Generator) -> tuple[bool, bool]:
    """Test whether the intervals of the win rate and of the strength hold the truth."""
    votes = simulated(world, verdicts, rng)
    truth = true_rate(world)
    seed = int(rng.integers(1 << 31))
    rate = win_rate(votes, seed=seed)
    strength = strengths(votes, ["a", "b"], seed=seed)["a"]
    half = np.log(truth / (1 - truth)) / 2  # log-odds against the average of the two
    assert None not in (rate.low, rate.high, strength.low, strength.high)  # there are verdicts for both
    return rate.low <= truth <= rate.high, strength.low <= half <= strength.high  # type: ignore[operator]


def main() -> int:
    """Print the coverage of each world; return 1 if one is too small or too large."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--verdicts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(
        f"{given.verdicts:,} verdicts, {given.repetitions} repetitions, seed {given.seed}, {platform.machine()}"
    )
    print("| world | judges | win rate: covered | Bradley-Terry: covered | seconds a report |")
    print("|---|---|---|---|---|")
    is_good = True
    for number, world in enumerate(WORLDS):
        rng = np.random.default_rng([given.seed, number])
        began = time.perf_counter()
        found = np.array([covered(world, given.verdicts, rng) for _ in range(given.repetitions)])
        seconds = (time.perf_counter() - began) / given.repetitions
        cells = []
        for hits in found.sum(axis=0):
            exact = binomtest(int(hits), len(found)).proportion_ci(method="exact")
            is_good &= exact.high >= LEAST and exact.low <= MOST
            cells.append(f"{hits / len(found):.1%} [{exact.low:.1%}, {exact.high:.1%}]")
        print(f"| {world.name} | {world.judges} | {' | '.join(cells)} | {seconds:.2f} |", flush=True)
    return int(not is_good)


if __name__ == "__main__":
    raise SystemExit(main())
