"""Question generation: an answer and the passage that holds it to the question, on both splits of SQuAD 1.1.

The limits follow the rule that `precis.data.tasks.tasks` states; 512 tokens are ProphetNet's too. Decoding is that of
its released scripts: beam 5, length penalty 1.5, no trigram twice.
"""

from dataclasses import replace

from precis.data.pairs.question_generation import DU, ZHAO
from precis.data.rows.hub import CONVERTED
from precis.data.tasks.settings import GenerationSettings, Task

_DU = Task(
    name="squad-qg",
    description="answer and passage to question, SQuAD 1.1 as split by Du et al. (2017)",
    kind="question",
    hub=f"lmqg/qg_squad:qg_squad@{CONVERTED}",
    scheme=DU,
    folder="squad_v1.1",
    percentiles=(345, 25),
    percentiles_from="measured",
    max_source=512,
    max_target=64,
    instruction="Write a question that the following words answer:",
    generation=GenerationSettings(beams=5, length_penalty=1.5, no_repeat_ngram=3, max_tokens=64),
)

QUESTIONS = (
    _DU,
    replace(
        _DU,
        name="squad-qg-zhao",
        description="the same with dev and test exchanged, as in Zhao et al. (2018)",
        scheme=ZHAO,
    ),
)
