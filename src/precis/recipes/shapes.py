"""From a recipe's shape to a configuration and a new model."""

from __future__ import annotations

from transformers import PreTrainedModel

from precis.errors import UserError
from precis.models.prophetnet.config import ProphetNetConfig
from precis.models.prophetnet.model import ProphetNetForConditionalGeneration
from precis.models.zcodepp.config import ZCodePPConfig
from precis.models.zcodepp.model import ZCodePPForConditionalGeneration
from precis.recipes.runs import Shape, ZCodePPShape


def config_type(shape: Shape) -> type[ZCodePPConfig] | type[ProphetNetConfig]:
    """The configuration's type of a shape."""
    return ZCodePPConfig if isinstance(shape, ZCodePPShape) else ProphetNetConfig


def shaped_config(shape: Shape, **ids: int | None) -> ZCodePPConfig | ProphetNetConfig:
    """The configuration of a shape.

    Args:
        ids: control tokens by the configuration's names.

    Raises:
        UserError: the shape is impossible.
    """
    try:
        return config_type(shape)(**shape.to_dict(), **ids)
    except ValueError as error:
        raise UserError(f"the model's shape is impossible: {error}") from error


def model_of(config: ZCodePPConfig | ProphetNetConfig) -> PreTrainedModel:
    """A new model of a configuration."""
    if isinstance(config, ProphetNetConfig):
        return ProphetNetForConditionalGeneration(config)
    return ZCodePPForConditionalGeneration(config)
