"""`python -m precis_onnx` is the command `precis-onnx`."""

import sys

from precis_onnx.cli import main

sys.exit(main())
