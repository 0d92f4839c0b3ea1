"""Decoding settings, which tasks, recipes and checkpoints carry."""

from dataclasses import dataclass
from typing import Literal

from precis_text.config import Settings
from precis_text.errors import UserError

# Beyond these bounds a search takes hours without better summaries.
_BOUNDS = {
    "beams": (1, 128), "no_repeat_ngram": (0, 128), "min_tokens": (0, 32_768), "max_tokens": (1, 32_768),
}  # fmt: skip
_MOST_PENALTY = 50  # a length to a larger power overflows


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(Settings):
    """Decoding settings.

    Attributes:
        beams: width of the beam search; 1 is greedy.
        length_penalty: a beam's log probability is divided by its length to this power; above 1 favours longer
            summaries.
        no_repeat_ngram: n-grams of this length never occur twice in a summary; 0 allows all.
        min_tokens, max_tokens: bounds on the summary's length in new tokens, including the end token.
        early_stopping: when the search stops. True: as soon as `beams` summaries are finished. False: when a better
            one is unlikely. "never": when a better one is impossible.
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
        if not abs(self.length_penalty) <= _MOST_PENALTY:  # nan too
            raise UserError(
                f"length_penalty={self.length_penalty} must be -{_MOST_PENALTY} to {_MOST_PENALTY}"
            )
        if self.min_tokens > self.max_tokens:
            raise UserError(f"min_tokens={self.min_tokens} is more than max_tokens={self.max_tokens}")
