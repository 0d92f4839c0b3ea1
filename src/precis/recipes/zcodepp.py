"""Z-Code++ in several sizes: each a function that returns a `RunPlan`.

A variant is another value, `replace(zcodepp_mini(), max_source=256)`, or on the command line
`--recipe zcodepp-mini --set max_source=256 --set train.learning_rate=3e-4`.

The paper trains the large model only. Its fine-tuning settings (Table 8) are the defaults of small, base and
large, which are meant to start from pre-trained weights; micro and mini are meant to be trained from nothing
on the pairs themselves, for which larger learning rates and label smoothing serve better.
"""

from __future__ import annotations

from dataclasses import replace

from precis.decoding import GenerationSettings
from precis.recipes.runs import RunPlan, ZCodePPShape, from_nothing, native_precision
from precis.training.settings import Highest, TrainSettings


def zcodepp_demo() -> RunPlan:
    """1.4 M parameters: what `make demo` trains in five minutes on the synthetic corpus.

    Small batches, since many steps teach a tiny model copying sooner than many pairs; few entries in the vocabulary,
    so that invented names fall into parts that were seen before.
    """
    return RunPlan(
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


def zcodepp_few() -> RunPlan:
    """1.4 M parameters: the default where pairs are few (hundreds or a few thousand), in minutes on a CPU.

    The demo's model. Steps count here and not epochs: a model from nothing needs a couple of thousand of them before it
    copies, however few pairs there are; the best validation is kept, so that too many do no harm.
    """
    return replace(
        zcodepp_demo(),
        name="zcodepp-few",
        train=TrainSettings(
            steps=2000,
            learning_rate=2e-3,
            warmup_steps=200,
            precision=native_precision(),
            validate_every=200,
            select=Highest(metric="rougeL"),
        ),
        batch_tokens=3000,
        max_source=512,
        max_target=128,
        generation=GenerationSettings(beams=4),
    )


def zcodepp_micro() -> RunPlan:
    """2.0 M parameters: learns small, regular tasks on a CPU in minutes."""
    shape = _shape(width=128, heads=2, layers=3, vocab_size=4000)
    return from_nothing("zcodepp-micro", shape, learning_rate=1e-3, batch_tokens=8192)


def zcodepp_mini() -> RunPlan:
    """13 M parameters: trained from nothing on tens of thousands of pairs on a CPU in an hour or two."""
    shape = _shape(width=256, heads=4, layers=6, vocab_size=8000)
    return from_nothing("zcodepp-mini", shape, learning_rate=7e-4, batch_tokens=12288)


def zcodepp_small() -> RunPlan:
    """61 M parameters."""
    return _to_fine_tune("zcodepp-small", _shape(width=512, heads=8, layers=6, vocab_size=32_000))


def zcodepp_base() -> RunPlan:
    """297 M parameters, 199 M without embeddings."""
    return _to_fine_tune("zcodepp-base", _shape(width=768, heads=12, layers=12, vocab_size=128_100))


def zcodepp_large() -> RunPlan:
    """837 M parameters, 705.6 M without embeddings: the paper's "710M"."""
    return _to_fine_tune("zcodepp-large", _shape(width=1024, heads=16, layers=24, vocab_size=128_100))


def _shape(*, width: int, heads: int, layers: int, vocab_size: int) -> ZCodePPShape:
    return ZCodePPShape(
        vocab_size=vocab_size,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        encoder_layers=layers,
        decoder_layers=layers,
    )


def _to_fine_tune(name: str, shape: ZCodePPShape) -> RunPlan:
    """Out of Z-Code++ Table 8, which prints what was searched and not what was chosen."""
    train = TrainSettings(
        epochs=10,
        learning_rate=8e-6,
        warmup_steps=500,
        weight_decay=0.01,
        clip_norm=1.0,
        eps=1e-6,
        precision=native_precision(),
        select=Highest(metric="rougeL"),
    )
    return RunPlan(
        name=name,
        model=shape,
        train=train,
        batch_size=64,
        max_source=1024,
        max_target=256,
        generation=GenerationSettings(beams=5),
    )
