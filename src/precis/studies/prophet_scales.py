"""How large the comparisons of ProphetNet are: `precis.studies.ngrams`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from precis.config import Settings
from precis.studies.reproduction import CORPORA

QUESTIONS = ("squad-qg", "squad-qg-zhao")
NGRAMS = (1, 2, 3)
#: Section 3.6: gamma is 1.0 for 2 streams and 0.5 for 3.
GAMMAS = {1: 1.0, 2: 1.0, 3: 0.5}
#: What is compared without pre-training, each with the row above it.
PLAIN = ("Transformer-released-start", "Transformer", "ProphetNet-2gram")


@dataclass(frozen=True, kw_only=True)
class ProphetScale(Settings):
    """How large the comparisons are.

    Attributes:
        recipe: of ProphetNet, by name.
        vocab_size: of the tokenizer, trained on the corpora.
        corpora: folders of unlabelled English text under the data folder; those that are there are packed.
        task: whose pairs the systems are compared on.
        pretraining_steps, task_steps, question_steps: optimizer steps of each run.
        seeds: of fine-tuning.
        task_tokens, question_tokens: in a batch of fine-tuning.
        learning_rate: of fine-tuning, the same for all.
        dev_rows: for validation, by loss and by ROUGE.
        test_rows: how many test documents are written for at most, evenly spaced; of questions as many of each split.
    """

    name: str
    recipe: str
    vocab_size: int
    corpora: tuple[str, ...] = CORPORA
    task: str = "reuters21578"
    pretraining_steps: int
    task_steps: int
    question_steps: int
    seeds: tuple[int, ...] = (0, 1, 2)
    task_tokens: int = 4096
    question_tokens: int = 4096
    learning_rate: float = 1e-3
    dev_rows: int = 100
    test_rows: int = 1000


PROPHET_SCALES: Mapping[str, ProphetScale] = {
    scale.name: scale
    for scale in (
        ProphetScale(
            name="smoke",
            recipe="prophetnet-micro",
            vocab_size=1000,
            corpora=("pretrain_wikinews",),
            pretraining_steps=2,
            task_steps=2,
            question_steps=2,
            seeds=(0,),
            dev_rows=4,
            test_rows=4,
        ),
        ProphetScale(
            name="micro",
            recipe="prophetnet-micro",
            vocab_size=4000,
            task="e2e",
            pretraining_steps=1000,
            task_steps=600,
            question_steps=1500,
            task_tokens=2048,
            dev_rows=64,
            test_rows=1000,
        ),
        ProphetScale(
            name="mini",
            recipe="prophetnet-mini",
            vocab_size=16_000,
            pretraining_steps=30_000,
            task_steps=6_000,
            question_steps=20_000,
            task_tokens=12_288,
            question_tokens=12_288,
            learning_rate=5e-4,
            test_rows=5000,
        ),
    )
}
