"""Meaningless command lines of every command: precis must answer each with one useful line and exit code 2.

    python -m faults.command_lines

The table is that of the tests (tests/cli/wrong_command_lines.txt). A line is useful if it names what is wrong, contains
neither a traceback nor "unexpected", and fits some lines of a terminal; nothing may be written.
"""

import argparse
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

from faults.report import Tally, header, verdict
from tests.cli.wrong_command_lines import problems_of, wrong_lines, wrong_place


def main() -> int:
    """Run the table; the exit code is 1 if a line is not answered as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="every tenth line")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    header("Wrong command lines: one useful line each")
    tally, began = Tally(), time.perf_counter()
    with wrong_place() as folder:
        for line in wrong_lines()[:: 10 if quick else 1]:
            problems = problems_of(line, folder)
            tally.hold(not problems, f"precis {line.text}: {'; '.join(problems)}")
    print(f"{time.perf_counter() - began:.1f} s")
    return verdict("wrong command lines", tally)


if __name__ == "__main__":
    sys.exit(main())
