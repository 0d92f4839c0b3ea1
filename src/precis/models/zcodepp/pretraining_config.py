"""Shape of a Z-Code++ in its first pre-training phase: the model itself and a generator beside it."""

from typing import Any

from precis.models.zcodepp.config import ZCodePPConfig


class ZCodePPPreTrainingConfig(ZCodePPConfig):
    """A `ZCodePPConfig` and its generator, which has the same width, heads and table.

    Args:
        generator_layers: depth of the generator. Z-Code++ says 6 "following DeBERTaV3" for its large model; DeBERTa's
            code takes half of the discriminator's depth.
        generator_mask_decoder: DeBERTa's enhanced mask decoder, the generator's last layer run twice with absolute
            positions.
        generator_positions: absolute positions it knows.
    """

    model_type = "zcodepp-pretraining"

    generator_layers: int = 6
    generator_mask_decoder: bool = False
    generator_positions: int = 512

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        least = 2 if self.generator_mask_decoder else 1
        if self.generator_layers < least:
            raise ValueError(f"generator_layers={self.generator_layers} is too small; use {least} or more")

    def finished(self) -> ZCodePPConfig:
        """The configuration of the model that pre-training leaves behind."""
        own = {
            "model_type",
            "generator_layers",
            "generator_mask_decoder",
            "generator_positions",
            "architectures",
        }
        return ZCodePPConfig(
            **{name: value for name, value in self.to_diff_dict().items() if name not in own}
        )
