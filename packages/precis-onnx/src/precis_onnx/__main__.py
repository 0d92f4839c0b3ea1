"""The entry point of `python -m precis_onnx`, the same as the command `precis-onnx`."""

import sys

from precis_onnx.cli import main

sys.exit(main())
