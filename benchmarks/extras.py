"""Disk space that each extra adds to precis: the sizes of the packages that are installed here.

    python -m benchmarks.extras

The sizes include the packages that an extra declares and their dependencies, except those that precis itself requires.
A package that is not installed is named, and its size counts as 0.
"""

import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from precis_text.errors import DISTRIBUTIONS

_WITHOUT = "dev"  # it has all others


def closure(requirements: list[str], extra: str = "") -> tuple[dict[str, int], set[str]]:
    """Return the bytes of each package that these requirements bring, and the names of those that are not installed."""
    sizes: dict[str, int] = {}
    missing: set[str] = set()
    open_ones = [(requirement, extra) for requirement in requirements]
    while open_ones:
        text, wanted = open_ones.pop()
        requirement = Requirement(text)
        name = requirement.name.lower().replace("_", "-")
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": wanted}):
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            missing.add(name)
            continue
        if name not in sizes:
            sizes[name] = _bytes(found)
            extras = requirement.extras or {""}
            open_ones += [(need, one) for need in found.requires or [] for one in extras]
    return sizes, missing


def _bytes(found: Distribution) -> int:
    paths = [Path(str(found.locate_file(file))) for file in found.files or []]
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> int:
    """Print a row for each extra."""
    import tomllib

    project = tomllib.loads(
        (Path(__file__).parents[1] / "packages" / "precis" / "pyproject.toml").read_text()
    )["project"]
    base, _ = closure(project["dependencies"])
    print(f"{DISTRIBUTIONS[0]} itself needs {len(base)} packages, {sum(base.values()) / 1e6:,.0f} MB")
    for name, requirements in project["optional-dependencies"].items():
        if name == _WITHOUT:
            continue
        sizes, missing = closure(requirements, name)
        new = {package: size for package, size in sizes.items() if package not in base}
        absent = f"; not installed here: {', '.join(sorted(missing))}" if missing else ""
        print(f"{name:10} {len(new):3} packages {sum(new.values()) / 1e6:8,.1f} MB{absent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
