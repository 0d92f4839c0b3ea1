"""Metric records: the means over the steps since the last one.

The sums of an open window are part of the run's saved state, so a run that was killed within a window
writes the record that it would have written.
"""

from precis.training.updates import Totals


def add_to_window(window: dict[str, float], totals: Totals, *, learning_rate: float, seconds: float) -> None:
    """Add one step to the sums of `window`. A skipped step counts as such and adds no loss."""
    sums = {
        "steps": 1.0,
        "tokens": float(totals.tokens),
        "seconds": seconds,
        "learning_rate": learning_rate,
        "skipped": 0.0 if totals.finite else 1.0,
    }
    if totals.finite:
        sums |= {"loss": totals.loss, "targets": totals.targets, "gradient_norm": totals.gradient_norm}
        sums |= {f"parts/{name}": value for name, value in totals.parts.items()}
        sums |= {f"counts/{name}": value for name, value in totals.counts.items()}
    for name, value in sums.items():
        window[name] = window.get(name, 0.0) + value


def window_means(window: dict[str, float]) -> dict[str, float]:
    """The record of a window: loss and parts per target, gradient norm and learning rate per step, tokens/s.

    Loss, gradient norm and parts are left out when every step of the window was skipped.
    """
    steps, applied = window["steps"], window["steps"] - window["skipped"]
    record: dict[str, float] = {}
    if applied:
        record["loss"] = window["loss"] / max(1.0, window["targets"])
        for name in (key.removeprefix("parts/") for key in window if key.startswith("parts/")):
            record[name] = window[f"parts/{name}"] / max(1.0, window[f"counts/{name}"])
        record["gradient_norm"] = window["gradient_norm"] / applied
    record["learning_rate"] = window["learning_rate"] / steps
    record["skipped"] = window["skipped"]
    record["tokens_per_second"] = window["tokens"] / max(window["seconds"], 1e-9)
    return record
