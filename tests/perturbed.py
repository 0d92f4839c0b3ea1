"""Tests that hold by rounding: the fast tests as the machine is and with their sums in another order, side by side.

    perturbation  | what is added up otherwise
    --------------|-----------------------------------------------------------------
    two-threads   | sums are split between two threads
    no-vectors    | torch's own kernels use no vectors at all
    and the modes of `tests.modes` that the machine is not in

A test that passes in one and fails in another asserts rounding, not what it claims. One that is skipped somewhere (the
kernel's own tests without the kernel) has no outcome there: it is counted and is no change.
"""

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

THREADS = "PRECIS_TEST_THREADS"
"""The variable of the environment that says how many threads a test's process computes with (`conftest.py`)."""
PERTURBATIONS: Mapping[str, Mapping[str, str]] = {
    "two-threads": {THREADS: "2"},
    # oneDNN too: where it has bf16 and torch has no AVX-512, torch's own attention in bf16 raises ("pack_vnni2")
    "no-vectors": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}
AS_IS = "as-is"
FAST = ("-n", "2", "--dist", "worksteal", "-m", "not slow and not gpu and not browser")

Outcomes = Mapping[str, tuple[str, str]]
"""Of each test (`file::name`): passed, failed or skipped, and the first line of what was said."""


def read(report: Path) -> Outcomes:
    """The outcomes in pytest's JUnit file of the family xunit1; a test that has several has its worst."""
    found: dict[str, tuple[str, str]] = {}
    worst = ("passed", "skipped", "failed")
    for case in ET.parse(report).iter("testcase"):
        place = (
            case.get("file") or f"{case.get('classname', '').replace('.', '/')}.py"
        )  # xdist's own: no file
        test = f"{place}::{case.get('name')}"
        outcome = ("passed", "")
        for told in case:
            if told.tag in ("failure", "error", "skipped"):
                said = (told.get("message") or told.text or "").strip().splitlines()
                outcome = ("skipped" if told.tag == "skipped" else "failed", said[0] if said else "")
        if test not in found or worst.index(outcome[0]) > worst.index(found[test][0]):
            found[test] = outcome
    return found


def changes(outcomes: Mapping[str, Outcomes]) -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Tests that passed in one setting and failed in another, with what they did in each where they ran."""
    ran: dict[str, dict[str, tuple[str, str]]] = {}
    for setting, found in outcomes.items():
        for test, outcome in found.items():
            if outcome[0] != "skipped":
                ran.setdefault(test, {})[setting] = outcome
    return {test: each for test, each in ran.items() if len({outcome for outcome, _ in each.values()}) > 1}


def told(outcomes: Mapping[str, Outcomes]) -> str:
    """What `changes` found, and what every setting counted, in lines."""
    lines = []
    for setting, found in outcomes.items():
        counts = Counter(outcome for outcome, _ in found.values())
        lines.append(f"{setting}: {', '.join(f'{counts[each]:,} {each}' for each in sorted(counts))}")
    changed = changes(outcomes)
    lines.append(f"tests whose outcome changes: {len(changed)}")
    for test, each in sorted(changed.items()):
        lines.append(f"  {test}")
        lines += [f"    {setting}: {': '.join(filter(None, outcome))}" for setting, outcome in each.items()]
    failed = [
        test
        for test in sorted(set().union(*outcomes.values()) - set(changed))
        if any(found.get(test, ("", ""))[0] == "failed" for found in outcomes.values())
    ]
    if failed:
        lines += ["tests that fail wherever they run:", *(f"  {test}" for test in failed)]
    return "\n".join(lines)


def run(settings: Mapping[str, Mapping[str, str]], tests: Sequence[str], folder: Path) -> int:
    """Run the tests as they are and in each setting; 1 if an outcome changes or a run leaves no report."""
    folder.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, Outcomes] = {}
    for setting, variables in {AS_IS: {}, **settings}.items():
        said = " ".join(f"{name}={value}" for name, value in variables.items())
        print(f"{setting}: {said or 'no variable set'}", flush=True)
        report, begun = folder / f"{setting}.xml", time.monotonic()
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", *FAST, *tests]
        command += ["-o", "junit_family=xunit1", f"--junitxml={report}"]
        subprocess.run(command, env={**os.environ, **variables}, check=False)
        if not report.exists():
            print(f"{setting}: pytest left no report")
            return 1
        outcomes[setting] = read(report)
        print(f"{setting}: {time.monotonic() - begun:.0f} s", flush=True)
    print(told(outcomes))
    return int(bool(changes(outcomes)))
