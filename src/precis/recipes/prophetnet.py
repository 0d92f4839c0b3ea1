"""ProphetNet in four sizes: each a function that returns a `RunPlan`.

Large is the released model and its fine-tuning on CNN/DailyMail (section 3.2: Adam, 1e-4, batches of 512, 1,000 steps
of warm-up, 10 epochs; clipping at 0.1 and weight decay 0.01 are the released scripts'; the rate falls linearly to 0 as
in all our runs, where those scripts let it fall with the inverse square root of the step). Base is the model of section
3.6. Micro and mini are meant to be trained from nothing on the pairs themselves; their weights begin
otherwise than the released N(0, 0.02) (docs/adr/0007). What the paper trains and decodes each of its tasks with is in
`prophetnet_tasks.py` and `prophetnet_decoding.py`: with `--task`, base and large take it.
"""

from __future__ import annotations

from dataclasses import replace

from precis.decoding import GenerationSettings
from precis.recipes.runs import ProphetNetShape, RunPlan, from_nothing
from precis.training.settings import Highest, TrainSettings


def prophetnet_micro() -> RunPlan:
    """2.1 M parameters: for small, regular tasks on a CPU."""
    return RunPlan(
        name="prophetnet-micro",
        model=_narrow(_shape(width=128, heads=2, layers=3, vocab_size=4000)),
        train=from_nothing(learning_rate=1e-3),
        batch_tokens=8192,
        max_source=512,
        generation=GenerationSettings(beams=4),
    )


def prophetnet_mini() -> RunPlan:
    """14 M parameters: for tens of thousands of pairs."""
    return RunPlan(
        name="prophetnet-mini",
        model=_narrow(_shape(width=256, heads=4, layers=6, vocab_size=8000)),
        train=from_nothing(learning_rate=7e-4),
        batch_tokens=12_288,
        max_source=512,
        generation=GenerationSettings(beams=4),
    )


def prophetnet_base() -> RunPlan:
    """125 M parameters: 6+6 layers of 768, the model whose n is compared in the paper's Table 7."""
    return _to_fine_tune("prophetnet-base", _shape(width=768, heads=12, layers=6, vocab_size=30_522))


def prophetnet_large() -> RunPlan:
    """391 M parameters, the released model."""
    return _to_fine_tune("prophetnet-large", _shape(width=1024, heads=16, layers=12, vocab_size=30_522))


def _shape(*, width: int, heads: int, layers: int, vocab_size: int) -> ProphetNetShape:
    return ProphetNetShape(
        vocab_size=vocab_size,
        hidden_size=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
    )


def _narrow(shape: ProphetNetShape) -> ProphetNetShape:
    """Weights that add up to what N(0, 0.02) does in the released model, 1,024 wide; positions a fifth of that."""
    std = 0.02 * (1024 / shape.hidden_size) ** 0.5
    return replace(shape, init_std=std, position_std=std / 5)


def _to_fine_tune(name: str, shape: ProphetNetShape) -> RunPlan:
    train = TrainSettings(
        epochs=10,
        gradient_accumulation=16,
        learning_rate=1e-4,
        warmup_steps=1000,
        weight_decay=0.01,
        clip_norm=0.1,
        select=Highest(metric="rougeL"),
    )
    return RunPlan(
        name=name,
        model=shape,
        train=train,
        batch_size=32,
        max_source=512,
        max_target=127,
        generation=GenerationSettings(beams=5, length_penalty=1.2, no_repeat_ngram=3),
    )
