"""The package of objectives: what its modules import."""

import subprocess
import sys

import pytest


@pytest.mark.long
def test_objectives_of_texts_do_not_import_transformers() -> None:
    names = "causal, encoder_heads, future_tokens, losses, sequence_to_sequence"
    code = f"from precis.objectives import {names}; import sys; print('transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
