"""Activations that are computed twice rather than kept, under the name that all supported transformers know it by."""

import warnings

from transformers import PreTrainedModel


def enable_gradient_checkpointing(model: PreTrainedModel) -> None:
    """Keep the input of every layer only, and compute the rest again in the backward pass.

    transformers 5.23 calls the method deprecated; the one that it names instead does not exist in 5.17. That one
    warning is not passed on, any other is.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="`gradient_checkpointing_enable` is deprecated", category=FutureWarning
        )
        model.gradient_checkpointing_enable()
