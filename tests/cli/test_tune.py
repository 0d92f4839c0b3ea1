"""`precis tune` as a user meets it, and its adapter where a model is asked for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_models import save

from precis.tuning import read_adapter
from precis.tuning.methods import READERS

Precis = Callable[..., Any]
SHORT = [
    "--steps", 2, "--batch-size", 4, "--max-source", 64, "--max-target", 12, "--prefix-length", 4,
    "--lr", 0.01, "--set", "generated_rows=2", "--set", "generation.max_tokens=8", "--threads", 1,
]  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return save("bart", tmp_path / "base", positions=128)


def test_an_adapter_is_trained_scored_and_used(
    base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options = [
        "--method",
        "uniblock",
        "--encoder-segments",
        2,
        "--sites",
        "encoder,cross",
        "--layers",
        "low:1",
    ]
    made = precis("tune", "--model", base, "--data", pairs, "--out", out, *options, *SHORT)
    assert made.code == 0, made.err
    # two sites, one layer, keys and values, 4 columns of 32 numbers
    assert "uniblock: 512 parameters are trained, 512 are kept" in made.err
    assert f"adapter: {out}/adapter" in made.out
    assert f"next:    precis evaluate --model {out} --data {pairs} --split test --out {out}/ev" in made.out
    scored = precis(
        "evaluate", "--model", out, "--data", pairs, "--split", "test", "--out", out / "scores", "--limit", 2
    )
    assert scored.code == 0, scored.err
    assert "run beam 5" in scored.out
    (tmp_path / "text.txt").write_text("Ann sang a song. Bob heard the song.")
    alone = precis("summarize", tmp_path / "text.txt", "--model", out)
    together = precis("summarize", tmp_path / "text.txt", "--model", base, "--adapter", out / "adapter")
    assert (alone.code, together.code) == (0, 0), alone.err + together.err
    assert alone.out == together.out


def test_a_share_is_drawn_and_the_papers_rate_is_called_small(
    base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = [*SHORT, "--lr", 5e-5, "--share", 0.25, "--sampling-seed", 3]
    made = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert made.code == 0, made.err
    assert "10 training pairs drawn at random (seed 3)" in made.err
    assert "5e-05 is the paper's, for BART-large" in made.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--method", "prefx"], "no method 'prefx'; did you mean 'prefix'?"),
        (["--prefix-length", 0], "a prefix needs at least 1 column"),
        (["--layers", "top:9"], "the count goes from 1 to"),
        (["--sites", "encoder,middle"], "no site 'middle'"),
        (["--encoder-segments", 5], "5 segments but a prefix of length 4"),
        (["--examples", 2, "--share", 0.5], "--examples 2 and --share 0.5"),
        (["--sampling-seed", 2], "give --examples or --share too"),
        (["--share", 2], "above 0 and at most 1"),
        (["--inner-width", 8], "--inner-width belongs to"),
        (["--whole-model", "--method", "uniblock"], "cannot tune the whole model"),
        (["--task", "e2f"], "unknown task 'e2f'"),
        (["--temperature", 0], "temperature=0.0"),
        (["--method", "prefix", "--top-p", 1.5], "mass=1.5"),
        (
            ["--method", "hsoftsa", "--top-p", 0.9],
            "--top-p is nothing to the method 'hsoftsa'; truncsa, htruncsa read it",
        ),
        (["--method", "prefix", "--temperature", 1.0], "--temperature is nothing to the method 'prefix'"),
        (["--method", "softsa", "--encoder-segments", 2], "uniblock, hierblock, hierblock+softsa read it"),
        (["--method", "uniblock", "--lower-share", 0.5], "--lower-share is nothing to the method 'uniblock'"),
        (["--method", "truncsa", "--target-length", 9], "--target-length is nothing to the method 'truncsa'"),
        (["--whole-model", "--method", "softsa"], "--prefix-length is about a prefix"),
    ],
)
def test_bad_input_is_one_line(
    words: list[Any], says: str, base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = [*SHORT, *words]
    outcome = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert outcome.code == 2
    assert says in outcome.error
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_base_without_the_attention_interface_is_one_line(
    pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    led = save("led", tmp_path / "led", positions=128)
    outcome = precis("tune", "--model", led, "--data", pairs, "--out", tmp_path / "run", *SHORT)
    assert outcome.code == 2
    assert "LED" in outcome.error


def test_an_adapter_needs_a_model_to_go_on(precis: Precis, pairs: Path, tmp_path: Path) -> None:
    options = ["--adapter", "a", "--data", pairs, "--predictions", "p.txt", "--out", tmp_path]
    assert "goes on a --model" in precis("evaluate", *options).error


@pytest.mark.parametrize("method", READERS["temperature"])
def test_the_temperature_reaches_the_method(
    method: str, base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = [*SHORT, "--steps", 1, "--method", method, "--temperature", 0.1]
    made = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert made.code == 0, made.err
    encoder = read_adapter(tmp_path / "run" / "adapter").tuning.encoder
    assert getattr(encoder.plan(4)[0].normalizer, "temperature", None) == 0.1


@pytest.mark.parametrize("units", ["sentences", "turns", "paragraphs"])
def test_the_units_of_segments_reach_the_adapter_and_its_use(
    units: str, base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = [*SHORT, "--steps", 1, "--method", "uniblock", "--units", units]
    made = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert made.code == 0, made.err
    used = json.loads((tmp_path / "run" / "adapter" / "precis.json").read_text())
    assert used["units"] == {"type": units.capitalize()}
    (tmp_path / "text.txt").write_text("Ann: I sang.\nBob: I heard it.")
    assert precis("summarize", tmp_path / "text.txt", "--model", tmp_path / "run").code == 0
    looked = ["probe", "attention", "--model", tmp_path / "run", "--data", pairs, "--out", tmp_path / "seen"]
    assert f"are made of {units}, and probes know equal parts alone" in precis(*looked).error


def test_units_without_blocks_are_one_line(base: Path, pairs: Path, precis: Precis, tmp_path: Path) -> None:
    options = [*SHORT, "--method", "softsa", "--units", "turns"]
    outcome = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert outcome.code == 2
    assert "units are what segments are made of, and softsa has one segment" in outcome.error
