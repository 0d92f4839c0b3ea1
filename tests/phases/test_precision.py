"""In which precision a run computes by default: what the hardware and torch will do, or what the user says."""

import os
import subprocess
import sys

import pytest

from precis.recipes.run_plan import PRECISION, native_precision
from precis_text.errors import UserError

# what makes torch and oneDNN on a new processor compute like one without AVX-512
OLD_PROCESSOR = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}


def test_the_environment_overrules_the_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in ("bf16", "fp32"):
        monkeypatch.setenv(PRECISION, asked)
        assert native_precision() == asked
    monkeypatch.setenv(PRECISION, "fp16")
    with pytest.raises(UserError, match="PRECIS_PRECISION=fp16: must be bf16 or fp32"):
        native_precision()


@pytest.mark.long
def test_a_processor_that_multiplies_in_bf16_is_not_asked_where_torch_will_not() -> None:
    program = (
        "import torch; torch.cuda.is_available = lambda: False\n"
        "torch.cpu._is_avx512_bf16_supported = lambda: True\n"
        "from precis.recipes.run_plan import native_precision; print(native_precision())"
    )
    environment = {name: value for name, value in os.environ.items() if name != PRECISION} | OLD_PROCESSOR
    command = [sys.executable, "-c", program]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "fp32"
