"""`precis tune` as a user meets it, and its adapter where a model is asked for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from precis.tuning import read_adapter
from precis.tuning.discourse import Blocked
from precis.tuning.prefix import Direct
from tests.tiny_models import once, save

Precis = Callable[..., Any]
SHORT = [
    "--steps", 2, "--batch-size", 4, "--max-source", 64, "--max-target", 12,
    "--lr", 0.01, "--set", "generated_rows=2", "--set", "generation.max_tokens=8", "--threads", 1,
]  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A model that writes letters only: one that is not trained could write nothing but control characters."""
    folder = save("bart", tmp_path / "base", positions=128)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = range(len(tokenizer))
    unseen = [i for i in ids if not any(map(str.isalnum, tokenizer.decode([i], skip_special_tokens=True)))]
    file = folder / "generation_config.json"
    decoding = json.loads(file.read_text()) | {"suppress_tokens": unseen}
    file.write_text(json.dumps(decoding))
    return folder


def test_an_adapter_is_trained_scored_and_used(
    base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options = [
        "--method",
        "uniblock",
        "--set",
        "attention.encoder_segments=2",
        "--set",
        "prefix.length=4",
        "--set",
        "prefix.sites=encoder,cross",
        "--set",
        "prefix.layers=low:1",
        "--set",
        "prefix.keys=direct",
    ]
    made = precis("tune", "--model", base, "--data", pairs, "--out", out, *options, *SHORT)
    assert made.code == 0, made.err
    # two sites, one layer, keys and values, 4 columns of 32 numbers
    assert "uniblock: 512 parameters are trained, 512 are kept" in made.err
    settings = json.loads((out / "settings.json").read_text())["plan"]["prefix"]
    assert (settings["sites"], settings["layers"]) == (
        ["encoder", "cross"],
        {"type": "LowLayers", "count": 1},
    )
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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["--set", "prefix.keys.width=8", "--set", "prefix.dropout=0.1"],
            {"keys": {"type": "Reparametrized", "width": 8}, "dropout": 0.1},
        ),
        (
            ["--set", "initial_text=Ann sang"],
            {"keys": {"type": "Direct", "std": Direct().std}, "dropout": 0.0},
        ),
    ],
)
def test_how_keys_and_values_are_made_reaches_the_run(
    options: list[Any], expected: dict[str, Any], base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    words = once(
        *SHORT,
        "--steps",
        1,
        "--method",
        "uniblock",
        "--set",
        "attention.decoder_segments=2",
        "--set",
        "target_length=9",
        *options,
    )
    made = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *words)
    assert made.code == 0, made.err
    plan = json.loads((tmp_path / "run" / "settings.json").read_text())["plan"]
    assert {key: plan["prefix"][key] for key in expected} == expected
    assert (plan["attention"]["decoder_segments"], plan["target_length"]) == (2, 9)
    assert plan["initial_text"] == ("Ann sang" if "initial_text=Ann sang" in options else "")
    tuning = read_adapter(tmp_path / "run" / "adapter").tuning
    assert tuning.decoder.plan(1)[0].prefix == Blocked(segments=2)
    assert tuning.target_length == 9


def test_the_network_is_nothing_to_a_whole_model(
    base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = ["--set", "prefix=none", "--method", "softsa", "--set", "prefix.keys.width=8"]
    outcome = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert "prefix.keys.width needs a prefix" in outcome.error


SETTINGS = [
    f"--set={one}" for one in ("prefix.length=3", "units=turns", "prefix.keys=network", "initial_text=")
]


def test_the_settings_of_a_prefix_reach_the_plan_and_the_file_that_repeats_the_run(
    base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = ["--method=uniblock", *SETTINGS]
    made = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options, *SHORT)
    assert made.code == 0, made.err
    plan = json.loads((tmp_path / "run" / "settings.json").read_text())["plan"]
    assert (plan["prefix"]["length"], plan["units"]["type"]) == (3, "Turns")
    assert '"prefix.length" = "3"' in (tmp_path / "run" / "run.toml").read_text()
    again = precis("tune", "--config", tmp_path / "run" / "run.toml", "--out", tmp_path / "again")
    assert again.code == 0, again.err
    assert json.loads((tmp_path / "again" / "settings.json").read_text())["plan"] == plan


@pytest.mark.parametrize("options", [["--set", "prefix.keys=direct"], ["--set", "initial_text=Ann sang"]])
def test_keys_and_values_that_are_trained_themselves_want_a_rate(
    options: list[Any], base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    """At the usual one, which is for the network, they would stay as they were drawn."""
    words = ["tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options]
    assert "add --lr" in precis(*words).error
    given = precis(*words, "--set", "train.learning_rate=0.1", "--set", "train.colour=1")
    assert "--set train.colour: unknown setting of train" in given.error


def test_a_share_is_drawn_and_the_papers_rate_is_called_small(
    base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = once(*SHORT, "--lr", 5e-5, "--share", 0.25, "--sampling-seed", 3)
    made = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert made.code == 0, made.err
    assert "10 training pairs drawn at random (seed 3)" in made.err
    assert "5e-05 suits BART-large" in made.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--method", "prefx"], "unknown method 'prefx'; did you mean 'prefix'?"),
        (["--set", "prefix.length=0"], "Prefix(length=0): a prefix needs at least 1 column"),
        (["--set", "prefix.layers=top:9"], "the count must be from 1 to"),
        (["--set", "prefix.sites=encoder,middle"], "unknown site 'middle'"),
        (["--set", "attention.encoder_segments=51"], "51 segments, but the prefix has length 50"),
        (["--examples", 2, "--share", 0.5], "--examples 2 and --share 0.5"),
        (["--sampling-seed", 2], "for --examples or --share; add one of them"),
        (["--share", 2], "above 0 and at most 1"),
        (
            ["--set", "prefix.keys.width=8", "--set", "prefix.keys=direct"],
            "--set prefix.keys.width: unknown setting of prefix.keys",
        ),
        (["--set", "prefix.keys=network", "--set", "initial_text=So"], "cannot be initialized with words"),
        (["--set", "prefix=none", "--method", "uniblock"], "cannot tune the whole model"),
        (["--task", "e2f"], "unknown task 'e2f'"),
        (["--set", "attention.temperature=0"], "temperature=0.0"),
        (["--method", "truncsa", "--set", "attention.mass=1.5"], "mass=1.5"),
        (
            ["--method", "hsoftsa", "--set", "attention.mass=0.9"],
            "attention.mass does not apply to --method hsoftsa; only truncsa, htruncsa use it",
        ),
        (
            ["--method", "prefix", "--set", "attention.temperature=1.0"],
            "attention.temperature does not apply to --method prefix",
        ),
        (
            ["--method", "softsa", "--set", "attention.encoder_segments=2"],
            "only uniblock, hierblock, hierblock+softsa use it",
        ),
        (
            ["--method", "uniblock", "--set", "attention.lower_share=0.5"],
            "attention.lower_share does not apply to --method uniblock",
        ),
        (
            ["--method", "truncsa", "--set", "target_length=9"],
            "target_length does not apply to --method truncsa",
        ),
        (
            ["--set", "prefix=none", "--set", "prefix.length=4", "--method", "softsa"],
            "prefix.length needs a prefix",
        ),
        (["--set", "prefix=none", "--set", "prefix.length=1"], "prefix.length needs a prefix"),
    ],
)
def test_bad_input_is_one_line(
    words: list[Any], says: str, base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = once(*SHORT, *words)
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
    (tmp_path / "p.txt").write_text("Ann sings.\n")
    options = [
        "--adapter",
        "a",
        "--data",
        pairs,
        "--predictions",
        tmp_path / "p.txt",
        "--out",
        tmp_path / "out",
    ]
    assert "needs its base model" in precis("evaluate", *options).error


@pytest.mark.parametrize("method", ["truncsa", "hierblock+softsa"])
def test_the_temperature_reaches_the_method(
    method: str, base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = once(*SHORT, "--steps", 1, "--method", method, "--set", "attention.temperature=0.1")
    made = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert made.code == 0, made.err
    encoder = read_adapter(tmp_path / "run" / "adapter").tuning.encoder
    assert getattr(encoder.plan(4)[0].normalizer, "temperature", None) == 0.1


@pytest.mark.long
def test_the_units_of_segments_reach_the_adapter_and_its_use(
    base: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    units = "turns"
    options = once(*SHORT, "--steps", 1, "--method", "uniblock", "--set", f"units={units}")
    made = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert made.code == 0, made.err
    assert read_adapter(tmp_path / "run" / "adapter").tuning.units == units
    (tmp_path / "text.txt").write_text("Ann: I sang.\nBob: I heard it.")
    assert precis("summarize", tmp_path / "text.txt", "--model", tmp_path / "run").code == 0
    looked = ["probe", "attention", "--model", tmp_path / "run", "--data", pairs, "--out", tmp_path / "seen"]
    assert precis(*looked, "--rows", 2).code == 0


def annotated(folder: Path, name: str) -> Path:
    """Pairs with a column of clauses, as discourse treebanks have them: [text, relation]."""
    rows = []
    for number in range(12):
        clauses = [f"Ann sang song {number},", "because Bob asked,", "and all of them danced."]
        row = {"document": " ".join(clauses), "summary": "Ann sang.", "edus": [[c, "elab"] for c in clauses]}
        rows.append(json.dumps(row))
    (folder / name).write_text("\n".join(rows) + "\n")
    return folder / name


@pytest.mark.long
def test_annotated_units_are_read_from_their_column(base: Path, precis: Precis, tmp_path: Path) -> None:
    data = annotated(tmp_path, "pairs.jsonl")
    options = once(*SHORT, "--steps", 1, "--method", "uniblock", "--set", "units=marked")
    made = precis("tune", "--model", base, "--data", data, "--out", tmp_path / "run", *options)
    assert made.code == 2
    assert "contains no unit marks" in made.error
    assert "--units-column" in made.error
    column = ["--units-column", "edus"]
    made = precis("tune", "--model", base, "--data", data, "--out", tmp_path / "run", *options, *column)
    assert made.code == 0, made.err
    assert made.out.count("--units-column edus") == 2  # of the next commands
    used = ["--model", tmp_path / "run"]
    assert precis("summarize", data, *used, *column).code == 0
    assert "contains no unit marks" in precis("summarize", data, *used).error
    looked = precis(
        "probe", "attention", *used, "--data", data, *column, "--rows", 2, "--out", tmp_path / "seen"
    )
    assert looked.code == 0, looked.err
    assert precis("data", "check", data, *column).code == 0
    assert precis("data", "check", data, "--units-column", "summary").code == 2
    scores = tmp_path / "scores"
    assert precis("evaluate", *used, "--data", data, *column, "--limit", 2, "--out", scores).code == 0
    equal = precis("tune", "--model", base, "--data", data, "--out", tmp_path / "equal", *SHORT, *column)
    assert "--units-column edus is for --set units=marked" in equal.error


def test_units_without_blocks_are_one_line(base: Path, pairs: Path, precis: Precis, tmp_path: Path) -> None:
    options = [*SHORT, "--method", "softsa", "--set", "units=turns"]
    outcome = precis("tune", "--model", base, "--data", pairs, "--out", tmp_path / "run", *options)
    assert outcome.code == 2
    assert "units needs two or more segments of the source, but softsa has one" in outcome.error
