"""What `finetune` does to a run folder and to its data, beside the training itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from precis.data.pairs.pair import Pair
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train import pair_training
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.recipes.planning import resolve_run
from precis.recipes.run_plan import RunPlan
from precis_text.errors import UserError
from tests.tiny_models import save

HOLD = (
    "import sys, fcntl; file = open(sys.argv[1], 'r+'); fcntl.lockf(file, fcntl.LOCK_EX);"
    "print('held', flush=True); sys.stdin.read()"
)
BRIEF = ("train.steps=2", "train.warmup_steps=1", "max_target=8")
SMALL = (
    "model.hidden_size=32",
    "model.num_attention_heads=2",
    "model.intermediate_size=64",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.vocab_size=380",
)


def write(file: Path, *pairs: Pair) -> Path:
    lines = (f'{{"document": "{pair.document}", "summary": "{pair.summary}"}}\n' for pair in pairs)
    file.write_text("".join(lines))
    return file


@pytest.mark.skipif(sys.platform == "win32", reason="there is no lock")
def test_a_restart_touches_nothing_while_another_process_trains_there(tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl", *(Pair(f"Ann sings {n}.", "Ann sings.") for n in range(4)))
    out = tmp_path / "run"
    for folder in ("model", "tokenizer"):
        (out / folder).mkdir(parents=True)
        (out / folder / "precious").touch()
    (out / "lock").write_text("1 host\n")  # as every run leaves it
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(out / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(UserError, match="another process is training in"):
            finetune(
                resolve_run("zcodepp-micro"),
                PairRequest(sources=NamedPairs(data=str(data)).sources(), out=out, restart=True),
            )
    finally:
        holder.kill()
        holder.communicate()
    assert (out / "model" / "precious").exists()
    assert (out / "tokenizer" / "precious").exists()


def test_pairs_without_tokens_are_skipped_and_named_like_other_bad_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [Pair(f"Ann sings the song number {n}.", "Ann sings.") for n in range(12)]
    empty = Pair("\u2603", "Ann sings.")  # the unknown token alone
    model = save("t5", tmp_path / "t5")
    vocabulary = model / "tokenizer.json"
    vocabulary.write_text(
        vocabulary.read_text().replace('"prepend_scheme": "always"', '"prepend_scheme": "never"')
    )
    train = write(tmp_path / "train.jsonl", *good, empty)
    dev = write(tmp_path / "dev.jsonl", empty, *good[:3])
    told: list[str] = []
    shown: list[Pair] = []

    def evenly_spaced(pairs: list[Pair], count: int) -> list[Pair]:
        shown.extend(pairs)
        return pairs[:count]

    monkeypatch.setattr(pair_training, "evenly_spaced", evenly_spaced)
    done = finetune(
        resolve_run(None, pretrained=True, assignments=BRIEF),
        PairRequest(
            sources=NamedPairs(data=str(train), dev=str(dev), skip_bad=True).sources(),
            out=tmp_path / "run",
            start=str(model),
            notify=told.append,
            callbacks=[],
        ),
    )
    assert done.model is not None
    assert f"train: 12 pairs from {train}, 1 skipped (first: {train}: pair 13: the document gives" in told[0]
    assert f"dev: 3 pairs from {dev}, 1 skipped" in told[1]
    assert empty not in shown


@pytest.mark.parametrize("given", [False, True])
def test_the_record_has_the_shape_of_a_new_model_alone(given: bool, tmp_path: Path) -> None:
    pairs = (Pair(f"Ann sings the song number {n}.", "Ann sings.") for n in range(12))
    data = write(tmp_path / "train.jsonl", *pairs)
    run = resolve_run("zcodepp-micro", assignments=(*BRIEF, *SMALL, "generated_rows=0", "train.select=loss"))
    start = str(save("bart", tmp_path / "bart")) if given else None
    sources = NamedPairs(data=str(data)).sources()
    finetune(run, PairRequest(sources=sources, out=tmp_path / "run", start=start, callbacks=[]))
    recorded = RunPlan.from_dict(json.loads((tmp_path / "run" / "settings.json").read_text())["run"])
    assert recorded.model == (None if given else run.model)
    if given:
        with pytest.raises(UserError, match="zcodepp-micro: needs an existing model; name it with --model"):
            finetune(recorded, PairRequest(sources=sources, out=tmp_path / "new", callbacks=[]))
        assert not (tmp_path / "new").exists()
