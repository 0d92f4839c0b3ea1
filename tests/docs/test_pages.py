"""Pages are short, and what pages and docstrings name exists: commands, options, links, files, symbols."""

import re
from pathlib import Path

import pytest

from precis.cli.application import parser
from tests.docs.pages import GUIDE, PAGES, README, ROOT, Text, commands, docstrings, markdown
from tests.docs.references import missing_commands, missing_links, missing_names

_LINK = re.compile(r"\[[^]]*\]\(([^)#]+)\)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_readme_has_at_most_600_words() -> None:
    assert len(README.read_text().split()) <= 600


@pytest.mark.parametrize("page", PAGES[1:], ids=name)
def test_a_page_of_the_guide_has_at_most_900_words(page: Path) -> None:
    assert len(page.read_text().split()) <= 900


# What is not in the repository, and a page says so or names another program's
ELSEWHERE = {
    ("CONTRIBUTING.md", "utils.py"),
    ("docs/adr/0006-cpp-kernel.md", "torch.utils.cpp_extension.load"),
    ("docs/adr/0010-kernel-by-default.md", "disentangled_gathered"),
    ("docs/adr/0011-phases-and-studies.md", "precis bench"),
    ("docs/adr/0015-a-workspace-of-packages.md", "precis.commands"),
    ("docs/experiments/data-to-text.md", "PHASE1"),
    ("docs/guide/batch.md", "backoffLimit"),
    ("docs/guide/glue.md", "config.problem_type"),
    ("docs/guide/operate.md", "PRECIS_SERVE_"),
    ("docs/guide/questions.md", "pycocoevalcap"),
    ("docs/guide/share.md", "MLFLOW_TRACKING_URI"),
    ("packages/precis/src/precis/auto_classes.py", "transformers.models.TYPE"),
    ("packages/precis/src/precis/cli/application.py", "precis.commands"),
    ("packages/precis/src/precis/cli/framework/signals.py", "nohup"),
    ("packages/precis/src/precis/evaluation/meteor.py", "pycocoevalcap"),
    ("packages/precis/src/precis/evaluation/rouge.py", "_backtrack_norec"),
    ("packages/precis/src/precis/evaluation/sacrebleu_scores.py", "corpus_chrf"),
    ("packages/precis/src/precis/evaluation/sacrebleu_scores.py", "corpus_ter"),
    ("packages/precis/src/precis/generation/fast/token_search.py", "GenerationMixin._beam_search"),
    ("packages/precis/src/precis/nn/disentangled/cpp_loader.py", "cpp_extension.load"),
    ("packages/precis/src/precis/objectives/future_tokens.py", "accuracy_1"),
    ("packages/precis/src/precis/phases/search/grid_study.py", "Study.optimize"),
    ("packages/precis/src/precis/server/connections.py", "sd_notify"),
    ("packages/precis/src/precis/storage/locks.py", "PLACE.lock"),
    ("packages/precis/src/precis/training/interruption.py", "nohup"),
    ("tests/test_papers.py", "package.module.Class.member"),
}
CODE = ("benchmarks", "faults", "experiments", "tools", "docs", "examples", "packages", "tests")


@pytest.mark.long
def test_what_pages_and_docstrings_name_exists() -> None:
    found = {
        (text.name, one)
        for text in (*markdown(), *docstrings(*CODE))
        for sought in (missing_commands, missing_names)
        for one in sought(text)
    }
    missing = sorted(found - ELSEWHERE)
    assert not missing, "\n".join(f"{file}: {one}" for file, one in missing)
    assert ELSEWHERE - found == set(), "these exist, or no page names them: take them out of ELSEWHERE"


def test_links_of_pages_lead_to_files_and_headings() -> None:
    assert {(text.name, one) for text in markdown() for one in missing_links(text)} == set()


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ("`python -m benchmarks.gone --quick`", "python -m benchmarks.gone"),
        ("    python faults/gone.py", "python faults/gone.py"),
        ("`python -m benchmarks.startup --gone`", "python -m benchmarks.startup --gone"),
        ("    python -m faults.kills --each 2 \\\n        --gone", "python -m faults.kills --gone"),
        ("```\nprecis-onnx onnx/first --gone\n```", "precis-onnx --gone"),
        ("`kills --gone 4`", "kills --gone"),
        ("    A=1 precis finetune --gone", "precis finetune --gone"),
        ("`precis probe gone`", "precis probe gone"),
        ("`precis gone`", "precis gone"),
        ("    precis finetune --precision fp8", "precis finetune --precision fp8"),
        ("`precis reproduce gone --scale micro`", "precis reproduce gone"),
        ("    precis finetune --recipe zcodepp-gone", "precis finetune --recipe zcodepp-gone"),
        ("    precis finetune --set model.was_gone=1", "precis finetune --set model.was_gone=1"),
        ("`make gone`", "make gone"),
        ("    make bench GONE=1", "make GONE=1"),
        ("`pytest tests/gone.py`", "pytest tests/gone.py"),
        ("`pytest tests/golden -k no_such_test`", "pytest -k no_such_test"),
        ("[a](docs/gone.md)", "docs/gone.md"),
        ("[a](ARCHITECTURE.md#gone)", "ARCHITECTURE.md#gone"),
        ("`precis.nn.gone`", "precis.nn.gone"),
        ("`precis.nn.encoder.Gone`", "precis.nn.encoder.Gone"),
        ("`nn.streams.Gone`", "nn.streams.Gone"),
        ("`LogBuckets.was_gone`", "LogBuckets.was_gone"),
        ("`was_gone()`", "was_gone"),
        ("`nn/gone.py`", "nn/gone.py"),
        ("`docs/guide/gone.md`", "docs/guide/gone.md"),
        ("`gone.jsonl`", "gone.jsonl"),
        ("see docs/adr/9999", "docs/adr/9999"),
        ("`tests/docs/test_site.py::test_gone`", "tests/docs/test_site.py::test_gone"),
        ("`LogBuckets` in `nn/streams.py`", "LogBuckets in nn/streams.py"),
        ("`--was-gone`", "--was-gone"),
    ],
)
def test_a_fault_of_each_kind_is_found(body: str, missing: str) -> None:
    text = Text(README, body)
    assert {*missing_commands(text), *missing_links(text), *missing_names(text)} == {missing}


def test_every_page_is_in_the_index() -> None:
    listed = set(_LINK.findall((GUIDE / "README.md").read_text()))
    assert {page.name for page in PAGES[1:]} - {"README.md"} <= listed


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name)
def test_commands_have_options_that_exist(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (tmp_path / "runs" / "first" / "run.toml").write_text("")
    for words in commands(page):
        group, command, rest = parser(), words[1], words[2:]
        if command in ("data", "probe", "judge"):
            group, command, rest = group.commands[command], rest[0], rest[1:]
        group.commands[command].make_context(command, list(rest))


_CODE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/))`|^ +((?:[a-z_]+/)+|[a-z_/]+\.py)\s{2,}", re.MULTILINE)


def test_the_places_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = [one or other for one, other in _CODE.findall(text)]
    roots = (
        ROOT,
        ROOT / "packages" / "precis-text" / "src",
        ROOT / "packages" / "precis" / "src" / "precis",
        ROOT / "packages" / "precis" / "src" / "precis" / "nn",
        ROOT / "packages" / "precis" / "src" / "precis" / "models",
    )
    missing = [place for place in named if not any((root / place).exists() for root in roots)]
    assert len(named) > 40
    assert missing == []


def test_the_table_of_requests_has_every_field() -> None:
    from precis.server.schemas import SummarizeRequest

    rows = [row for row in (GUIDE / "serve.md").read_text().splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert set(SummarizeRequest.model_fields) - named == set()
