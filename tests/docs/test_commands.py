"""Every command of README and guide runs, in the order of the guide, with tiny models and tiny data."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from precis.cli import main
from tests.docs.pages import GUIDE, README, commands
from tests.docs.world import make_world

ORDER = (
    *(
        "data",
        "finetune",
        "share",
        "summarize",
        "writers",
        "documents",
        "batch",
        "extract",
        "forms",
        "export",
        "evaluate",
        "compare",
        "faithfulness",
        "judge",
        "pretrain",
        "languages",
        "few-examples",
        "search",
        "deberta",
        "prefixes",
    ),
    *("probe", "questions", "understand", "glue", "convert", "reproduce"),
)
PAGES = [*(GUIDE / f"{name}.md" for name in ORDER), README]
_ZCODEPP = "hidden_size=32 intermediate_size=64 encoder_layers=2 decoder_layers=1 vocab_size=600"
_PROPHETNET = (
    "hidden_size=32 encoder_layers=1 decoder_layers=1 encoder_ffn_dim=64 decoder_ffn_dim=64 "
    "encoder_attention_heads=2 decoder_attention_heads=2 vocab_size=600"
)
_SHORT = "--steps=2 --set=train.warmup_steps=1 --threads=1"
_PAIRS = f"{_SHORT} --batch-size=4 --max-source=64 --max-target=16 --set=generated_rows=2 --set=generation.max_tokens=8"
_SMALL = {
    "finetune": _PAIRS,
    "ground": _PAIRS,
    "tune": f"{_PAIRS} --set=prefix.length=3",
    "pretrain": f"{_SHORT} --batch-size=2 --block-length=64 --set=validation_blocks=2",
    "pack": "--vocab-size=600",
    "evaluate": "--limit=4 --threads=1",
    "compare": "--limit=2 --threads=1",
    "extractor": "--epochs=1 --set=scorer.width=16 --set=scorer.heads=2 --threads=1",
    "summarize": "--tokens=8 --min-words=1 --threads=1",
    "attention": "--rows=4 --threads=1",
    "spectrum": "--rows=4 --threads=1",
    "metrics": "--samples=20 --threads=1",
    "reproduce": "--threads=1",
}
"""Command -> options with which it takes a second."""
_WRITER = f"{_SHORT} --batch-size=4 --max-target=16 --set=generated_rows=2"
"""The same for training a causal language model, whose prompt alone has hundreds of tokens."""


def toy(words: Sequence[str]) -> list[str]:
    """The command without `precis`, and with small sizes for whatever it does not set itself."""
    if "--plan" in words:
        return list(words[1:])
    command = words[2] if words[1] in ("data", "probe", "judge") else words[1]
    options = _SMALL.get(command, "").split()
    if command in ("finetune", "tune") and any(word.startswith("writers/") for word in words):
        options = _WRITER.split()
    if command in ("finetune", "pretrain") and "--model" not in words:
        recipe = words[words.index("--recipe") + 1] if "--recipe" in words else ""
        shape = _PROPHETNET if recipe.startswith("prophetnet") else _ZCODEPP
        options += [f"--set=model.{change}" for change in shape.split()]
    if command == "pack" and "--tokenizer" in words:
        options = []
    if "--search" in words:
        options.append("--space=learning_rate=0.001,0.002")
    if "--words" in words and "--tokens=8" in options:
        options.remove("--tokens=8")
    if "--predictions" in words and "--limit=4" in options:
        options.remove("--limit=4")
    given = {words[n + 1].partition("=")[0] for n, word in enumerate(words) if word == "--set"} | set(words)
    mine = [each for each in options if _name(each) not in given]
    return [*("2" if words[n - 1] == "--trials" else word for n, word in enumerate(words) if n), *mine]


def _name(option: str) -> str:
    """`--steps` of `--steps=2`, and `train.warmup_steps` of `--set=train.warmup_steps=1`."""
    name, _, rest = option.partition("=")
    return rest.partition("=")[0] if name == "--set" else name


@pytest.fixture(scope="module", autouse=True)
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the commands run, one after the other."""
    folder, before = tmp_path_factory.mktemp("guide"), Path.cwd()
    make_world(folder)
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert commands(page)
    for words in commands(page):
        code = main(toy(words))
        assert code == 0, f"{' '.join(words)}\n{capfd.readouterr().err}"


def test_every_page_with_commands_is_run() -> None:
    assert {page for page in (GUIDE.glob("*.md")) if commands(page)} == set(PAGES[:-1])
