"""uv.lock and constraints.txt, which `make lock` writes, agree with each other and with every pyproject.toml."""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())
PROJECTS = [*sorted((ROOT / "packages").glob("*/pyproject.toml")), ROOT / "experiments" / "pyproject.toml"]


def locked() -> list[dict[str, Any]]:
    """Return the packages of the lock file that come from an index."""
    return [each for each in LOCK["package"] if "registry" in each["source"]]


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement.strip())[0]).lower()


def test_the_constraints_are_the_versions_of_the_lock_file() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line.split(";")[0].strip() for line in lines]
    assert sorted(pinned) == sorted(f"{each['name']}=={each['version']}" for each in locked())


def test_every_file_of_the_lock_file_has_a_hash_and_one_index() -> None:
    assert {each["source"]["registry"] for each in locked()} == {"https://pypi.org/simple"}
    for package in locked():
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        assert files, package["name"]
        for file in files:
            assert file["hash"].startswith("sha256:"), file["url"]
            assert file["url"].startswith("https://files.pythonhosted.org/"), file["url"]


def test_the_lock_file_has_the_requirements_of_every_package() -> None:
    of_member = {each["name"]: each for each in LOCK["package"]}
    for file in PROJECTS:
        project = tomllib.loads(file.read_text())["project"]
        wanted = [
            *project.get("dependencies", []),
            *(line for lines in project.get("optional-dependencies", {}).values() for line in lines),
        ]
        found = of_member[project["name"]].get("metadata", {}).get("requires-dist", [])
        assert sorted({name_of(line) for line in wanted}) == sorted({each["name"] for each in found})
        assert of_member[project["name"]]["version"] == project["version"]


def test_the_lock_file_has_the_tools_of_the_workspace() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    found = LOCK["manifest"]["dependency-groups"]
    assert {name: sorted(map(name_of, lines)) for name, lines in groups.items()} == {
        name: sorted(each["name"] for each in lines) for name, lines in found.items()
    }
