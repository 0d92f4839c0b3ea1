"""Stage "tests": the tests that are marked `gpu`, in processes of their own."""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.gpu.race import StageRun
from precis_text.errors import RunError

_ROOT = Path(__file__).parents[2]
_WORKERS = 4  # a test that loses the device takes its worker's other tests with it, not those of the others
_LINES = 15


def stage(run: StageRun) -> None:
    """Run the tests into one row.

    On the CPU they skip themselves, so the dry run takes those of `tests/nn` to show that the stage works.
    """
    run.attempt("tests", "pytest -m gpu", lambda: _tests("tests/nn" if run.dry else "tests", run))


def _tests(where: str, run: StageRun) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        workers = [] if run.dry or importlib.util.find_spec("xdist") is None else ["-n", str(_WORKERS)]
        command = [sys.executable, "-m", "pytest", where, "-m", "gpu", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *workers, f"--junitxml={report}"],
            cwd=_ROOT,
            env={**os.environ, "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            timeout=max(1.0, run.left),
            check=False,
        )
        if not report.exists():
            raise RunError(f"pytest ended with status {done.returncode}: {_end(done.stdout + done.stderr)}")
        found = counts(report.read_text())
    sure = found["passed"] + found["skipped"] > 0 and not found["not passed"]
    said = f"{found['passed']} passed, {found['skipped']} skipped, {len(found['not passed'])} failed"
    return {
        **found,
        "said": said if sure else f"{said}: {', '.join(found['not passed']) or 'no test was found'}",
        **({} if sure else {"wrong": _end(done.stdout)}),
    }


def counts(report: str) -> dict[str, Any]:
    """Count the tests in pytest's XML that passed or were skipped, and name all others."""
    passed, skipped, others = 0, 0, []
    for case in ElementTree.fromstring(report).iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            others.append(f"{case.get('classname', '')}.{case.get('name', '')}")
        elif "skipped" in kinds:
            skipped += 1
        else:
            passed += 1
    return {"passed": passed, "skipped": skipped, "not passed": others}


def _end(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_LINES:])
