"""Wrong input is found before the libraries are imported, and its one line names the remedy."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from precis.cli import main

TEXT = "The council met on Monday evening. It voted to repair the bridge. The work will cost 40,000 crowns. It rained."
SERVER = """
import contextlib, json, os, sys, tempfile
from precis.cli import main
with contextlib.redirect_stderr(open(os.devnull, "w")):
    main(["finetune", "--data", "missing", "--out", "out"])  # imports what all commands need
for line in sys.stdin:
    folder, words = json.loads(line)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            os.chdir(folder)
            for number, file in ((0, open(os.devnull)), (1, out), (2, err)):
                os.dup2(file.fileno(), number)
            code = main(words)
            print([name for name in ("torch", "transformers", "ray") if name in sys.modules])
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = [file.seek(0) or file.read() for file in (out, err)]
    print(json.dumps([status, *texts]), flush=True)
"""
Refused = Callable[[Sequence[str]], tuple[int, str, str]]


@pytest.fixture(scope="module")
def in_a_process() -> Iterator[Refused]:
    """Runs commands in new processes without torch; they are forks of one that has imported the command line alone.

    It returns the exit code, what was printed, with the large libraries that were imported, and the error.
    """
    words = [sys.executable, "-c", SERVER]
    variables = {**os.environ, "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables
    ) as server:
        lines, answers = server.stdin, server.stdout
        assert lines is not None
        assert answers is not None

        def run(line: Sequence[str]) -> tuple[int, str, str]:
            lines.write(json.dumps([str(Path.cwd()), line]) + "\n")
            lines.flush()
            code, out, err = json.loads(answers.readline())
            return code, out, err

        yield run
        lines.close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("r.txt").write_text(TEXT)
    Path("empty.txt").write_text("")
    Path("keys").write_text("ann\n")
    Path("bad.jsonl").write_text(json.dumps({"document": TEXT}) + "\n")
    Path("writes").mkdir()
    Path("writes/config.json").write_text('{"model_type": "bart"}')
    Path("pairs").mkdir()
    for split in ("train", "dev", "test"):
        Path(f"pairs/{split}.jsonl").write_text(json.dumps({"document": TEXT, "summary": "It met."}) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("summarize r.txt --words 0", "a summary of 0 words is empty"),
        ("summarize r.txt --min-words 100 --words 5", "--min-words 100 is more than --words 5"),
        ("summarize r.txt --beams 0", "--beams 0 must be"),
        ("summarize r.txt --draft", "--draft does not apply to --mode extract"),
        ("summarize r.txt --beams 4", "--beams does not apply to --mode extract"),
        ("summarize r.txt --device tpu", "device 'tpu' is unknown; use cpu, cuda or cuda:1"),
        ("summarize missing.txt", "missing.txt: no such file"),
        ("summarize empty.txt", "empty.txt: the document is empty"),
        ("summarize r.txt --model ./missing", "./missing: no such folder"),
        ("summarize r.txt --model missing", "missing: no such folder, and the Hugging Face hub"),
        ("summarize r.txt --model pairs", "pairs: no model here; looked for config.json"),
        ("summarize r.txt --model writes --adapter pairs", "pairs: no adapter here"),
        ("summarize r.txt --adapter pairs", "--adapter pairs needs its base model; add --model"),
        ("summarize r.txt --model writes --mode extract", "was not trained to choose sentences"),
        ("summarize r.txt --model default --mode abstract", "was not trained to write"),
        ("summarize r.txt --model http://example.org/v1", "add --allow-remote to allow it"),
        ("summarize r.txt --model http://", "write an address like"),
        ("batch r.txt --out out --model pairs", "pairs: no model here"),
        ("compare r.txt --out out --model pairs", "pairs: no model here"),
        ("finetune --data pairs --out out --model pairs", "pairs: no model here"),
        ("tune --data pairs --out out --model pairs", "pairs: no model here"),
        ("evaluate --data pairs --out out --model pairs", "pairs: no model here"),
        ("ground --tasks pairs --out out --model pairs", "pairs: no model here"),
        ("extractor --tasks pairs --out out --model pairs", "pairs: no model here"),
        ("serve --model pairs", "pairs: no model here"),
        (
            "summarize r.txt --out r.txt",
            "r.txt: is the input itself, so nothing was summarized; name another",
        ),
        ("summarize . --out r.txt", "r.txt: is in the folder to summarize"),
        ("summarize r.txt --out keys", "keys: already exists"),
        ("batch r.txt --out out --device gpu", "device 'gpu' is unknown"),
        ("batch missing.txt --out out", "missing.txt does not exist"),
        ("batch r.txt --out out --words 0", "a summary of 0 words is empty"),
        ("serve --keys missing", "missing: no such file"),
        ("serve --keys keys", "keys, line 1: write a name"),
        ("serve --host 0.0.0.0", "--host 0.0.0.0 is open to other machines"),
        ("serve --root-path precis/", "--root-path precis/: write a path"),
        ("serve --allow-origin example.org", "--allow-origin example.org: is not a site"),
        ("serve --requests-per-minute 5", "name a file of keys with --keys"),
        ("serve --max-tokens 2000 --queue-tokens 1000", "--queue-tokens"),
        ("finetune --data pairs --curve many --out out", "--curve many: give numbers of pairs"),
        ("finetune --data missing --out out", "missing: no such file"),
        (
            "finetune --data pairs --out out --set train.learnig_rate=1",
            "--set train.learnig_rate: unknown setting of train; did you mean 'learning_rate'",
        ),
        (
            "pretrain --plan --set blok_length=64",
            "--set blok_length: unknown setting; did you mean 'block_length'",
        ),
        (
            "tune --data pairs --model pairs --out out --set prefx.length=2",
            "--set prefx: unknown setting; did you mean 'prefix'",
        ),
        (
            "finetune --data pairs --out out --set nosuch=3",
            "--set nosuch: unknown setting; names are like train.learning_rate",
        ),
        ("finetune --data pairs --model ./missing --out out", "./missing: no such folder"),
        ("tune --data missing --model writes --out out", "missing: no such file"),
        ("evaluate --data pairs --split tset --model writes --out out", "did you mean 'test'"),
        ("finetune --data bad.jsonl --out out", "bad.jsonl: line 1: no column 'summary'"),
        ("tune --data bad.jsonl --model default --out out", "bad.jsonl: line 1: no column 'summary'"),
        ("evaluate --data bad.jsonl --model default --out out", "bad.jsonl: line 1: no column 'summary'"),
        ("extractor --model default --tasks bad.jsonl --out out", "bad.jsonl: line 1: no column 'summary'"),
        (
            "extractor --model default --tasks missing.csv --out out",
            "'missing.csv' is neither a task nor a file",
        ),
        ("ground --model default --tasks samsun --out out", "did you mean 'samsum'"),
        ("compare missing.txt --model default --out out", "missing.txt: no such file"),
        ("errors missing", "missing: no such folder"),
        ("errors pairs", "pairs: lacks examples.jsonl"),
        (
            "finetune --data pairs --out pairs",
            "pairs: contains dev.jsonl and 2 more, which precis did not write",
        ),
        ("tune --data pairs --model default --out pairs", "pairs: contains dev.jsonl and 2 more"),
        ("ground --model default --tasks samsum --out pairs", "pairs: contains dev.jsonl and 2 more"),
        (
            "extractor --model default --tasks pairs/train.jsonl --out pairs",
            "pairs: contains dev.jsonl and 2 more",
        ),
        ("evaluate --data pairs --model default --out pairs", "pairs: contains dev.jsonl and 2 more"),
        ("pretrain --corpus pairs --out pairs", "pairs: contains dev.jsonl and 2 more"),
        ("finetune --data pairs --recipe zcodep-mini --out out", "did you mean 'zcodepp-mini'"),
        ("finetune --data pairs --out out --lr -1", "--lr -1 must be above 0"),
        ("finetune --data pairs --out out --epochs 0", "--epochs 0 must be above 0"),
        ("finetune --data pairs --out out --steps 0", "--steps 0: must be at least 1"),
        ("finetune --data pairs --out out --batch-size 0", "--batch-size 0: must be at least 1"),
        ("finetune --data pairs --out out --batch-tokens 0", "--batch-tokens 0: must be at least 1"),
        ("finetune --data pairs --out out --max-source 0", "--max-source 0: must be at least 1"),
        ("tune --data pairs --model default --out out --validate-every 0", "--validate-every 0: must be"),
        ("tune --data pairs --model default --out out --lr 0", "--lr 0 must be above 0"),
        ("tune --data pairs --model default --out out --examples 0", "--examples 0: must be at least 1"),
        ("pretrain --corpus pairs --out out --block-length 0", "--block-length 0: must be at least 1"),
        ("evaluate --data pairs --model default --out out --limit 0", "--limit 0: must be at least 1"),
        ("evaluate --data pairs --model default --out out --beams 0", "--beams 0: must be at least 1"),
        ("evaluate --data pairs --predictions missing --out out", "missing: no such file; give a file of"),
        ("tokenizer --data missing --out out", "missing: no such file"),
        ("tokenizer --data bad.jsonl --out out", "bad.jsonl: line 1: no column 'summary'"),
        ("data pack missing.txt --out out", "missing.txt: no such file or folder"),
        ("data pack r.txt --out out --dev-share 2", "--dev-share 2: must be at most 0.5"),
        ("convert missing --out out", "missing: no such file"),
        ("push missing ann/first --dry-run", "missing: no such folder"),
        ("data check missing", "missing"),
        ("r.txt", "to summarize this file: precis summarize r.txt"),
    ],
)
def test_wrong_input_is_refused_before_the_libraries_are_imported(
    place: Path, in_a_process: Refused, line: str, said: str
) -> None:
    code, out, err = in_a_process(line.split())
    assert (code, out.strip()) == (2, "[]" if "batch missing" not in line else "['ray']")
    assert said in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_a_file_named_like_an_option_is_explained(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("-x.txt").write_text(TEXT)
    assert main(["summarize", "-x.txt"]) == 2
    assert "if you mean the file, write ./-x.txt" in capsys.readouterr().err


def test_a_folder_with_a_file_that_cannot_be_read_goes_on_and_says_so(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("letters").mkdir()
    Path("letters/a.txt").write_text(TEXT)
    Path("letters/b.txt").write_bytes(b"\xff\xfe\xfa")
    Path("letters/c.txt").write_text("")
    Path("letters/d.txt").write_text(TEXT)
    assert main(["summarize", "letters", "--sentences", "1", "--json"]) == 1
    out, err = capsys.readouterr()
    made = [json.loads(line) for line in out.splitlines()]
    assert [Path(one["name"]).name for one in made] == ["a.txt", "b.txt", "c.txt", "d.txt"]
    assert ["summary" in one for one in made] == [True, False, False, True]
    assert made[2]["error"] == "the document is empty"
    assert "2 of 4 documents could not be summarized (first: letters/b.txt: " in err


def test_failures_are_not_counted_as_summaries_of_a_file(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["summarize", "r.txt", "empty.txt", "--sentences", "1", "--keep-going", "--out", "o.jsonl"]) == 1
    )
    assert "o.jsonl: 1 summary\n" in capsys.readouterr().err


def test_among_named_files_the_message_names_keep_going(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("b.pdf").write_bytes(b"%PDF-1.4 damaged")
    assert main(["summarize", "r.txt", "b.pdf", "--sentences", "1"]) == 2
    assert "--keep-going continues with the others" in capsys.readouterr().err
    assert main(["summarize", "b.pdf"]) == 2
    assert "--keep-going" not in capsys.readouterr().err


def test_a_device_is_also_checked_with_torch(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch  # noqa: F401

    assert main(["summarize", "r.txt", "--device", "tpu"]) == 2
    assert "device 'tpu' is unknown; use cpu, cuda or cuda:1" in capsys.readouterr().err


def test_a_setting_of_a_group_is_found_by_its_last_name(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["finetune", "--data", "pairs", "--recipe", "zcodepp-micro", "--out", "out"]
    assert main([*words, "--set", "learning_rate=1e-3"]) == 2
    err = capsys.readouterr().err
    assert "--set learning_rate: unknown setting; did you mean 'train.learning_rate'?" in err


def names_in(values: object) -> Iterator[str]:
    if isinstance(values, dict):
        for name, value in values.items():
            yield name
            yield from names_in(value)


def test_the_early_check_knows_the_settings_of_every_recipe_and_method() -> None:
    from precis.cli.framework.options import RECIPE_NAMES, setting_names
    from precis.recipes.adapter_recipes import resolve_low_rank, resolve_prefix
    from precis.recipes.catalogue import PRETRAINING, recipe
    from precis.recipes.pretraining_runs import pretraining_run
    from precis.recipes.run_plan import ExtractPlan
    from precis.tuning import METHODS

    low_rank, run = resolve_low_rank(None, changes={}, assignments=(), select=None)
    plans = [
        *(recipe(name) for name in RECIPE_NAMES),
        *(pretraining_run(name) for name in PRETRAINING),
        *(
            resolve_prefix(None, method, settings)
            for method in METHODS
            for settings in ((), ["prefix.keys=direct"])
        ),
        *(low_rank, run, ExtractPlan()),
    ]
    found = {name for plan in plans for name in names_in(plan.to_dict())} | {"lora"}
    assert len(found) > 80
    assert found - setting_names() - {"type"} == set()
