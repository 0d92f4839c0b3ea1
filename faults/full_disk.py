"""Fill the disk at an offset, in every writer, and check that one line reports it and no good data is lost.

    python -m faults.full_disk [--quick] [--writers finetune,evaluate] [--offsets 50] [--seed 0]

Writes of Python below the output are counted, and fail with ENOSPC beyond the offset. Libraries that write by
themselves (safetensors, tokenizers) meet a limit on the size of a file. Afterwards there must be one line that names
the place, and the exit code 1 or 2. Once there is room, the same command must end as if nothing had happened.
"""

import argparse
import random
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from faults import forked
from faults.kills import differences, tree
from faults.report import Tally, header, verdict
from faults.writers import build_shelf, command_lines


def _limited(offset: int | None, folder: Path, largest: int) -> Callable[[], Callable[[], int]]:
    """Fill the disk like `forked.full_after`, and limit the files of libraries in the same proportion."""
    python = forked.full_after(offset, folder)

    def prepare() -> Callable[[], int]:
        if offset is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails with EFBIG instead
            # what the command says goes to a file too, and needs room for a line
            resource.setrlimit(resource.RLIMIT_FSIZE, (max(4096, largest), resource.RLIM_INFINITY))
        return python()

    return prepare


def _problems(ended: forked.Ended, out: Path) -> list[str]:
    lines = ended.said.strip().splitlines()
    told = [line for line in lines if line.startswith("error: ")]
    wrong = []
    if ended.code not in (1, 2):
        wrong.append(f"exit {ended.code}")
    if len(told) != 1 or "Traceback" in ended.said or "unexpected" in ended.said:
        wrong.append(f"said {lines[-1:] or 'nothing'}")
    elif str(out) not in told[0] and out.name not in told[0]:
        wrong.append(f"no path in {told[0]!r}")
    return wrong


def main() -> int:
    """Run it all; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="4 offsets")
    parser.add_argument("--writers", help="names with commas between them; default: all")
    parser.add_argument("--offsets", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    offsets = 4 if given.quick else given.offsets
    header("A full disk in every writer", seed=given.seed)
    forked.import_everything()
    tally = Tally()
    with tempfile.TemporaryDirectory() as temporary:
        shelf = Path(temporary) / "shelf"
        build_shelf(shelf)
        lines = command_lines(shelf)
        names = given.writers.split(",") if given.writers else list(lines)
        for name in names:
            _try(name, lines[name], Path(temporary) / name.replace(" ", "-"), offsets, given.seed, tally)
    return verdict(
        f"full disks at {offsets} offsets in {len(names)} commands; one line each, nothing lost", tally
    )


def _try(
    name: str, line: Callable[[Path], list[str]], folder: Path, offsets: int, seed: int, tally: Tally
) -> None:
    rng, log = random.Random(f"{seed} {name}"), folder / "log"
    out = folder / "alone" / "out"
    out.parent.mkdir(parents=True)
    alone = forked.run(line(out), log, prepare=_limited(None, out, 0))
    if alone.code:
        raise RuntimeError(f"{name}: {alone.said}")
    good = tree(out)
    largest = max(path.stat().st_size for path in out.rglob("*") if path.is_file())
    full = 0
    for number in range(offsets):
        place = folder / "full" / "out"
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir()
        offset = int(alone.count * rng.uniform(0.0, 0.95))
        ended = forked.run(line(place), log, prepare=_limited(offset, place, rng.randrange(1, largest)))
        if ended.code == 0:
            wrong = ["exit 0, and the disk was full"]
        else:
            full += 1
            wrong = _problems(ended, place)
            again = forked.run(line(place), log, prepare=lambda: lambda: 0)
            wrong += (
                [f"then exit {again.code}: {again.said[-200:]}"] if again.code else differences(good, place)
            )
        tally.hold(not wrong, f"{name}, offset {offset} ({number + 1}): {'; '.join(wrong)}")
    print(f"{name}: {full} full disks", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
