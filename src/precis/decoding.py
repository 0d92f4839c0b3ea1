"""Settings of decoding, which tasks, recipes and checkpoints carry."""

from dataclasses import dataclass
from typing import Literal

from precis.config import Settings
from precis.errors import UserError

# Beyond these a search takes hours and writes nothing better.
_BOUNDS = {
    "beams": (1, 128),
    "no_repeat_ngram": (0, 128),
    "min_tokens": (0, 32_768),
    "max_tokens": (1, 32_768),
}


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(Settings):
    """Settings of the search for a summary.

    Attributes:
        beams: width of the beam search; 1 is greedy.
        length_penalty: exponent of the length by which a beam's log probability is divided; above 1 favours
            longer summaries.
        no_repeat_ngram: n-grams of this length never occur twice in a summary; 0 allows all.
        min_tokens, max_tokens: bounds of the summary's length in new tokens, the end mark included.
        early_stopping: when the search stops. True: as soon as `beams` finished summaries are found. False: when no
            better one is likely. "never": when no better one is possible.
    """

    beams: int = 1
    length_penalty: float = 1.0
    no_repeat_ngram: int = 0
    min_tokens: int = 0
    max_tokens: int = 128
    early_stopping: bool | Literal["never"] = True

    def __post_init__(self) -> None:
        for name, (least, most) in _BOUNDS.items():
            if not least <= getattr(self, name) <= most:
                raise UserError(f"{name}={getattr(self, name)} must be {least} to {most:,}")
        if self.min_tokens > self.max_tokens:
            raise UserError(f"min_tokens={self.min_tokens} is more than max_tokens={self.max_tokens}")
