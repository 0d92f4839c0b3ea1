"""What moved since the golden files were written: `python -m tests.golden [--write] [NAME ...]`."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden import records, runs


def _losses(shelf: Path) -> dict[str, Any]:
    return {name: train(shelf) for name, train in runs.LOSSES.items()}


RECORDS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "losses": _losses,
    "texts": runs.texts,
    "extracts": lambda _: runs.extracts(),
    "digests": runs.digests,
    "helps": lambda _: runs.helps(),
}


def main() -> int:
    """Compare, or write; the exit code is 1 if something moved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *RECORDS], help="default: all")
    parser.add_argument("--write", action="store_true", help="record anew")
    arguments = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        shelf = Path(folder)
        if set(arguments.names or RECORDS) - {"helps", "texts", "extracts"}:
            runs.prepare(shelf)
        found = {name: RECORDS[name](shelf) for name in arguments.names or RECORDS}
    for name, record in found.items():
        if arguments.write:
            records.write(name, record)
        else:
            lines += [f"{name}: {line}" for line in records.moved(records.read(name), record)]
    print("\n".join(lines) or ("written" if arguments.write else "nothing moved"))
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
