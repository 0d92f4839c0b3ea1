"""Kill every writer with SIGKILL, start the same command again, and compare the result with an undisturbed run.

    python -m faults.kills [--quick] [--writers finetune,evaluate] [--kills 100] [--each 4] [--seed 0]

Each run is killed `--each` times, in turn at a random time and just before a random disk operation, and started again
each time. In the end all files must be bit-identical to those of the undisturbed run. Times may differ, and pictures
must only exist. Each prediction must be there once, and nothing temporary may remain.

The undisturbed run uses the same code, so it is compared with `faults/kills.json`, which `--record` writes. That file
has the files of each writer, their rows, the sizes of weights, and digests of content that does not depend on rounding.
Kills tear no line; torn and short writes are tried by `python -m faults.simulate`.
"""

import argparse
import json
import random
import shutil
import signal
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from faults import forked
from faults.report import Tally, header, verdict
from faults.writers import build_shelf, command_lines

RECORD = Path(__file__).with_suffix(".json")
_TIMES = {"seconds", "tokens_per_second", "window", "pages_per_second"}
_FINISHED = "already exists, so nothing was summarized"  # the kill came when all was done
_SEAL = "seal.json"  # it holds digests of files that hold times; the folders are checked against it


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(inner) for name, inner in value.items() if name not in _TIMES}
    return [_without_times(inner) for inner in value] if isinstance(value, list) else value


def _content(file: Path, out: Path) -> Any:
    """Return the content that two runs must share: bytes, or JSON without times and the run's own place."""
    if file.suffix == ".png":
        return file.stat().st_size > 0
    if file.name in (_SEAL, "lock"):
        return "there"
    data = file.read_bytes().replace(str(out).encode(), b"OUT")
    if file.suffix == ".json":
        return _without_times(json.loads(data))
    if file.suffix == ".jsonl":
        rows = [_without_times(json.loads(line)) for line in data.splitlines()]
        is_of_a_batch = file.name == "summaries.jsonl"  # its documentation promises no order
        return sorted(rows, key=json.dumps) if is_of_a_batch else rows
    return data


def tree(out: Path) -> dict[str, Any]:
    """Return every file of an output, except TensorBoard's."""
    files = (path for path in sorted(out.rglob("*")) if path.is_file() and "tfevents" not in path.name)
    return {str(path.relative_to(out)): _content(path, out) for path in files}


def differences(alone: dict[str, Any], out: Path) -> list[str]:
    """List the files that differ, are missing, damaged or left over."""
    from precis.storage.seal import DamagedError, check_seal, has_seal

    found = tree(out)
    wrong = [f"{name} differs" for name in sorted(alone.keys() & found.keys()) if alone[name] != found[name]]
    wrong += [f"{name} is missing" for name in sorted(alone.keys() - found.keys())]
    wrong += [f"{name} is left over" for name in sorted(found.keys() - alone.keys())]
    beside = [path.name for path in out.parent.iterdir() if path != out]
    wrong += [f"{name} is left next to it" for name in beside]
    for folder in (path for path in (out, *out.rglob("*")) if path.is_dir()):
        try:
            if has_seal(folder):
                check_seal(folder, thorough=True)
        except DamagedError as damage:
            wrong.append(f"{folder.name}: {damage}")
    return wrong


def outline(out: Path) -> dict[str, Any]:
    """Return by file what an undisturbed run shares with one of another day and machine."""
    return {name: _outline(out / name, content) for name, content in tree(out).items()}


def _outline(file: Path, content: Any) -> Any:
    is_made_up = isinstance(content, list) and file.stem in (
        "train",
        "dev",
        "test",
    )  # of the synthetic corpus
    if is_made_up or file.suffix == ".bin":
        return {"digest": sha256(file.read_bytes()).hexdigest()[:16]}
    if isinstance(content, list):
        return {"rows": len(content)}
    return {"KiB": len(content) // 1024} if file.suffix == ".safetensors" else "there"


def against_record(name: str, found: dict[str, Any], record: dict[str, Any]) -> list[str]:
    """List the differences between an undisturbed run and the recorded one."""
    known = record.get(name)
    if known is None:
        return [f"{name} is not in {RECORD.name}; python -m faults.kills --record"]
    return [
        f"{file} was {known.get(file, 'not there')}, is {found.get(file, 'not there')}"
        for file in sorted(known.keys() | found.keys())
        if known.get(file) != found.get(file)
    ]


class Writer:
    """One command and its undisturbed run."""

    def __init__(self, name: str, line: Any, folder: Path) -> None:
        self._name, self._line, self._folder = name, line, folder
        ended = self._run("alone", None)
        if ended.code:
            raise RuntimeError(f"{name}: {ended.said}")
        self._operations, self._seconds = ended.count, ended.seconds
        self._alone = tree(folder / "alone" / "out")
        self.outline = outline(folder / "alone" / "out")

    def try_one(self, *, kills: int, rng: random.Random) -> tuple[int, list[str]]:
        """Kill a run `kills` times and let it finish; return the number of effective kills, and what is wrong."""
        place, done = self._folder / "killed", 0
        shutil.rmtree(place, ignore_errors=True)
        share = 0.9 / max(
            1, kills - 1
        )  # of the whole run, until the next kill; what was done is not done again
        for number in range(kills):
            if number % 2:
                ended = self._run("killed", rng.randint(1, max(1, int(share * self._operations))))
            else:
                ended = self._run("killed", None, kill_after=rng.uniform(0.0, share * self._seconds))
            done += ended.code == -signal.SIGKILL
            if _FINISHED in ended.said:
                break
            if ended.code not in (0, -signal.SIGKILL):
                return done, [f"kill {number + 1} ended with {ended.code}: {ended.said[-300:]}"]
            if ended.code == 0:
                break
        last = self._run("killed", None)
        if last.code and _FINISHED not in last.said:
            return done, [f"after {done} kills: exit {last.code}: {last.said[-300:]}"]
        return done, differences(self._alone, place / "out")

    def _run(self, place: str, die_before: int | None, kill_after: float | None = None) -> forked.Ended:
        folder = self._folder / place
        folder.mkdir(parents=True, exist_ok=True)
        return forked.run(
            self._line(folder / "out"),
            self._folder / "log",
            prepare=forked.dying_before(die_before),
            kill_after=kill_after,
        )


def main() -> int:
    """Run it all; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="8 kills of each writer")
    parser.add_argument("--writers", help="names with commas between them; default: all")
    parser.add_argument("--kills", type=int, default=100, help="of each writer")
    parser.add_argument("--each", type=int, default=4, help="kills of one run before it may finish")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--record", action="store_true", help=f"write {RECORD.name} from undisturbed runs, and end"
    )
    given = parser.parse_args()
    wanted = 8 if given.quick else given.kills
    header("SIGKILL of every writer, then the same command again", seed=given.seed)
    forked.import_everything()
    tally, killed = Tally(), 0
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    with tempfile.TemporaryDirectory() as temporary:
        shelf = Path(temporary) / "shelf"
        build_shelf(shelf)
        lines = command_lines(shelf)
        names = given.writers.split(",") if given.writers else list(lines)
        for name in names:
            rng, done, runs = random.Random(f"{given.seed} {name}"), 0, 0
            writer = Writer(name, lines[name], Path(temporary) / name.replace(" ", "-"))
            if given.record:
                record[name] = writer.outline
                RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
                continue
            otherwise = against_record(name, writer.outline, record)
            tally.hold(not otherwise, f"{name}, undisturbed: {'; '.join(otherwise)}")
            while done < wanted and runs < 10 * wanted:
                met, wrong = writer.try_one(kills=min(given.each, wanted - done), rng=rng)
                done, runs = done + met, runs + 1
                tally.hold(not wrong, f"{name}: {'; '.join(wrong)}")
            print(f"{name}: {done} kills in {runs} runs", flush=True)
            killed += done
    if given.record:
        return 0
    return verdict(f"{killed} kills of {len(names)} writers; runs that end bit-identical", tally)


if __name__ == "__main__":
    raise SystemExit(main())
