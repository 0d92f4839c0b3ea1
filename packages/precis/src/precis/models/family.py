"""The interface of a family of models: its configuration describes it, so no code depends on its class."""

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict, Unpack, cast

from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils import cached_file

from precis_text.bounded_io import read_json


class FamilyConfig(PreTrainedConfig):
    """Configuration of one of precis's own encoder-decoders.

    Attributes:
        fusion_limit: longest input in tokens for fusion-in-encoder (`SourceEncoder.fused`); 0 if unsupported.
        end_mark: the special token that ends a text if the tokenizer does not name one.
        start_mark: the decoder's start token. Where it equals the end mark, texts do not have a start mark.
    """

    keys_to_ignore_at_inference = [  # noqa: RUF012
        "past_key_values",
        "future_logits",
        "decoder_ngram_attentions",
        "ngram_cross_attentions",
    ]
    fusion_limit: ClassVar[int] = 0
    end_mark: ClassVar[str] = "eos_token"
    start_mark: ClassVar[Literal["bos_token", "eos_token"]] = "bos_token"

    hidden_size: int = 1024
    attenuation: float = 1.0
    use_cache: bool = True
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        if not 0.0 <= self.attenuation <= 1.0:
            raise ValueError(f"attenuation={self.attenuation} is outside [0, 1]; the paper takes 1.0 and 0.5")

    def check_heads(self, name: str) -> None:
        """Raise `ValueError` if the number of attention heads does not divide the width."""
        if self.hidden_size % getattr(self, name):
            raise ValueError(
                f"hidden_size={self.hidden_size} is not a multiple of {name}={getattr(self, name)}"
            )

    def check_known(self, name: str, known: Iterable[str]) -> None:
        """Raise `ValueError` if `known` does not contain the value."""
        if getattr(self, name) not in known:
            raise ValueError(f"{name}={getattr(self, name)!r} is not known; use one of {', '.join(known)}")

    def shape(self) -> dict[str, Any]:
        """Return the values that differ from the defaults, without the model type and the class names."""
        return {k: v for k, v in self.to_diff_dict().items() if k not in ("model_type", "architectures")}

    @property
    def future_streams(self) -> range:
        """The predicting streams: 0 predicts the next token, 1 the token after it, and so on. They start at 1 if
        the decoder itself predicts the next token.
        """
        return range(1, 1)

    @property
    def source_rows(self) -> int | None:
        """Longest input, in tokens, that the position table covers; None without a table."""
        return None

    @property
    def target_rows(self) -> int | None:
        """Longest summary, in tokens, that the position table covers; None without a table."""
        return None

    @property
    def local_chunk(self) -> int | None:
        """Tokens that local layers attend to at once; None if every layer attends to the whole input."""
        return None

    def source_limit(self, trained: int | None, declared: int | None) -> int | None:
        """Return the longest input in tokens for the model; None if unknown.

        Args:
            trained: length of the longest training input.
            declared: the longest input that its tokenizer declares.
        """
        return min((n for n in (trained, declared, self.source_rows) if n is not None), default=None)


class HubOptions(TypedDict, total=False):
    """The place of a file on the Hugging Face hub, in the arguments of `from_pretrained`."""

    revision: str
    subfolder: str
    token: str | bool | None
    cache_dir: str | Path | None
    local_files_only: bool
    force_download: bool
    proxies: dict[str, str] | None


def hub_options(options: Mapping[str, Any]) -> HubOptions:
    """Return the options of `from_pretrained` that locate a file."""
    return cast(HubOptions, {name: v for name, v in options.items() if name in HubOptions.__annotations__})


def read_settings(place: str | Path, **hub: Unpack[HubOptions]) -> dict[str, Any] | None:
    """Return the unchanged `config.json` of a folder or hub name; None if it is missing."""
    found = find_file(place, "config.json", **hub)
    return None if found is None else read_json(Path(found))


def find_file(place: str | Path, name: str, **hub: Unpack[HubOptions]) -> str | None:
    """Return the path of a file in a folder, or of its copy from the hub; None if it is missing."""
    options: dict[str, Any] = {**hub}
    found: str | None = cached_file(str(place), name, _raise_exceptions_for_missing_entries=False, **options)
    return found


def enable_gradient_checkpointing(model: PreTrainedModel) -> None:
    """Keep only the input of every layer, and recompute the rest in the backward pass.

    transformers 5.23 deprecates the method, but the replacement that it names does not exist in 5.17. The
    warning is suppressed.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="`gradient_checkpointing_enable` is deprecated", category=FutureWarning
        )
        model.gradient_checkpointing_enable()
