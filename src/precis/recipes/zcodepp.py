"""Z-Code++ in five sizes: each a function that returns a `Run`.

A variant is another value, `replace(zcodepp_mini(), max_source=256)`, or on the command line
`--recipe zcodepp-mini --set max_source=256 --set train.learning_rate=3e-4`.

The paper trains the large model only. Its fine-tuning settings (Table 8) are the defaults of small, base and
large, which are meant to start from pre-trained weights; micro and mini are meant to be trained from nothing
on the pairs themselves, for which larger learning rates and label smoothing serve better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from precis.config import Settings, nearest
from precis.data.tasks import GenerationSettings
from precis.errors import UserError
from precis.training.settings import Highest, TrainSettings


@dataclass(frozen=True, kw_only=True)
class Shape(Settings):
    """What of a `ZCodePPConfig` a recipe decides; the names are the configuration's own, explained there.

    `vocab_size` is what a new tokenizer is trained to; a given tokenizer brings its own size.
    """

    vocab_size: int
    hidden_size: int
    num_attention_heads: int
    intermediate_size: int
    encoder_layers: int
    decoder_layers: int
    decoder_feed_forward: str = "relu"
    encoder_positions: str = "disentangled"
    position_buckets: int = 256
    max_relative_positions: int = 512
    chunk_length: int | None = None
    global_layers: int = 1
    dropout: float = 0.1
    attention_dropout: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """All that a fine-tuning run is told besides its data.

    Attributes:
        model: shape of a new model; without meaning when the run starts from a given one.
        train: the loop's settings.
        batch_size, batch_tokens: rows of a batch, or the most source and target tokens in it; one of the two.
        max_source, max_target: longest document and summary in tokens; longer ones are cut, and counted.
        label_smoothing: share of the target's probability that is spread over the vocabulary.
        generation: how the finished model writes summaries, unless asked otherwise.
        generated_rows: how many rows of the dev set are summarized at each validation (0: none, loss alone).
    """

    name: str
    model: Shape
    train: TrainSettings
    batch_size: int | None = None
    batch_tokens: int | None = None
    max_source: int = 512
    max_target: int = 128
    label_smoothing: float = 0.1
    generation: GenerationSettings = field(default_factory=GenerationSettings)
    generated_rows: int = 200

    def __post_init__(self) -> None:
        if (self.batch_size is None) == (self.batch_tokens is None):
            raise UserError(
                f"give either batch_size or batch_tokens, not batch_size={self.batch_size} and "
                f"batch_tokens={self.batch_tokens}"
            )
        for name, least in {"max_source": 4, "max_target": 2, "generated_rows": 0}.items():
            if getattr(self, name) < least:
                raise UserError(f"{name}={getattr(self, name)} is too small; it must be at least {least}")


def zcodepp_demo() -> Run:
    """1.4 M parameters: what `make demo` trains in five minutes on the synthetic corpus.

    Small batches, since many steps teach a tiny model copying sooner than many pairs; few entries in the vocabulary,
    so that invented names fall into parts that were seen before.
    """
    return Run(
        name="zcodepp-demo",
        model=replace(_shape(width=128, heads=2, layers=2, vocab_size=3000), attention_dropout=0.0),
        train=TrainSettings(
            epochs=6, learning_rate=2e-3, warmup_steps=300, precision=native_precision(), log_every=100
        ),
        batch_tokens=3000,
        max_source=320,
        max_target=64,
        generation=GenerationSettings(beams=4, max_tokens=64),
        generated_rows=100,
    )


def zcodepp_micro() -> Run:
    """2.0 M parameters: learns small, regular tasks on a CPU in minutes."""
    return Run(
        name="zcodepp-micro",
        model=_shape(width=128, heads=2, layers=3, vocab_size=4000),
        train=TrainSettings(epochs=10, learning_rate=1e-3, warmup_steps=300, select=Highest(metric="rougeL")),
        batch_tokens=8192,
        max_source=512,
        generation=GenerationSettings(beams=4),
    )


def zcodepp_mini() -> Run:
    """13 M parameters: trained from nothing on tens of thousands of pairs on a CPU in an hour or two."""
    return Run(
        name="zcodepp-mini",
        model=_shape(width=256, heads=4, layers=6, vocab_size=8000),
        train=TrainSettings(epochs=10, learning_rate=7e-4, warmup_steps=300, select=Highest(metric="rougeL")),
        batch_tokens=12288,
        max_source=512,
        generation=GenerationSettings(beams=4),
    )


def zcodepp_small() -> Run:
    """61 M parameters."""
    return _to_fine_tune("zcodepp-small", _shape(width=512, heads=8, layers=6, vocab_size=32_000))


def zcodepp_base() -> Run:
    """297 M parameters, 199 M without embeddings."""
    return _to_fine_tune("zcodepp-base", _shape(width=768, heads=12, layers=12, vocab_size=128_100))


def zcodepp_large() -> Run:
    """837 M parameters, 705.6 M without embeddings: the paper's "710M"."""
    return _to_fine_tune("zcodepp-large", _shape(width=1024, heads=16, layers=24, vocab_size=128_100))


def pretrained() -> Run:
    """For any model that is given with `--model`: settings that serve BART, T5 and their like."""
    train = TrainSettings(epochs=3, learning_rate=3e-5, warmup_steps=200, select=Highest(metric="rougeL"))
    return Run(
        name="pretrained",
        model=zcodepp_mini().model,  # not used: the shape is the given model's
        train=train,
        batch_size=16,
        max_source=1024,
        max_target=128,
        generation=GenerationSettings(beams=4),
    )


RECIPES: Mapping[str, Callable[[], Run]] = {
    "zcodepp-demo": zcodepp_demo,
    "zcodepp-micro": zcodepp_micro,
    "zcodepp-mini": zcodepp_mini,
    "zcodepp-small": zcodepp_small,
    "zcodepp-base": zcodepp_base,
    "zcodepp-large": zcodepp_large,
    "pretrained": pretrained,
}


def native_precision() -> Literal["bf16", "fp32"]:
    """bf16 where the hardware multiplies in it (a recent GPU; a CPU with AVX512-BF16 or AMX), else fp32."""
    import torch

    if torch.cuda.is_available():
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    # torch's public name for these, torch.cpu.get_capabilities, is younger than the oldest torch supported here
    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bf16" if native else "fp32"


def recipe(name: str) -> Run:
    """The recipe called `name`.

    Raises:
        UserError: there is none; the nearest names are given.
    """
    if name not in RECIPES:
        raise UserError(f"unknown recipe {name!r}{nearest(name, RECIPES)}")
    return RECIPES[name]()


def _shape(*, width: int, heads: int, layers: int, vocab_size: int) -> Shape:
    return Shape(
        vocab_size=vocab_size,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        encoder_layers=layers,
        decoder_layers=layers,
    )


def _to_fine_tune(name: str, shape: Shape) -> Run:
    """Out of Z-Code++ Table 8, which prints what was searched and not what was chosen."""
    train = TrainSettings(
        epochs=10,
        learning_rate=8e-6,
        warmup_steps=500,
        weight_decay=0.01,
        clip_norm=1.0,
        eps=1e-6,
        select=Highest(metric="rougeL"),
    )
    return Run(
        name=name,
        model=shape,
        train=train,
        batch_size=64,
        max_source=1024,
        max_target=256,
        generation=GenerationSettings(beams=5),
    )


@dataclass(frozen=True, kw_only=True)
class Size:
    """Parameters of a model; `embeddings` are those of the (tied) token table."""

    total: int
    embeddings: int

    @property
    def without_embeddings(self) -> int:
        """What papers of encoder-decoders usually print."""
        return self.total - self.embeddings


def count_parameters(shape: Shape) -> Size:
    """Count the parameters of a shape without taking memory for them."""
    import torch

    from precis.models.zcodepp import ZCodePPForConditionalGeneration
    from precis.models.zcodepp_config import ZCodePPConfig

    with torch.device("meta"):
        model = ZCodePPForConditionalGeneration(ZCodePPConfig(**shape.to_dict()))
        model.tie_weights()
    return Size(
        total=sum(parameter.numel() for parameter in model.parameters()),
        embeddings=shape.vocab_size * shape.hidden_size,
    )


if __name__ == "__main__":
    print(f"{'recipe':<16}{'without embeddings':>20}{'with':>12}")
    for run in (zcodepp_micro(), zcodepp_mini(), zcodepp_small(), zcodepp_base(), zcodepp_large()):
        size = count_parameters(run.model)
        print(f"{run.name:<16}{size.without_embeddings / 1e6:>18.1f} M{size.total / 1e6:>10.1f} M")
