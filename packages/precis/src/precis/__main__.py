"""`python -m precis`: the command line, for launchers that start a module in every process."""

import sys

from precis.cli import main

if __name__ == "__main__":
    sys.exit(main())
