"""Contents of an installation: `python tools/supply_chain.py sbom | licences | requirements | advisories`.

    sbom          a bill of materials (CycloneDX 1.5, JSON) of the installed packages that precis needs
    licences      their licences; exit 1 if one is not on the list of this file
    requirements  what the service and the readers of documents need here, with versions and hashes of uv.lock, for
                  pip install --no-deps --require-hashes --requirement FILE
                  --everything: all extras too, and the tools of `make install`; --without-torch: without torch and
                  CUDA, since torch's builds for the CPU have another index
    advisories    known vulnerabilities of the versions in constraints.txt, from osv.dev; exit 1 if there are any,
                  exit 69 (service unavailable) if osv.dev cannot be reached

Only `advisories` uses the network: it sends names and versions.
"""

import argparse
import json
import os
import re
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

try:
    from packaging.markers import Marker
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
except ImportError:  # a new environment has only pip
    from pip._vendor.packaging.markers import Marker  # type: ignore[assignment]
    from pip._vendor.packaging.requirements import Requirement  # type: ignore[assignment]
    from pip._vendor.packaging.utils import canonicalize_name  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parents[1]
OURS = ("precis-text", "precis-summarizer", "precis-judge", "precis-onnx", "precis-model-small")
INSTALLED = {
    "precis-text": frozenset({"documents"}),
    "precis-summarizer": frozenset({"serve"}),
    "precis-model-small": frozenset[str](),
}
WORKSPACE = (*OURS, "precis-experiments")
GROUPS = ("dev", "docs")  # of pyproject.toml
_OF_CUDA = ("cuda-", "nvidia-", "triton")
BUILDS = "setuptools"  # builds our own packages without a network
OSV = "https://api.osv.dev/v1/querybatch"
_ALLOWED = re.compile(
    r"\b(MIT|BSD|Apache|ISC|MPL|Mozilla Public License|PSF|Python Software Foundation|HPND|Zlib|Unlicense|CC0|"
    r"public domain)\b|0BSD|UNLICENSE",
    re.IGNORECASE,
)


def needed() -> list[metadata.Distribution]:
    """Return the installed packages that ours need, with all of their extras, by name; without ours."""
    waiting = [(name, _extras(name)) for name in OURS]
    seen: dict[str, set[str]] = {}
    while waiting:
        name, extras = waiting.pop()
        if extras <= seen.get(name, set()) and name in seen:
            continue
        seen[name] = seen.get(name, set()) | extras
        waiting += [(canonicalize_name(each.name), set(each.extras)) for each in _requirements(name, extras)]
    return [metadata.distribution(name) for name in sorted(seen) if name not in OURS and _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _extras(name: str) -> set[str]:
    return {*(metadata.metadata(name).get_all("Provides-Extra") or ())} if _is_installed(name) else set()


def _requirements(name: str, extras: set[str]) -> Iterator[Requirement]:
    for line in (metadata.requires(name) or ()) if _is_installed(name) else ():
        wanted = Requirement(line)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": each}) for each in {"", *extras}):
            yield wanted


def licence_of(package: metadata.Distribution) -> str:
    """Return the licence that a package declares: its expression, its classifiers, or the first line."""
    told: Any = package.metadata
    classifiers = [
        each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or () if "License ::" in each
    ]
    declared = (told.get("License") or "").strip().splitlines()
    return (
        told.get("License-Expression")
        or ", ".join(classifiers)
        or (declared[0] if declared else "not declared")
    )


def is_allowed(licence: str) -> bool:
    """Return whether a licence is permissive, or MPL, which asks nothing of those who use a file unchanged."""
    return bool(_ALLOWED.search(licence))


def sbom() -> dict[str, Any]:
    """Return the bill of materials."""
    components = [
        {
            "type": "library",
            "name": each.name,
            "version": each.version,
            "purl": f"pkg:pypi/{canonicalize_name(each.name)}@{each.version}",
            "licenses": [{"license": {"name": licence_of(each)}}],
        }
        for each in needed()
    ]
    own = {"type": "application", "name": OURS[1], "version": metadata.version(OURS[1])}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
    }


def hashed_requirements(
    lock: dict[str, Any], *, everything: bool = False, with_torch: bool = True
) -> list[str]:
    """Return a line for each package that is needed on this machine: name, version and the hashes of its files.

    Args:
        everything: what all extras of our packages and the groups of the workspace need, not just `INSTALLED`.
        with_torch: whether torch, and what only its builds for CUDA need, is among them.
    """
    packages = {package["name"]: package for package in lock["package"]}
    waiting = [(BUILDS, frozenset[str]()), *INSTALLED.items()]
    if everything:
        waiting += [(name, frozenset(packages[name].get("optional-dependencies", ()))) for name in WORKSPACE]
        groups = lock["manifest"]["dependency-groups"]
        waiting += [_wanted(one) for group in GROUPS for one in groups[group] if _applies(one)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        package = packages[name]
        optional = package.get("optional-dependencies", {})
        wanted = [
            *package.get("dependencies", ()),
            *(one for extra in extras for one in optional.get(extra, ())),
        ]
        if name == "torch" and not with_torch:
            wanted = [one for one in wanted if not one["name"].startswith(_OF_CUDA)]
        waiting += [_wanted(one) for one in wanted if _applies(one)]
    left_out = {*WORKSPACE} | (set() if with_torch else {"torch"})
    return [_hashed(packages[name]) for name in sorted({name for name, _ in seen} - left_out)]


def _wanted(dependency: dict[str, Any]) -> tuple[str, frozenset[str]]:
    extras = dependency.get("extra", dependency.get("extras", ()))
    return dependency["name"], frozenset(extras)


def _applies(dependency: dict[str, Any]) -> bool:
    return "marker" not in dependency or Marker(dependency["marker"]).evaluate()


def _hashed(package: dict[str, Any]) -> str:
    files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
    hashes = " ".join(f"--hash={each['hash']}" for each in files)
    return f"{package['name']}=={package['version']} {hashes}"


def pinned(constraints: str) -> list[tuple[str, str]]:
    """Return name and version of each line of constraints.txt."""
    return re.findall(r"^([\w.-]+)==([^\s;]+)", constraints, re.MULTILINE)


def advisories(packages: list[tuple[str, str]], *, url: str = OSV) -> dict[str, list[str]]:
    """Return the advisories of each package that has any."""
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in packages
    ]
    asked = urllib.request.Request(
        url, json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        found = json.loads(answer.read(64 << 20))["results"]
    pairs = zip(packages, found, strict=True)
    return {
        f"{name} {version}": [each["id"] for each in told["vulns"]]
        for (name, version), told in pairs
        if told.get("vulns")
    }


def main() -> int:
    """Print the chosen report and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("sbom", "licences", "requirements", "advisories"))
    parser.add_argument("--everything", action="store_true", help="of requirements")
    parser.add_argument("--without-torch", action="store_true", help="of requirements")
    options = parser.parse_args()
    asked = options.what
    if asked == "sbom":
        print(json.dumps(sbom(), indent=2))
    elif asked == "requirements":
        lock = tomllib.loads((ROOT / "uv.lock").read_text())
        lines = hashed_requirements(lock, everything=options.everything, with_torch=not options.without_torch)
        print(*lines, sep="\n")
    elif asked == "licences":
        found = {f"{each.name} {each.version}": licence_of(each) for each in needed()}
        print(*(f"{name}: {licence}" for name, licence in found.items()), sep="\n")
        return int(not all(map(is_allowed, found.values())))
    else:
        return print_advisories(pinned((ROOT / "constraints.txt").read_text()))
    return 0


def print_advisories(packages: list[tuple[str, str]], *, url: str = OSV) -> int:
    """Print the advisories; the exit code."""
    try:
        known = advisories(packages, url=url)
    except OSError as error:  # no network, a timeout, or an answer with an HTTP error
        print(
            f"The advisories were not checked: {url} cannot be reached ({error}). "
            "Run this again where there is a network.",
            file=sys.stderr,
        )
        return os.EX_UNAVAILABLE
    print(*(f"{name}: {', '.join(ids)}" for name, ids in known.items()), sep="\n")
    print(f"{len(packages)} packages checked, {len(known)} with advisories")
    return int(bool(known))


if __name__ == "__main__":
    sys.exit(main())
