"""ProphetNet from raw text to a fine-tuned model, and Z-Code++ with streams that look ahead."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from precis.data.batches.length_buckets import Batch, in_order
from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.packs.pack_writer import pack
from precis.data.pairs.pair import Pair
from precis.data.text.unigram_tokenizer import load_tokenizer, without_start
from precis.generation.generation_settings import generation_config
from precis.models import ProphetNetForConditionalGeneration, ZCodePPForConditionalGeneration
from precis.models.zcodepp.replaced_token_detection import ZCodePPForPreTraining
from precis.objectives.pretraining_objectives import SpansAlone
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.phases.data.pair_checks import write_synthetic
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest, pair_objective
from precis.phases.train.pretraining import pretrain, resolve_pretraining
from precis.phases.train.trainable_model import load_trainable, new_config, new_trainable
from precis.recipes.catalogue import RECIPES, model_of, recipe, shaped_config
from precis.recipes.planning import resolve_run
from precis.recipes.prophetnet_recipes import prophetnet_decoding
from precis.recipes.run_plan import ProphetNetShape
from precis.training.callbacks import read_metrics
from precis_text.errors import UserError
from tests.tiny_models import bert_tokenizer, documents, our_tokenizer

TRAINING = {"train.steps": 3, "train.warmup_steps": 1, "train.log_every": 1, "train.precision": "fp32"}
PACKED = {"batch_size": 4, "block_length": 64, "validation_blocks": 4, **TRAINING}
SMALL = {
    "model.hidden_size": 16,
    "model.encoder_attention_heads": 2,
    "model.decoder_attention_heads": 2,
    "model.encoder_ffn_dim": 24,
    "model.decoder_ffn_dim": 24,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
}
SMALL_ZCODEPP = {
    "model.hidden_size": 16,
    "model.num_attention_heads": 2,
    "model.intermediate_size": 24,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pack")
    our_tokenizer().save_pretrained(folder / "words")
    pack(documents(60), folder / "words", folder / "pack", dev_share=0.2)
    return folder / "pack"


def measured(folder: Path) -> dict[str, Any]:
    return [record for record in read_metrics(folder / "metrics.jsonl") if record["kind"] == "validation"][-1]


def test_pre_trained_on_spans_it_is_taken_up_and_fine_tuned(tmp_path: Path, packed: Path) -> None:
    run = resolve_pretraining("prophetnet-micro", changes={**SMALL, **PACKED, "model.ngram": 3})
    first = pretrain(run, corpora={str(packed): 1.0}, out=tmp_path / "first")
    assert {"nll", "nll_1", "nll_2", "accuracy_2"} <= set(measured(tmp_path / "first"))
    again = pretrain(
        run, corpora={str(packed): 1.0}, out=tmp_path / "again", start=str(first.folder), callbacks=[]
    )
    assert again.model is not None
    write_synthetic(tmp_path / "pairs", {"train": 12, "dev": 4}, seed=0)
    tuned = finetune(
        resolve_run("prophetnet-micro", changes={**TRAINING, "batch_tokens": 600, "generated_rows": 2}),
        PairRequest(
            sources=NamedPairs(data=str(tmp_path / "pairs")).sources(),
            out=tmp_path / "tuned",
            start=str(again.folder),
            callbacks=[],
        ),
    )
    assert tuned.model is not None
    model = ProphetNetForConditionalGeneration.from_pretrained(tuned.model)
    assert (model.config.ngram, model.config.decoder_start_token_id) == (3, model.config.eos_token_id)


@pytest.mark.parametrize("packed_with", ["released", "berts"])
def test_a_released_model_is_taken_up_with_its_own_tokenizer(packed_with: str, tmp_path: Path) -> None:
    words = without_start(bert_tokenizer())  # as `precis convert` saves it
    words.bos_token = words.eos_token
    berts = copy.deepcopy(bert_tokenizer())  # the same vocabulary, as BERT's own names no start and no end
    berts.bos_token = berts.eos_token = None
    berts.save_pretrained(tmp_path / "berts")
    shape = resolve_pretraining("prophetnet-micro", changes=SMALL).model
    torch.manual_seed(0)
    model = model_of(new_config(shape, words))
    model.save_pretrained(tmp_path / "released")
    words.save_pretrained(tmp_path / "released")
    pack(documents(60), tmp_path / packed_with, tmp_path / "pack", dev_share=0.2)
    run = resolve_pretraining("prophetnet-micro", changes={**SMALL, **PACKED})
    corpora = {str(tmp_path / "pack"): 1.0}
    done = pretrain(
        run, corpora=corpora, out=tmp_path / "out", start=str(tmp_path / "released"), callbacks=[]
    )
    assert done.model is not None
    exported = load_tokenizer(done.model)
    assert exported("ann")["input_ids"] == words("ann")["input_ids"]
    before = model.get_input_embeddings().weight
    after = ProphetNetForConditionalGeneration.from_pretrained(done.model).get_input_embeddings().weight
    assert not torch.equal(before, after)


def test_a_new_model_needs_a_tokenizer_with_an_end_mark(tmp_path: Path) -> None:
    berts = copy.deepcopy(bert_tokenizer())
    berts.bos_token = berts.eos_token = None
    berts.save_pretrained(tmp_path / "berts")
    pack(documents(60), tmp_path / "berts", tmp_path / "pack", dev_share=0.2)
    run = resolve_pretraining("prophetnet-micro", changes={**SMALL, **PACKED})
    with pytest.raises(UserError, match="the corpus's tokenizer lacks eos_token; make one with"):
        pretrain(run, corpora={str(tmp_path / "pack"): 1.0}, out=tmp_path / "out", callbacks=[])


def test_spans_behind_sentinels_need_a_tokenizer_that_has_them(tmp_path: Path) -> None:
    bert_tokenizer().save_pretrained(tmp_path / "words")
    pack(documents(60), tmp_path / "words", tmp_path / "pack", dev_share=0.2)
    run = resolve_pretraining("zcodepp-micro", changes={**SMALL_ZCODEPP, **PACKED})
    with pytest.raises(UserError, match="lacks sentinels; make one with `precis tokenizer`"):
        pretrain(run, corpora={str(tmp_path / "pack"): 1.0}, out=tmp_path / "out", callbacks=[])


def test_a_zcodepp_is_not_taken_up_as_a_prophetnet(tmp_path: Path, packed: Path) -> None:
    zcodepp = resolve_pretraining(
        "zcodepp-micro", changes={**SMALL_ZCODEPP, **PACKED, "objective": SpansAlone()}
    )
    done = pretrain(zcodepp, corpora={str(packed): 1.0}, out=tmp_path / "zcodepp", callbacks=[])
    run = resolve_pretraining("prophetnet-micro", changes={**SMALL, **PACKED})
    with pytest.raises(UserError, match="is a zcodepp; this pre-training needs a precis-prophetnet"):
        pretrain(run, corpora={str(packed): 1.0}, out=tmp_path / "p", start=str(done.folder), callbacks=[])


@pytest.mark.parametrize("rtd", [True, False], ids=["with RTD", "spans alone"])
def test_zcodepp_is_pre_trained_with_streams_that_look_ahead(tmp_path: Path, packed: Path, rtd: bool) -> None:
    changes = {**SMALL_ZCODEPP, **PACKED, "model.future_tokens": 2}
    changes |= {"objective.generator_layers": 1} if rtd else {"objective": SpansAlone()}
    run = resolve_pretraining("zcodepp-micro", changes=changes)
    done = pretrain(run, corpora={str(packed): 1.0}, out=tmp_path / "run", callbacks=[])
    model = ZCodePPForConditionalGeneration.from_pretrained(done.model)
    assert model.config.future_tokens == 2
    streams = model.get_decoder().streams.weight
    if rtd:
        whole = ZCodePPForPreTraining.from_pretrained(done.folder / "pretraining")
        assert torch.equal(whole.model.decoder.streams.weight, streams)
    torch.manual_seed(run.train.seed)
    untrained = model_of(model.config).get_decoder().streams.weight
    assert not torch.isclose(streams, untrained).all(dim=1).any()


def test_every_prophetnet_recipe_is_by_its_name() -> None:
    for name in ("micro", "mini", "base", "large"):
        run = recipe(f"prophetnet-{name}")
        assert run.name == f"prophetnet-{name}"
        assert isinstance(run.model, ProphetNetShape)
        assert run.max_source < run.model.max_position_embeddings
    assert {name.partition("-")[0] for name in RECIPES} == {"zcodepp", "prophetnet", "pretrained"}


@pytest.mark.parametrize("name", ["zcodepp-micro", "prophetnet-micro"])
@pytest.mark.parametrize("given", [False, True], ids=["new", "given"])
def test_no_summary_to_learn_holds_a_token_that_may_not_be_written(
    name: str, given: bool, tmp_path: Path
) -> None:
    """A [CLS] in front would be learnt as the first word, and decoding would then write some other in its place."""
    small = SMALL if name.startswith("prophetnet") else SMALL_ZCODEPP
    run = resolve_run(name, changes={key: value for key, value in small.items() if "vocab" not in key})
    trainable = new_trainable(run, our_tokenizer())
    if given:  # a folder whose tokenizer is that of a pack
        trainable.model.save_pretrained(tmp_path)
        our_tokenizer().save_pretrained(tmp_path)
        trainable = load_trainable(str(tmp_path))
    pairs = TokenizedPairs.from_pairs(
        [Pair("A report of some words.", "A summary.")],
        trainable.tokenizer,
        max_source=50,
        max_target=50,
        decoder_start_token_id=trainable.decoder_start,
    )
    forbidden = generation_config(run.generation, trainable.model, trainable.tokenizer).suppress_tokens
    (batch,) = in_order(pairs, batch_size=1, pad_token_id=trainable.tokenizer.pad_token_id)
    target = batch.labels[0].tolist()
    assert not set(target) & set(forbidden)
    assert target[-1] == trainable.tokenizer.eos_token_id
    assert len(target) > 2


def test_large_fine_tunes_as_section_3_2_does_on_cnndm() -> None:
    run = recipe("prophetnet-large")
    assert run.batch_size is not None
    assert run.batch_size * run.train.gradient_accumulation == 512
    assert (run.train.learning_rate, run.train.warmup_steps) == (1e-4, 1000)
    assert (run.train.epochs, run.train.clip_norm) == (10, 0.1)
    generation = prophetnet_decoding("cnndm")
    assert (generation.beams, generation.length_penalty, generation.no_repeat_ngram) == (5, 1.2, 3)
    assert (generation.min_tokens, generation.max_tokens) == (45, 110)


def test_the_streams_are_weighed_as_the_run_says() -> None:
    """Eq. 3's alpha_n, for a model that is given too; 1, 0 is teacher forcing alone."""
    torch.manual_seed(0)
    shape = {**SMALL, "model.vocab_size": 40, "model.dropout": 0.0}
    run = resolve_run("prophetnet-micro", changes={**shape, "stream_weights": (1.0, 0.0)})
    model = ProphetNetForConditionalGeneration(shaped_config(run.model)).eval()  # type: ignore[arg-type]
    batch = Batch(*torch.randint(5, 40, (3, 2, 7)).unbind())  # type: ignore[arg-type]
    batch = replace(batch, attention_mask=torch.ones(2, 7, dtype=torch.long))
    teacher = SequenceToSequence(label_smoothing=run.label_smoothing)(model, batch)
    torch.testing.assert_close(pair_objective(run, model)(model, batch).total, teacher.total)
    plain = replace(run, stream_weights=None)
    both = pair_objective(plain, model)(model, batch).total
    assert float(both.detach()) != pytest.approx(float(teacher.total.detach()), rel=1e-3)
    with pytest.raises(UserError, match="predicts 2 tokens at a place; give 2 weights"):
        pair_objective(replace(run, stream_weights=(1.0,)), model)(model, batch)
    assert isinstance(run.model, ProphetNetShape)
    alone = ProphetNetForConditionalGeneration(shaped_config(replace(run.model, ngram=1)))
    with pytest.raises(UserError, match="this model predicts only the next token"):
        pair_objective(run, alone)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("corruption.unit", "sentences"), ("corruption.masked", 0.3)],
    ids=["unit", "masked"],
)
def test_corruption_that_mass_spans_do_not_read_is_refused(setting: str, value: object) -> None:
    with pytest.raises(UserError, match=f"{setting}={value}: MASS hides"):
        resolve_pretraining("prophetnet-micro", changes={setting: value})
    resolve_pretraining("prophetnet-micro", changes={"corruption.recovered": 0.3})
