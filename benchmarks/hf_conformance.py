"""transformers' own common tests on every model class of precis: its users can rely on the same behaviour here.

    python -m benchmarks.hf_conformance
    python -m benchmarks.hf_conformance --only prophetnet
    python -m benchmarks.hf_conformance --checkout ~/transformers    # generation and export tests too

The tests come from the source distribution of the pinned transformers (constraints.txt). It is fetched from the
package index once, checked against its SHA-256 and unpacked into a cache; nothing of it is in this repository. It
holds the common model and configuration tests. The distribution leaves out the folders with those of generation and
export. They run if --checkout names a checkout of the same version, and count as unavailable otherwise.

Each class passes, fails or skips each test. `hf_cases.py` lists the tests that may fail, with reasons. The exit code is
1 when another test fails, or when a listed one passes.
"""

import argparse
import contextlib
import hashlib
import importlib
import importlib.util
import io
import json
import os
import re
import sys
import tarfile
import tempfile
import types
import urllib.request
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from faults.report import header

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "hf_tests"
#: What the distribution's tests import and do not bring: name -> what stands for it.
ABSENT: dict[str, dict[str, object]] = {
    "generation.test_utils": {"GenerationTesterMixin": type("GenerationTesterMixin", (), {})},
    "exporters.test_export": {"ExportTesterMixin": type("ExportTesterMixin", (), {})},
    # settings that every configuration is to take: ours to choose
    "utils.test_configuration_utils": {
        "config_common_kwargs": {
            "return_dict": False,
            "output_hidden_states": True,
            "dtype": "float16",
            "chunk_size_feed_forward": 5,
            "architectures": ["OneOfOurs"],
            "id2label": {0: "no", 1: "yes", 2: "maybe"},
            "label2id": {"no": 0, "yes": 1, "maybe": 2},
            "problem_type": "regression",
        }
    },
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="classes whose name holds this")
    parser.add_argument("--test", default="", help="tests whose name holds this")
    parser.add_argument(
        "--checkout", type=Path, help="a checkout of transformers, for what no distribution has"
    )
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/precis/transformers-tests").expanduser())
    parser.add_argument("--verbose", action="store_true", help="print where each failure comes from")
    args = parser.parse_args()
    header("transformers' common tests on the model classes of precis")
    version = pinned_version()
    folder = args.checkout / "tests" if args.checkout else fetch_tests(version, args.cache)
    absent = provide(folder)
    need_parameterized(args.cache)
    print(f"transformers {version}; not to be had: {', '.join(absent) or 'nothing'}", flush=True)
    tally = run(args.only, args.test, verbose=args.verbose)
    return tally.report(whole=not args.only and not args.test)


def pinned_version() -> str:
    """Return the version of transformers in constraints.txt.

    Raises:
        SystemExit: the file does not pin one, or another one is installed.
    """
    found = re.search(r"^transformers==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    from transformers import __version__

    if found is None or found[1] != __version__:
        raise SystemExit(
            f"constraints.txt pins {found and found[1]}, transformers {__version__} is installed"
        )
    return found[1]


def fetch_tests(version: str, cache: Path) -> Path:
    """Return the folder of the distribution's tests, after fetching it if necessary."""
    folder = cache / version / "tests"
    if not (folder / "__init__.py").exists():
        packed = fetch("transformers", f"transformers-{version}.tar.gz")
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for member in archive:
                place = re.fullmatch(r"transformers-[^/]+/tests/([\w.]+)", member.name)
                content = archive.extractfile(member) if place else None
                if place and content:
                    (folder / place[1]).write_bytes(content.read())
        (folder / "__init__.py").touch()  # last: the folder is whole
    return folder


def fetch(project: str, filename: str) -> bytes:
    """Fetch a file of a project from the package index and compare it with the index's SHA-256.

    Raises:
        SystemExit: the index does not have it, or it is damaged.
    """
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    page = urllib.request.Request(
        f"{index}/{project}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    with urllib.request.urlopen(page, timeout=60) as answer:
        files = {entry["filename"]: entry for entry in json.load(answer)["files"]}
    if filename not in files:
        raise SystemExit(f"{index} does not have {filename}")
    with urllib.request.urlopen(files[filename]["url"], timeout=300) as answer:
        content: bytes = answer.read()
    if hashlib.sha256(content).hexdigest() != files[filename]["hashes"]["sha256"]:
        raise SystemExit(f"{filename} from {index} is not what its SHA-256 says; try again")
    return content


def need_parameterized(cache: Path) -> None:
    """Make the package `parameterized` importable, which transformers' tests need and precis does not."""
    if importlib.util.find_spec("parameterized") is not None:
        return
    wheel = "parameterized-0.9.0-py2.py3-none-any.whl"
    folder = cache / "parameterized"
    if not folder.is_dir():
        with zipfile.ZipFile(io.BytesIO(fetch("parameterized", wheel))) as archive:
            archive.extractall(folder)
    sys.path.insert(0, str(folder))


def provide(folder: Path) -> list[str]:
    """Make the tests importable as the package `hf_tests`; what they import and do not bring is returned."""
    package = types.ModuleType(PACKAGE)
    package.__path__ = [str(folder)]
    sys.modules[PACKAGE] = package
    absent = []
    for name, content in ABSENT.items():
        if (folder / (name.replace(".", "/") + ".py")).exists():
            continue
        parent, _ = name.split(".")
        absent.append(name)
        for part in (f"{PACKAGE}.{parent}", f"{PACKAGE}.{name}"):
            module = sys.modules.setdefault(part, types.ModuleType(part))
            module.__path__ = []
        for key, value in content.items():
            setattr(module, key, value)
    return absent


@dataclass
class Tally:
    """A pytest plugin that records the outcome of each test of each class."""

    outcomes: dict[tuple[str, str], str] = field(default_factory=dict)
    messages: dict[tuple[str, str], str] = field(default_factory=dict)
    verbose: bool = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        _, case, test = report.nodeid.split("::")
        key = (case, test)
        if report.failed:
            self.outcomes[key] = "failed"
            self.messages.setdefault(key, report.longreprtext)
        elif report.skipped:
            self.outcomes.setdefault(key, "skipped")
        elif report.when == "call":
            self.outcomes.setdefault(key, "passed")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            print(report.longreprtext)

    def report(self, *, whole: bool) -> int:
        """Print the table, the list and the figure; the exit code."""
        from benchmarks.hf_cases import ALLOWED

        wrong = [key for key, how in self.outcomes.items() if how == "failed" and key not in ALLOWED]
        mended = [key for key in ALLOWED if self.outcomes.get(key) not in ("failed", None)]
        missing = [key for key in ALLOWED if whole and key not in self.outcomes]
        print(f"\n{'class':44} passed failed skipped")
        for case in dict.fromkeys(case for case, _ in self.outcomes):
            count = Counter(how for (name, _), how in self.outcomes.items() if name == case)
            print(f"{case:44} {count['passed']:6} {count['failed']:6} {count['skipped']:7}")
        print("\nmay fail:")
        for (case, test), reason in ALLOWED.items():
            print(f"  {case}.{test}: {reason}")
        for case, test in wrong:
            print(f"failed: {case}.{test}: {_last_line(self.messages[case, test])}")
            if self.verbose:
                print(self.messages[case, test])
        for case, test in mended:
            print(f"passes, and is listed: {case}.{test}")
        for case, test in missing:
            print(f"listed, and not there: {case}.{test}")
        counted = Counter(self.outcomes.values())
        print(
            f"{len(self.outcomes)} tests: {counted['passed']} passed, {counted['skipped']} skipped, "
            f"{counted['failed']} failed, of which {len(wrong)} without a listed reason"
        )
        return int(bool(wrong or mended or missing) or not counted["passed"])


def run(only: str, test: str, *, verbose: bool) -> Tally:
    """Run the tests of the classes; both words narrow it down."""
    tally = Tally(verbose=verbose)
    chosen = " and ".join(word for word in (only, test) if word)
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "pytest.ini"
        settings.write_text("[pytest]\n")
        words = ["-p", "no:cacheprovider", "-p", "no:warnings", "-p", "no:terminal", "-c", str(settings)]
        narrowed = ["-k", chosen] if chosen else []
        cases = str(Path(__file__).with_name("hf_cases.py"))
        with contextlib.chdir(folder):  # some tests write to the current folder
            pytest.main([*words, "--import-mode=importlib", *narrowed, cases], plugins=[tally])
    return tally


def _last_line(message: str) -> str:
    errors = [line[1:].strip() for line in message.splitlines() if line.startswith("E  ")]
    return (errors or message.splitlines() or [""])[0][:200]


if __name__ == "__main__":
    sys.exit(main())
