"""What is said before training starts where a run will not do what its user hopes, and what to do instead."""

from __future__ import annotations

from precis.recipes.runs import RunPlan
from precis.telling import Tell

FEW_PAIRS = 2000
"""Training pairs below which a model from nothing learns the form of a summary rather than what to put in it."""
FEW_DEV_PAIRS = 20
_FEW_STEPS = 500
_LARGE = 1_000_000  # parameters
_LARGE_RATE = 1.0  # AdamW moves every weight by about the rate in each step


def advise_on_size(run: RunPlan, *, parameters: int, train_pairs: int, total_steps: int, tell: Tell) -> None:
    """Of a model that is trained from nothing: whether its pairs and its steps can teach it."""
    if parameters < _LARGE:
        return
    if train_pairs < FEW_PAIRS:
        smaller = "" if run.name == "zcodepp-few" else ", or take --recipe zcodepp-few"
        tell(
            f"warning: {train_pairs:,} pairs are few for {parameters / 1e6:.1f} M parameters from nothing; start from "
            f"a pre-trained model (--model), attach a prefix to one (precis tune){smaller}"
        )
    if total_steps < _FEW_STEPS:
        tell(
            f"warning: {total_steps:,} steps are few for a model from nothing; give --steps 2000 or more, or smaller "
            "batches (--batch-tokens)"
        )


def advise_on_rate(run: RunPlan, tell: Tell) -> None:
    """Whether the learning rate is of an order that a whole model survives."""
    rate = run.train.learning_rate
    if rate >= _LARGE_RATE:
        tell(f"warning: a learning rate of {rate:g} is no use to a whole model; 1e-5 to 1e-3 is usual (--lr)")


def advise_on_validation(*, dev_pairs: int, shared: int, tell: Tell, name: str = "") -> None:
    """Whether the validation pairs can tell one model from another.

    Args:
        shared: validation pairs whose document is a training document.
        name: of the set, where there are several.
    """
    of = f" of {name}" if name else ""
    if shared:
        which = "all" if shared == dev_pairs else f"{shared:,} of the"
        tell(
            f"warning: {which} {dev_pairs:,} validation documents{of} are training documents too, so their scores "
            "praise what was learnt by heart; give --dev with other pairs, or none and some are held out"
        )
    if dev_pairs < FEW_DEV_PAIRS:
        tell(
            f"warning: {dev_pairs} validation pairs{of} can hardly tell which model is best; give --dev with "
            f"{FEW_DEV_PAIRS} or more, 200 if you can"
        )
