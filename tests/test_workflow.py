"""The hosted jobs call make targets that exist, on every Python that the packages allow."""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def targets(text: str) -> set[str]:
    """Return the targets that the shell lines of a text give to make."""
    return {word for words in re.findall(r"\bmake ([a-z-]+(?: [a-z-]+)*)", text) for word in words.split()}


def in_the_makefile() -> set[str]:
    lines = (ROOT / "Makefile").read_text().splitlines()
    return {found.group(1) for line in lines if (found := re.match(r"([a-z][a-z-]*):(?!=)", line))}


def steps(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_every_job_calls_make_targets_that_exist() -> None:
    assert sorted(JOBS) == ["browser", "checks", "docs", "faults", "supply-chain", "tests", "wheels"]
    for name, job in JOBS.items():
        called = targets(steps(job))
        assert called, name
        assert called <= in_the_makefile(), name


def test_the_jobs_run_what_the_serial_script_runs() -> None:
    called = set.union(*(targets(steps(job)) for job in JOBS.values()))
    assert {"check", "test", "browser", "docs", "guide", "wheel"} <= called
    assert called <= targets((ROOT / ".ci" / "run").read_text())


def test_jobs_run_beside_each_other_and_may_read_only() -> None:
    assert not [name for name, job in JOBS.items() if "needs" in job]
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_tests_run_on_linux_and_macos_on_every_python() -> None:
    matrix = JOBS["tests"]["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    project = tomllib.loads((ROOT / "packages" / "precis" / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={matrix['python'][0]}"


def test_the_writer_is_added_to_what_is_installed_already(tmp_path: Path) -> None:
    (tmp_path / ".installed").touch()
    for asked, is_added in (("WRITER=1", True), ("WRITER=", False)):
        done = subprocess.run(
            ["make", "-n", "install", asked, f"VENV={tmp_path}", "-o", str(tmp_path / ".installed")],
            cwd=ROOT,
            env={
                name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert ("precis_model_writer.conversion" in done.stdout) == is_added, done.stdout
