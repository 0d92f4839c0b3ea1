"""Choosing sentences from the command line: with the model that comes with precis, and with one that was taught."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from precis.cli import main
from precis.data.synthetic.corpus import make_pairs
from tests.tiny_models import save

TEXT = (
    "The council met on Monday evening. It voted to repair the old bridge before winter. "
    "The work will cost 40,000 crowns and begins in May. Two members were absent."
)

ITALIAN = (
    "Il consiglio si è riunito lunedì sera. Ha deciso di riparare il vecchio ponte, perché è debole. I lavori "
    "inizieranno a maggio e dureranno fino all'inverno. Il ponte è chiuso ai camion."
)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    (tmp_path / "report.txt").write_text(TEXT)
    return tmp_path / "report.txt"


def test_a_summary_needs_no_model_and_names_what_it_was_made_with(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["summarize", str(report), "--sentences", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.strip() in TEXT
    assert err.count("the model included with precis selects sentences of the document (--mode extract)") == 1
    assert "word for word" in err


def test_json_names_the_mode_and_the_places(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summarize", str(report), "--words", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mode"] == "extract"
    assert " ".join(TEXT[a:b] for a, b in found["places"]) == found["summary"]


def test_a_language_that_the_default_model_was_not_trained_on_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "rapporto.txt").write_text(ITALIAN, encoding="utf-8")
    assert main(["summarize", str(tmp_path / "rapporto.txt"), "--words", "12"]) == 0
    told = capsys.readouterr().err
    assert (
        "rapporto.txt seems to be Italian: the model that comes with precis was trained on Czech, English"
        in told
    )


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--beams", "2"], "--beams"),
        (["--draft"], "--draft"),
        (["--long", "chunk"], "--long"),
        (["--instruction", "a"], "--instruction"),
        (["--max-source", "64"], "--max-source"),
    ],
)
def test_what_is_about_writing_is_refused(
    report: Path, capsys: pytest.CaptureFixture[str], option: list[str], named: str
) -> None:
    assert main(["summarize", str(report), *option]) == 2
    assert f"{named} does not apply to --mode extract" in capsys.readouterr().err


def test_the_default_model_refuses_to_write(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summarize", str(report), "--mode", "abstract"]) == 2
    assert "was not trained to write" in capsys.readouterr().err


def test_a_model_that_writes_refuses_to_choose(
    report: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = str(save("bart", tmp_path / "bart"))
    assert main(["summarize", str(report), "--mode", "extract", "--model", model]) == 2
    assert "precis extractor" in capsys.readouterr().err


def test_teach_choose_and_score(report: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    for split in ("train", "dev", "test"):
        rows = [
            {
                "document": f"Ann sings song {n}. Bob listens to it. It rains.",
                "summary": f"Ann sings song {n}.",
            }
            for n in range(24)
        ]
        (pairs / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model, out = str(save("zcodepp", tmp_path / "tiny")), tmp_path / "out"
    small = ["--set", "scorer.width=16", "--set", "scorer.heads=2", "--epochs", "1"]
    command = ["extractor", "--model", model, "--tasks", str(pairs), "--out", str(out), *small]
    assert main(command) == 0
    assert "precis summarize FILE" in capsys.readouterr().out
    again = tmp_path / "again"
    assert main(["extractor", "--config", str(out / "run.toml"), "--out", str(again)]) == 0
    capsys.readouterr()
    weights = [(folder / "model" / "scorer.safetensors").read_bytes() for folder in (out, again)]
    assert weights[0] == weights[1]
    assert main(["summarize", str(report), "--model", str(out), "--sentences", "1"]) == 0
    assert capsys.readouterr().out.strip() in TEXT
    scores = tmp_path / "scores"
    assert main(["evaluate", "--model", str(out), "--data", str(pairs), "--out", str(scores)]) == 0
    assert "out extract" in capsys.readouterr().out
    assert main(
        ["summarize", str(report), "--model", str(out), "--mode", "abstract", "--short", "write"]
    ) in (0, 1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts kilobytes as Linux does")
def test_thirty_pages_take_less_than_a_gigabyte(tmp_path: Path) -> None:
    words = " ".join(pair.document for pair in make_pairs(400, seed=0)).split()[:14_000]
    assert len(words) == 14_000
    (tmp_path / "thirty.txt").write_text(" ".join(words))
    # The child says what it used: what the system counts as a child's begins with what its parent has.
    code = "import sys; from precis.cli import main; main(sys.argv[1:]); "
    code += "print(open('/proc/self/status').read(), file=sys.stderr)"
    command = [sys.executable, "-c", code, "summarize", "thirty.txt", "--words", "150"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert 0 < len(done.stdout.split()) <= 150
    (most,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stderr)
    assert int(most) * 1024 < 1_000_000_000
