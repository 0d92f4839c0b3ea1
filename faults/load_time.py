"""Cost of a seal when a model is loaded: the same model of 68 million weights, with and without a seal, in turn.

    python -m faults.load_time [--rounds N]

The files are in memory already, so that the disk takes no time: this is the harder case for the seal. torch has one
thread, and the digests another, as in use. The ratio of wall times has a 95% interval from 2,000 resamples of the
rounds. The ratio of processor times, which counts the digests in full, is printed next to it. It needs a quiet machine.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from faults.report import Tally, header, verdict
from faults.small_models import save
from precis.generation.model_loader import load_model
from precis.storage.seal import write_folder

_MOST = 1.10


def main() -> int:
    """Time both, and return 1 if the sealed one takes more than a tenth longer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    header("loading a model of 68 million weights, sealed and unsealed", seed=0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        sealed, plain = Path(scratch) / "sealed", Path(scratch) / "plain"
        write_folder(sealed, lambda place: save("zcodepp", place, scale=20))
        save("zcodepp", plain, scale=20)
        weights = load_model(sealed, device="cpu").model.num_parameters()
        load_model(plain, device="cpu")
        pairs = []
        for number in range(rounds):
            order = (sealed, plain) if number % 2 else (plain, sealed)
            times = {folder: _seconds(folder) for folder in order}
            pairs.append((times[sealed], times[plain]))
    walls = [(sealed_times[0], plain_times[0]) for sealed_times, plain_times in pairs]
    ratio, low, high = _ratio(walls)
    work = _ratio([(sealed_times[1], plain_times[1]) for sealed_times, plain_times in pairs])
    print(f"{weights / 1e6:.1f} million weights; sealed {statistics.median(a for a, _ in walls):.3f} s, unsealed "
          f"{statistics.median(b for _, b in walls):.3f} s (medians of {rounds}, by turns, one thread)")  # fmt: skip
    print("processor time, sealed / unsealed: {:.3f} [{:.3f}, {:.3f}]".format(*work))
    tally = Tally()
    tally.hold(
        ratio <= _MOST, f"a sealed model takes {ratio:.3f} times as long, and at most {_MOST} is wanted"
    )
    return verdict(f"sealed / unsealed: {ratio:.3f} [{low:.3f}, {high:.3f}]", tally)


def _seconds(folder: Path) -> tuple[float, float]:
    """Measure the wall and processor time of loading."""
    began, worked = time.perf_counter(), time.process_time()
    load_model(folder, device="cpu")
    return time.perf_counter() - began, time.process_time() - worked


def _ratio(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the ratio of the medians, with its interval."""
    rng = random.Random(0)

    def of(sample: list[tuple[float, float]]) -> float:
        return statistics.median(a for a, _ in sample) / statistics.median(b for _, b in sample)

    resampled = sorted(of(rng.choices(pairs, k=len(pairs))) for _ in range(2000))
    return of(pairs), resampled[50], resampled[-51]


if __name__ == "__main__":
    sys.exit(main())
