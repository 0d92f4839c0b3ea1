"""Pre-training in two processes that hold a piece of the model each is the run of one that holds all of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch.testing import assert_close

from precis.data.packs.pack_writer import pack
from precis.training.callbacks import read_metrics
from tests.devices import ON_THE_CPU
from tests.tiny_models import documents, our_tokenizer

_SMALL = (
    "--recipe zcodepp-micro --set model.hidden_size=16 --set model.num_attention_heads=2 "
    "--set model.intermediate_size=32 --set model.encoder_layers=2 --set model.decoder_layers=2 "
    "--set model.dropout=0 --set model.attention_dropout=0 --set train.warmup_steps=1 --set train.log_every=1 "
    "--set train.validate_every=4 --set validation_blocks=4 --batch-size 4 --block-length 64 --steps 6 "
    "--precision fp32 --threads 1"
)
_PIECES = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}


def _pretrain(folder: Path, out: str, *launcher: str, variables: dict[str, str] | None = None) -> Path:
    command = [sys.executable, *launcher, "-m", "precis", "pretrain", "--corpus", str(folder / "pack")]
    environment = {**os.environ, **ON_THE_CPU, "OMP_NUM_THREADS": "1", **(variables or {})}
    options = [*_SMALL.split(), "--out", str(folder / out)]
    if variables:
        options += ["--set", "train.compiler=aot_eager"]
    subprocess.run([*command, *options], env=environment, check=True, timeout=600)
    return folder / out


@pytest.mark.slow
def test_pretraining_in_compiled_pieces_has_the_curve_and_the_model_of_one_process(tmp_path: Path) -> None:
    our_tokenizer().save_pretrained(tmp_path / "words")
    pack(documents(60), tmp_path / "words", tmp_path / "pack", dev_share=0.2)
    alone = _pretrain(tmp_path, "alone")
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2")
    pieces = _pretrain(tmp_path, "pieces", *launcher, variables=_PIECES)

    one, two = (read_metrics(run / "metrics.jsonl") for run in (alone, pieces))
    assert [record["step"] for record in one] == [record["step"] for record in two]
    for whole, parts in zip(one, two, strict=True):
        for name in ("loss", "mlm", "rtd", "csp"):
            assert parts[name] == pytest.approx(whole[name], abs=1e-5), (name, whole["step"])
    exported = [load_file(run / "model" / "model.safetensors") for run in (alone, pieces)]
    assert exported[0].keys() == exported[1].keys()
    for name, value in exported[0].items():
        assert_close(exported[1][name], value, atol=1e-4, rtol=0)
