"""Does an exported model summarize where torch is not installed? Builds the wheel and tries it in a new environment.

    python -m benchmarks.export.fresh_environment EXPORTED_FOLDER [--file report.txt]

The environment is made in a temporary folder. It gets the wheels of precis-text and precis-onnx with what these
declare, such as numpy, tokenizers and onnxruntime. pip installs these as it is configured on this machine.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2] / "packages"
_TEXT = (
    "The town council met on Monday to discuss the old bridge. Engineers had found cracks in two of its pillars. "
    "Several residents asked for a new bridge further south. The council decided to close the bridge to lorries "
    "from the first of May. Repairs will cost about two million and take until autumn.\n"
)


def main() -> int:
    """Print the packages, their size and a summary; return 1 if torch is there or nothing was written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        sources = [PACKAGES / name for name in ("precis-text", "precis-onnx")]
        subprocess.run([*wheel, "--wheel-dir", place, *sources], check=True)
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", *place.glob("*.whl")], check=True)
        packages = _said([python, "-m", "pip", "list", "--format=freeze"]).split()
        size = sum(f.stat().st_size for f in (place / "venv").rglob("*") if f.is_file())
        print(f"{len(packages)} packages, {size / 1e6:,.0f} MB with pip: {' '.join(packages)}")
        (place / "text.txt").write_text(_TEXT, encoding="utf-8")
        command = [
            place / "venv" / "bin" / "precis-onnx",
            given.folder.resolve(),
            given.file.resolve() if given.file else place / "text.txt",
        ]
        summary = _said([*command, "--words", "30"])
        print("summary:", summary.strip())
        return 1 if any(name.startswith("torch==") for name in packages) or not summary.strip() else 0


def _said(command: list[object]) -> str:
    done = subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True, cwd="/"
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
