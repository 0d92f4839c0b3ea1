"""The device that tests are run on to see what an accelerator would show (`tests/elsewhere`)."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

RULES = """
import torch
from torch import nn

here = torch.ones(2, 2, device="elsewhere")
assert torch.accelerator.current_accelerator().type == "elsewhere"


def refused(work):
    try:
        work()
    except RuntimeError as error:
        return "same device" in str(error) or "generator is the CPU's" in str(error)
    return False


assert refused(lambda: here + torch.ones(2, 2))
assert refused(lambda: here @ torch.ones(2, 2))
assert refused(lambda: here.index_select(0, torch.tensor([0])))
assert refused(lambda: torch.randn(2, device="elsewhere", generator=torch.Generator()))
assert torch.equal((here + torch.tensor(1.0)).cpu(), torch.full((2, 2), 2.0))  # a number is on all devices
assert here[torch.tensor([0])].shape == (1, 2)  # and so are indices

model = nn.Sequential(nn.Embedding(5, 2), nn.Linear(2, 5, bias=False))
model[1].weight = model[0].weight
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
before = model[0].weight.detach().clone()
model.to("elsewhere")
assert model[1].weight is model[0].weight is optimizer.param_groups[0]["params"][0]
with torch.autocast("elsewhere", dtype=torch.bfloat16):
    states = model(torch.tensor([[1, 2]], device="elsewhere"))
assert states.dtype == torch.bfloat16
states.float().square().sum().backward()
optimizer.step()
assert (model[0].weight.detach().cpu() != before).any()
"""


@pytest.fixture
def environment() -> dict[str, str]:
    compiler = (shlex.split(os.environ.get("CXX", "")) or ["c++"])[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler ({compiler})")
    path = os.pathsep.join([str(ROOT / "tests" / "elsewhere"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


@pytest.mark.slow
def test_it_does_not_mix_with_the_cpu_and_trains(environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", RULES], env=environment, check=True)


@pytest.mark.slow
def test_the_training_tests_hold_on_an_accelerator(environment: dict[str, str]) -> None:
    places = [
        "tests/training",
        "tests/objectives",
        "tests/phases/train/test_finetuning.py",
        "tests/phases/train/test_prefix_tuning.py",
    ]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *places]
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
