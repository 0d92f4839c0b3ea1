"""The sizes of the studies: classes of settings; `scales.toml` has their values at every scale."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from typing import TypeVar

from precis.generation.model_location import locate
from precis.recipes.adapter_recipes import LOW_RESOURCE, Layers, TunePlan, settings_for
from precis.recipes.catalogue import recipe
from precis.recipes.planning import Answer
from precis.tuning import MethodSettings, Prefix
from precis.tuning.discourse import lower_layers
from precis.tuning.prefix import Direct, LowLayers, NoPrefix, Reparametrized, SingleLayer, TopLayers
from precis_text.config import Settings
from precis_text.errors import UserError

CORPORA = ("pretrain_gutenberg", "pretrain_scotus_oral", "pretrain_wikitext2", "pretrain_wikinews")
#: Text of other languages, and parallel text: language, files, column. Of pairs only the training part.
TEXTS = (
    ("es", "pretrain_multilingual/es_*", "text"),
    ("ru", "pretrain_multilingual/ru_*", "text"),
    ("de", "klexikon_de/train.*", "document"),
    ("de-en", "multi30k/train.*", "de+en"),
    ("fr-en", "multi30k/train.*", "fr+en"),
)
FACTS, DIALOGUES = "e2e", "samsum"
FINE_TUNING = "fine-tuning"
#: The plain prefix in a part of the layers (Table 3; the paper's 12 layers are split into 1-7 and 8-12).
TOP, LOW = "prefix, top layers", "prefix, low layers"
SINGLE = "prefix, layer"
#: The whole model under sparse attention (Table 4, upper half), by its method.
WHOLE: Mapping[str, str] = {f"{FINE_TUNING}, {name}": name for name in ("truncsa", "softsa")}
_TASK_TOKENS = 3_000_000  # of SAMSum's training pairs
SEEDS = "seeds"  # the suffix of settings that contain seeds
S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class InitialModelScale(Settings):
    """The settings of every study that starts from a given model.

    Attributes:
        start, weights: the model, as a folder or a hub name, and the digest of its weights; see
            `precis_experiments.initial_model.begin_with`.
    """

    name: str
    start: str = ""
    weights: str = ""

    @property
    def told_start(self) -> str:
        """Words for a table about the given model; "" without one."""
        return f"; the given model's weights have the digest {self.weights}" if self.start else ""


@dataclass(frozen=True, kw_only=True)
class PreTrainedScale(Settings):
    """The settings of every study with pre-training.

    Attributes:
        recipe: size of the model, by the name of its pre-training and fine-tuning recipes.
        vocab_size: entries of the tokenizer, which is trained on the corpora.
        corpora: folders of unlabelled English text under the data folder; missing ones are skipped.
        learning_rate: rate of fine-tuning, the same for every start.
        dev_rows: number of validation rows, for loss and ROUGE.
        test_rows: maximum number of test documents to write for; for questions, of each split.
    """

    name: str
    recipe: str
    vocab_size: int
    corpora: tuple[str, ...] = CORPORA
    learning_rate: float
    dev_rows: int = 100
    test_rows: int


@dataclass(frozen=True, kw_only=True)
class ShapedScale(PreTrainedScale, InitialModelScale):
    """The settings of every study with a Z-Code++, pre-trained by the study or given.

    Attributes:
        shape: further changes to the recipe's model, by name: on a CPU, fewer random numbers and position keys.
        beside: other models of the study, as folders or hub names; each has its rows, without a phase of ours.
    """

    shape: tuple[tuple[str, int | float], ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def model_changes(self) -> dict[str, int | float]:
        """`shape` by dotted name."""
        return {f"model.{name}": value for name, value in self.shape}


@dataclass(frozen=True, kw_only=True)
class Scale(ShapedScale):
    """The size of a reproduction of Z-Code++'s studies.

    Attributes:
        phase1_steps: pre-training steps of the tuned model; each model of the ablation has `ablation_steps`.
        tasks: the fine-tuning tasks of the few-shot study; phase 2 leaves these and SAMSum out.
        judged_on: the fine-tuning tasks of the ablation; labels and SQuAD's answers come from a head on the encoder.
        head_steps, head_rate: steps and peak rate of the heads, on all pairs.
        grounding_tasks, grounding_cap, grounding_steps, grounding_batch_tokens: phase 2.
        invented_pairs: number of pairs of the project's own synthetic corpus in phase 2.
        examples: sizes of the few-shot sets; each is drawn with every one of `sampling_seeds`.
        few_shot_steps, validate_every: maximum number of steps of few-shot fine-tuning, and its validation interval
            in steps.
        full_epochs: passes over all pairs of a task.
    """

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
    head_steps: int = 3000
    head_rate: float = 1e-4
    few_shot_steps: int = 2000
    validate_every: int = 100
    full_epochs: float
    batch_tokens: int = 4096
    test_rows: int = 819
    beams: int = 1

    @property
    def full_steps(self) -> int:
        """The updates of a fine-tuning on all pairs, roughly."""
        return max(1, round(self.full_epochs * _TASK_TOKENS / self.batch_tokens))


@dataclass(frozen=True, kw_only=True)
class ProphetScale(PreTrainedScale):
    """The size of ProphetNet's comparisons.

    Attributes:
        task: the task whose pairs compare the systems.
        pretraining_steps, task_steps, question_steps: optimizer steps of each run.
        along: shares of `pretraining_steps` after which the 2-gram model is fine-tuned too (Figure 4).
        seeds: seeds of fine-tuning.
        task_tokens, question_tokens: tokens in a batch of fine-tuning.
    """

    task: str = "reuters21578"
    pretraining_steps: int
    along: tuple[float, ...] = (0.25, 0.5)
    task_steps: int
    question_steps: int
    seeds: tuple[int, ...] = (0, 1, 2)
    task_tokens: int = 4096
    question_tokens: int = 4096
    learning_rate: float = 1e-3
    test_rows: int = 1000


@dataclass(frozen=True, kw_only=True)
class FactsScale(InitialModelScale):
    """The size of the structure-to-text comparison.

    Attributes:
        tasks: structure-to-text tasks; missing ones are skipped.
        rates: learning rates of fine-tuning, tried for `rate_steps` each with both starts on the first task.
        steps, seeds: steps of each run, and the seeds.
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
class PrefixScale(InitialModelScale):
    """The size of the prefix comparisons.

    Attributes:
        base: pre-training settings of the base, unless a model is given; its fine-tuning settings are ignored.
        facts_steps, dialogues_steps: optimizer steps on all pairs of E2E and of SAMSum.
        facts_seeds, dialogues_seeds: seeds of training.
        other_facts: further structure-to-text tasks, with the steps and seeds of E2E; missing ones are skipped.
        sparse_tasks: tasks of Table 4's further rows: TruncSA, the hierarchical sparse methods, sparse fine-tuning.
        single_layer_tasks: tasks on which only one layer has a prefix, each layer in turn (Figure 3).
        low_tasks: tasks of the low-resource curves, which also average over them (Figures 4, 8).
        shares, pool, dialogues_pool, low_steps, sampling_seeds: grid of the low-resource curves; a share is one of
            `pool` pairs, of SAMSum of `dialogues_pool`, and the sampling seed is also the training seed.
        fine_tuning_rates, prefix_rates, temperatures: candidate values, tried for `rate_steps` each.
        keys: parametrisation of the prefixes' keys and values.
        settings: settings of the methods.
        beams: width of the search for test texts; 1 is greedy.
        cost_rounds: processes per system that measure a step; the systems alternate.
    """

    base: Scale
    facts_steps: int
    dialogues_steps: int
    facts_seeds: tuple[int, ...] = (0, 1, 2)
    dialogues_seeds: tuple[int, ...] = (0,)
    other_facts: tuple[str, ...] = ()
    sparse_tasks: tuple[str, ...] = ()
    single_layer_tasks: tuple[str, ...] = ()
    low_tasks: tuple[str, ...] = (FACTS,)
    shares: tuple[float, ...] = (*LOW_RESOURCE, 1.0)
    pool: int = 4000
    dialogues_pool: int = 4000
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

    def low_pairs(self, task_name: str = FACTS) -> tuple[int, ...]:
        """Return the numbers of training pairs of a task's low-resource curve."""
        pool = self.dialogues_pool if task_name == DIALOGUES else self.pool
        return tuple(round(share * pool) for share in self.shares)

    @property
    def single_layers(self) -> tuple[str, ...]:
        """The systems with a prefix in one layer, the lowest first."""
        return tuple(f"{SINGLE} {number}" for number in range(1, self._layers + 1))

    @property
    def _layers(self) -> int:
        return _layers_of(self.start) if self.start else recipe(self.base.recipe).shape.encoder_layers

    def seeds_on(self, task_name: str) -> tuple[int, ...]:
        """Return the seeds of training on all pairs of a task."""
        return self.dialogues_seeds if task_name == DIALOGUES else self.facts_seeds

    def plan(self, system: str, task_name: str, *, temperature: float = 1.0) -> TunePlan | None:
        """Return the plan of a system for a task, or None if the system is fine-tuning."""
        if system == FINE_TUNING:
            return None
        prefix = Prefix(length=settings_for(task_name).prefix_length, keys=self.keys)
        if system.startswith("prefix,"):
            part = self._part(system)
            return TunePlan(method="prefix", prefix=replace(prefix, layers=part), attention=self.settings)
        settings = replace(self.settings, temperature=temperature) if "softsa" in system else self.settings
        if system in WHOLE:
            return TunePlan(method=WHOLE[system], prefix=NoPrefix(), attention=settings)
        return TunePlan(method=system, prefix=prefix, attention=settings)

    def _part(self, system: str) -> Layers:
        """Return the layers of a system that has a prefix in a part of them."""
        if system in self.single_layers:
            return SingleLayer(index=self.single_layers.index(system))
        low = lower_layers(self._layers)
        return LowLayers(count=low) if system == LOW else TopLayers(count=max(1, self._layers - low))

    def steps_on(self, task_name: str, pairs: int | None = None) -> int:
        """Return the optimizer steps on `pairs` pairs of a task, or on all of them if `pairs` is None."""
        if pairs is not None:
            return self.low_steps
        return self.dialogues_steps if task_name == DIALOGUES else self.facts_steps


@cache
def _layers_of(model: str) -> int:
    """Return the number of a model's encoder layers."""
    config = locate(model).configuration
    return int(getattr(config, "encoder_layers", None) or config.num_layers)  # T5 says num_layers


def with_seeds(scale: S, count: int) -> S:
    """Return the scale with seeds 0 to `count` - 1 in every setting with seeds.

    Raises:
        UserError: `count` is below 1.
    """
    if count < 1:
        raise UserError(f"--seeds {count}: use 1 or more")
    named = [known.name for known in fields(scale) if known.name.endswith(SEEDS)]
    return replace(scale, **{name: tuple(range(count)) for name in named})


@dataclass(frozen=True, kw_only=True)
class GlueScale(InitialModelScale):
    """The size of the comparison of two ways to do GLUE.

    Attributes:
        recipe: the training settings, except those below.
        tasks: names of tasks; each is trained both ways, from the given model and from nothing.
        steps, batch_tokens: steps of each training run, and tokens in a batch.
        text_steps: other numbers of steps, by task, if the decoder's text takes longer to learn.
        head_rate, text_rate: peak learning rates of the two ways.
        validations: number of validations in each run.
        dev_rows: held-out rows to write for at each validation, if the answers are text.
        test_rows: maximum number of scored rows.
        beside: other Z-Code++ models, such as a converted DeBERTaV3, as folders; each has only a head.
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
    beside: tuple[str, ...] = ()

    def steps_of(self, name: str, way: Answer) -> int:
        """Return the number of steps of a training run."""
        return dict(self.text_steps).get(name, self.steps) if way == "text" else self.steps

    def rate(self, way: Answer) -> float:
        """Return the peak learning rate of a way."""
        return self.head_rate if way == "head" else self.text_rate


@dataclass(frozen=True, kw_only=True)
class LanguagesScale(ShapedScale):
    """The size of the study of several languages.

    Attributes:
        texts: text of each language besides the English corpora: its name, its files under the data folder, the column.
        temperature: flattens the shares of the texts, in the vocabulary and in pre-training.
        phase1_steps: pre-training steps on all languages, and on only English.
        tasks: tasks of fine-tuning, each from every start; missing ones are skipped.
        steps, batch_tokens, seeds: settings of each fine-tuning.
        max_source, max_target: limits in tokens, if they are below the task's own.
        beams: width of the search for test texts; 1 is greedy.
    """

    texts: tuple[tuple[str, str, str], ...] = TEXTS
    temperature: float = 3.33
    phase1_steps: int
    tasks: tuple[str, ...] = ("klexikon_de", "multi30k_de_en", "multi30k_en_de", "multi30k_fr_en")
    steps: int
    batch_tokens: int = 4096
    seeds: tuple[int, ...] = (0, 1, 2)
    max_source: int
    max_target: int
    beams: int = 1

    @property
    def files(self) -> tuple[str, ...]:
        """All files and folders of text, under the data folder."""
        return (*self.corpora, *(files for _, files, _ in self.texts))


_RECORDS = tomllib.loads(files(__package__).joinpath("scales.toml").read_text("utf-8"))


def _scales(kind: type[S], table: str, base: str | None = None) -> Mapping[str, S]:
    """Return the scales of a table of `scales.toml`; `base` is the table that each of them builds on."""
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
LANGUAGES_SCALES = _scales(LanguagesScale, "languages")
