"""How large each study is: classes of settings; `scales.toml` has their values at every scale."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from typing import TypeVar

from precis.config import Settings
from precis.errors import UserError
from precis.recipes.catalogue import recipe
from precis.recipes.plans import Answer
from precis.recipes.tuning import LOW_RESOURCE, TunePlan, settings_for
from precis.tuning import MethodSettings, Prefix
from precis.tuning.discourse import lower_layers
from precis.tuning.prefix import Direct, LowLayers, Reparametrized, TopLayers

CORPORA = ("pretrain_gutenberg", "pretrain_scotus_oral", "pretrain_wikitext2", "pretrain_wikinews")
FACTS, DIALOGUES = "e2e", "samsum"
FINE_TUNING = "fine-tuning"
#: The plain prefix in a part of the layers (Table 3; the paper's 12 layers are cut into 1-7 and 8-12).
TOP, LOW = "prefix, top layers", "prefix, low layers"
SEEDS = "seeds"  # the end of the names of settings that hold seeds
S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class PreTrainedScale(Settings):
    """What every study with a pre-training decides.

    Attributes:
        recipe: size of the model, by the name of its pre-training and fine-tuning recipes.
        vocab_size: entries of the tokenizer, which is trained on the corpora.
        corpora: folders of unlabelled English text under the data folder; those that are there are packed.
        learning_rate: rate of fine-tuning, the same for every start.
        dev_rows: how many rows validate, by loss and by ROUGE.
        test_rows: how many test documents are written for at most; of questions as many of each split.
    """

    name: str
    recipe: str
    vocab_size: int
    corpora: tuple[str, ...] = CORPORA
    learning_rate: float
    dev_rows: int = 100
    test_rows: int


@dataclass(frozen=True, kw_only=True)
class Scale(PreTrainedScale):
    """How large a reproduction of Z-Code++'s studies is.

    Attributes:
        shape: what else of the recipe's model is changed, by name: a CPU is spared random numbers and position keys.
        phase1_steps: pre-training steps of the model that is tuned; each model of the ablation has `ablation_steps`.
        tasks: what the few-shot study fine-tunes on; phase 2 leaves these and SAMSum out.
        judged_on: what the ablation fine-tunes on.
        grounding_tasks, grounding_cap, grounding_steps, grounding_batch_tokens: phase 2.
        invented_pairs: how many pairs of the project's own synthetic corpus phase 2 reads.
        examples: sizes of the few-shot sets; each is drawn with every one of `sampling_seeds`.
        few_shot_steps, validate_every: few-shot fine-tuning ends after that many steps at the latest, and is validated
            that often.
        full_epochs: passes over all pairs of a task.
    """

    shape: tuple[tuple[str, int | float], ...] = ()
    phase1_steps: int
    ablation_steps: int
    tasks: tuple[str, ...] = ("samsum",)
    judged_on: tuple[str, ...] = ("samsum",)
    grounding_tasks: tuple[str, ...] = ("dialogsum", "cnndm", "aeslc", "scitldr", "reuters21578")
    grounding_cap: int = 4000
    grounding_steps: int
    grounding_batch_tokens: int = 4096
    invented_pairs: int
    examples: tuple[int, ...] = (10, 100, 1000)
    sampling_seeds: tuple[int, ...] = (0, 1, 2)
    ablation_seeds: tuple[int, ...] = (0, 1)
    few_shot_steps: int = 2000
    validate_every: int = 100
    full_epochs: float
    batch_tokens: int = 4096
    test_rows: int = 819
    beams: int = 1

    @property
    def model_changes(self) -> dict[str, int | float]:
        """`shape` by dotted name."""
        return {f"model.{name}": value for name, value in self.shape}


@dataclass(frozen=True, kw_only=True)
class ProphetScale(PreTrainedScale):
    """How large ProphetNet's comparisons are.

    Attributes:
        task: whose pairs the systems are compared on.
        pretraining_steps, task_steps, question_steps: optimizer steps of each run.
        seeds: seeds of fine-tuning.
        task_tokens, question_tokens: in a batch of fine-tuning.
    """

    task: str = "reuters21578"
    pretraining_steps: int
    task_steps: int
    question_steps: int
    seeds: tuple[int, ...] = (0, 1, 2)
    task_tokens: int = 4096
    question_tokens: int = 4096
    learning_rate: float = 1e-3
    test_rows: int = 1000


@dataclass(frozen=True, kw_only=True)
class GivenModelScale(Settings):
    """What every study that begins with a given model decides.

    Attributes:
        start, weights: the model, as a folder or a name of the hub, and the digest of its weights; see
            `precis.studies.given_model.begin_with`.
    """

    name: str
    start: str = ""
    weights: str = ""


@dataclass(frozen=True, kw_only=True)
class FactsScale(GivenModelScale):
    """How large the comparison on structure to text is.

    Attributes:
        tasks: sets of facts; those that are in the data count.
        rates: learning rates of fine-tuning, tried for `rate_steps` each with both starts on the first task.
        steps, seeds: of each run.
        beams: width of the search for test texts; 1 is greedy.
    """

    tasks: tuple[str, ...] = ("e2e", "webnlg", "dart")
    rates: tuple[float, ...]
    rate_steps: int
    steps: int
    seeds: tuple[int, ...] = (0,)
    batch_tokens: int = 2048
    dev_rows: int = 200
    test_rows: int = 2000
    beams: int = 1


@dataclass(frozen=True, kw_only=True)
class PrefixScale(Settings):
    """How large the comparisons are.

    Attributes:
        base: how the base is pre-trained; its settings of fine-tuning are not read.
        facts_steps, dialogues_steps: optimizer steps on all pairs of E2E and of SAMSum.
        facts_seeds, dialogues_seeds: seeds of training.
        other_facts: further sets of facts, with the steps and seeds of E2E; those that are in the data count.
        shares, pool, low_steps, sampling_seeds: grid of the low-resource curves; a share is one of `pool` pairs, and a
            draw's seed is its training's seed too.
        fine_tuning_rates, prefix_rates, temperatures: what is tried, for `rate_steps` each.
        keys: how the prefixes' keys and values are made.
        settings: settings of the methods.
        beams: width of the search for test texts; 1 is greedy.
        cost_rounds: processes a system in which a step is measured, in turn.
    """

    name: str
    base: Scale
    facts_steps: int
    dialogues_steps: int
    facts_seeds: tuple[int, ...] = (0, 1, 2)
    dialogues_seeds: tuple[int, ...] = (0,)
    other_facts: tuple[str, ...] = ()
    shares: tuple[float, ...] = (*LOW_RESOURCE, 1.0)
    pool: int = 4000
    low_steps: int = 200
    sampling_seeds: tuple[int, ...] = (0, 1, 2)
    fine_tuning_rates: tuple[float, ...] = (3e-4, 1e-3, 2e-3, 4e-3)
    prefix_rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3)
    temperatures: tuple[float, ...] = (1.0, 0.1)
    rate_steps: int = 200
    keys: Direct | Reparametrized = field(default_factory=Reparametrized)
    settings: MethodSettings = field(
        default_factory=lambda: MethodSettings(encoder_segments=2, decoder_segments=2)
    )
    batch_tokens: int = 4096
    dev_rows: int = 64
    test_rows: int = 1000
    beams: int = 1
    cost_rounds: int = 3

    @property
    def low_pairs(self) -> tuple[int, ...]:
        """Training pairs of the low-resource curves."""
        return tuple(round(share * self.pool) for share in self.shares)

    def plan(self, system: str, task_name: str, *, temperature: float = 1.0) -> TunePlan | None:
        """What a system attaches for a task; None if the model is fine-tuned instead."""
        if system == FINE_TUNING:
            return None
        prefix = Prefix(length=settings_for(task_name).prefix_length, keys=self.keys)
        if system in (TOP, LOW):
            layers = recipe(self.base.recipe).shape.encoder_layers
            low = lower_layers(layers)
            part = LowLayers(count=low) if system == LOW else TopLayers(count=max(1, layers - low))
            return TunePlan(method="prefix", prefix=replace(prefix, layers=part), attention=self.settings)
        settings = replace(self.settings, temperature=temperature) if "softsa" in system else self.settings
        return TunePlan(method=system, prefix=prefix, attention=settings)

    def steps_on(self, task_name: str, pairs: int | None = None) -> int:
        """Optimizer steps on so many pairs of a task, or on all of them if `pairs` is None."""
        if pairs is not None:
            return self.low_steps
        return self.dialogues_steps if task_name == DIALOGUES else self.facts_steps


def with_seeds(scale: S, count: int) -> S:
    """The scale with seeds 0 to `count` - 1 wherever it has seeds.

    Raises:
        UserError: `count` is below 1.
    """
    if count < 1:
        raise UserError(f"--seeds {count}: use 1 or more")
    named = [known.name for known in fields(scale) if known.name.endswith(SEEDS)]
    return replace(scale, **{name: tuple(range(count)) for name in named})


@dataclass(frozen=True, kw_only=True)
class GlueScale(GivenModelScale):
    """How large the two ways of GLUE are compared.

    Attributes:
        recipe: settings of the training besides those below.
        tasks: names of tasks; each is trained both ways, from the given model and from nothing.
        steps, batch_tokens: of each training.
        text_steps: other numbers of steps, by task, where the decoder's words take longer to learn.
        head_rate, text_rate: peak learning rates of the two ways.
        validations: how often each is validated.
        dev_rows: held-out rows that are written for at each validation, where text answers.
        test_rows: most rows that are scored.
    """

    recipe: str = "zcodepp-mini"
    tasks: tuple[str, ...]
    steps: int
    text_steps: tuple[tuple[str, int], ...] = ()
    batch_tokens: int
    head_rate: float
    text_rate: float
    seeds: tuple[int, ...] = (0,)
    validations: int = 4
    dev_rows: int
    test_rows: int

    def steps_of(self, name: str, way: Answer) -> int:
        """The steps of a training."""
        return dict(self.text_steps).get(name, self.steps) if way == "text" else self.steps

    def rate(self, way: Answer) -> float:
        """The peak learning rate of a way."""
        return self.head_rate if way == "head" else self.text_rate


_RECORDS = tomllib.loads(files(__package__).joinpath("scales.toml").read_text("utf-8"))


def _scales(kind: type[S], table: str, base: str | None = None) -> Mapping[str, S]:
    """The scales of a table of `scales.toml`; `base` is the table of what each of them builds on."""
    return {
        name: kind.from_dict(
            {"name": name, **record, **({"base": {"name": name, **_RECORDS[base][name]}} if base else {})}
        )
        for name, record in _RECORDS[table].items()
    }


SCALES = _scales(Scale, "zcodepp")
PROPHET_SCALES = _scales(ProphetScale, "prophetnet")
PREFIX_SCALES = _scales(PrefixScale, "prefix", base="zcodepp")
FACTS_SCALES = _scales(FactsScale, "facts")
GLUE_SCALES = _scales(GlueScale, "glue")
