"""Training: one loop for all phases, with checkpoints that survive a kill."""

from typing import Literal

from precis.training.callbacks import Callback, JsonLines, TensorBoard, Trained, TrainResult
from precis.training.checkpoint import load_weights
from precis.training.curves import Curves
from precis.training.progress import ProgressBar
from precis.training.trackers import trackers_asked_for
from precis.training.training_loop import train
from precis.training.training_settings import Highest, Lowest, TrainSettings
from precis.training.validation import mean_loss

__all__ = [
    "Callback", "Curves", "Highest", "JsonLines", "Lowest", "ProgressBar", "TensorBoard", "TrainResult",
    "TrainSettings", "Trained", "load_weights", "mean_loss", "standard_callbacks", "train",
]  # fmt: skip


def standard_callbacks(*, kept: Literal["best", "last"] = "best") -> list[Callback]:
    """Return the usual callbacks: metrics as JSON lines, TensorBoard events, plotted curves, a progress bar.

    The trackers that PRECIS_TRACK names follow.

    Args:
        kept: which weights the run keeps; the plot marks their step.
    """
    return [JsonLines(), TensorBoard(), Curves(kept=kept), ProgressBar(), *trackers_asked_for()]
