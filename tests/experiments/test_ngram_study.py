"""ProphetNet's comparisons: the tables of what is there, and the Transformer that it is compared with."""

from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from precis.models import ProphetNetForConditionalGeneration
from precis.phases.train.trainable_model import new_config
from precis.recipes.catalogue import model_of
from precis.recipes.pretraining_runs import pretraining_run
from precis_experiments.experiment import Runner
from precis_experiments.ngram_study import plain_transformer, prophetnet
from precis_experiments.resumable_steps import Study
from precis_experiments.scales import PROPHET_SCALES
from tests.tiny_models import our_tokenizer

SCALE = PROPHET_SCALES["micro"]


def scored(*means: float) -> dict:
    rows = {kind: [mean] * 10 for kind, mean in zip(("rouge1", "rouge2", "rougeL"), means, strict=True)}
    return {"examples": rows}


def test_tables_compare_each_row_with_the_one_above_it_seed_by_seed() -> None:
    results = {"pretrained-2gram-0": {"tokens": 1234}}
    for seed in SCALE.seeds:
        results[f"tuned-1gram-{seed}"] = scored(30.0 + seed, 10.0, 20.0 + seed)
        results[f"tuned-2gram-{seed}"] = scored(32.0 + seed, 11.0, 22.5 + seed)
    text = prophetnet.table(SCALE, results)
    one, two = (line for line in text.splitlines() if line.startswith("| pre-trained"))
    assert "31.0" in one
    assert "20.0, 21.0, 22.0 |  |" in one
    assert "2.5 [2.5, 2.5]" in two
    assert "3-gram |" not in text  # not there yet
    assert "1,234 tokens" in text


def test_rows_are_compared_on_the_seeds_that_both_have() -> None:
    results = {f"tuned-1gram-{seed}": scored(30, 10, 20.0 + seed) for seed in (0, 1)}
    results |= {f"tuned-2gram-{seed}": scored(31, 11, 21.0 + 5 * seed) for seed in (0, 2)}
    line = next(line for line in prophetnet.table(SCALE, results).splitlines() if "2-gram" in line)
    assert line.endswith("| 1.0 [1.0, 1.0] |")  # seed 0 alone: 21 - 20


def test_rows_without_a_common_seed_are_not_compared() -> None:
    results = {f"tuned-1gram-{seed}": scored(30, 10, 20) for seed in SCALE.seeds[:1]}
    results |= {f"tuned-2gram-{seed}": scored(31, 11, 21) for seed in SCALE.seeds[1:]}
    line = next(line for line in prophetnet.table(SCALE, results).splitlines() if "2-gram" in line)
    assert line.endswith("|  |")


def test_questions_are_on_both_splits() -> None:
    scores = {"BLEU-4": "5.0 [4.0, 6.0]", "METEOR": "9.0 [8.0, 9.5]", "ROUGE-L": "20.0 [19.0, 21.0]"}
    split = {"scores": scores, "meteor": "meteor|...", "questions": 1000}
    text = prophetnet.table(SCALE, {"questions": {"squad-qg": split, "squad-qg-zhao": split}})
    assert "| squad-qg | 5.0 [4.0, 6.0] | 9.0 [8.0, 9.5] | 20.0 [19.0, 21.0] | 1,000 |" in text
    assert "squad-qg-zhao" in text


def test_scores_along_the_pre_training_have_a_row_and_a_point_each(tmp_path: Path) -> None:
    prophetnet.draw(SCALE, {}, tmp_path)
    assert not (tmp_path / "along.png").exists()
    results = {"plain-ProphetNet-2gram-0": scored(30, 10, 20), "tuned-2gram-0": scored(33, 12, 25)}
    results |= {f"tuned-2gram-0.5-{seed}": scored(31, 11, 22 + seed) for seed in (0, 1)}
    lines = prophetnet.table(SCALE, results).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| 2-gram, share"))
    assert [line.split(" | ")[0] for line in lines[start + 2 : start + 5]] == ["| 0%", "| 50%", "| 100%"]
    assert "22.0, 23.0" in lines[start + 3]
    prophetnet.draw(SCALE, results, tmp_path)
    assert (tmp_path / "along.png").stat().st_size > 10_000


def test_every_step_comes_after_those_that_it_needs(tmp_path: Path) -> None:
    study = Study(tmp_path / "out", SCALE, name="prophetnet", data=tmp_path)
    steps = list(prophetnet.steps(SCALE, Runner(study, tmp_path, print)))
    names = [step.name for step in steps]
    assert len(names) == len(set(names)) == 1 + 3 * 2 * (3 + 2) + 9 + 1
    for place, step in enumerate(steps):
        assert set(step.needs) <= set(names[:place])


def test_the_plain_transformer_is_the_prophetnet_without_streams_and_relative_scores(tmp_path: Path) -> None:
    our_tokenizer().save_pretrained(tmp_path / "words")
    folder = plain_transformer("prophetnet-micro", tmp_path / "words", tmp_path / "start", seed=0)
    plain = AutoModelForSeq2SeqLM.from_pretrained(folder)
    prophet = model_of(new_config(pretraining_run("prophetnet-micro").model, our_tokenizer()))
    assert isinstance(prophet, ProphetNetForConditionalGeneration)

    def layers(model: torch.nn.Module) -> int:
        return sum(p.numel() for name, p in model.named_parameters() if ".layers." in name)

    relative = sum(p.numel() for name, p in prophet.named_parameters() if "position_scores" in name)
    assert layers(plain) == layers(prophet) - relative
    for theirs, ours in (
        (plain.model.encoder.embed_positions, prophet.get_encoder().stack.positions.rows),
        (plain.model.decoder.embed_positions, prophet.get_decoder().positions.rows),
        (plain.model.shared, prophet.get_input_embeddings()),
    ):
        assert abs(theirs.weight.std().item() / ours.weight.std().item() - 1) < 0.05
    assert AutoTokenizer.from_pretrained(folder)("a word")["input_ids"][0] != our_tokenizer().cls_token_id
    again = plain_transformer("prophetnet-micro", tmp_path / "words", tmp_path / "again", seed=0)
    other = plain_transformer("prophetnet-micro", tmp_path / "words", tmp_path / "other", seed=1)
    weights = [AutoModelForSeq2SeqLM.from_pretrained(f).lm_head.weight for f in (again, other)]
    assert torch.equal(weights[0], plain.lm_head.weight)
    assert not np.allclose(weights[1].detach(), plain.lm_head.weight.detach())


def test_a_plain_transformer_may_begin_as_barts_do(tmp_path: Path) -> None:
    our_tokenizer().save_pretrained(tmp_path / "words")
    folder = plain_transformer(
        "prophetnet-micro", tmp_path / "words", tmp_path / "start", seed=0, released_start=True
    )
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).model
    for weight in (model.shared.weight, model.encoder.embed_positions.weight):
        assert abs(weight.std().item() / 0.02 - 1) < 0.05
