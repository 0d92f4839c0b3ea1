"""Build the C++ kernel of attention now and say where it is: `python -m precis.nn.disentangled.kernels`.

`make install` does so.

Without a compiler it says why and ends well, unless the kernel is insisted on (PRECIS_COMPILE=1).
"""

import sys

from precis.errors import UserError
from precis.nn.disentangled.kernels import COMPILE, Wish, load, wish


def main() -> int:
    """The exit status."""
    if wish() is Wish.never:
        print(f"precis: {COMPILE} asks for no C++ kernel")
        return 0
    try:
        print(f"precis: the C++ kernel of attention is {load('disentangled')}")
    except UserError as problem:
        print(f"precis: {problem}", file=sys.stderr)
        return 2 if wish() is Wish.always else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
