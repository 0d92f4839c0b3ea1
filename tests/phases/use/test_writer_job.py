import json
from pathlib import Path

import pytest

from precis.cli import main
from precis.phases.use.summary_job import SummaryJob
from precis_text.errors import UserError
from tests.generation.writers.endpoint_server import says, serving
from tests.generation.writers.test_writer import BOATS
from tests.tiny_models import save, save_llama


@pytest.mark.parametrize("writing", [{"beams": 2}, {"draft": True}])
def test_a_writer_refuses_options_of_a_search(tmp_path: Path, writing: dict[str, int | bool]) -> None:
    model = str(save_llama(tmp_path / "llama"))
    with pytest.raises(UserError, match=f"--{next(iter(writing))} does not apply to a causal language model"):
        SummaryJob(model=model, writing=writing).locate_model()


@pytest.mark.parametrize("writing", [{"free": True}, {"language": "de"}, {"allow_remote": True}])
def test_an_encoder_decoder_refuses_options_of_a_writer(
    tmp_path: Path, writing: dict[str, bool | str]
) -> None:
    model = str(save("bart", tmp_path / "bart"))
    with pytest.raises(UserError, match="does not apply to an encoder-decoder"):
        SummaryJob(model=model, writing=writing).locate_model()


def test_prompts_and_check_are_among_what_determines_the_summaries(tmp_path: Path) -> None:
    model = str(save_llama(tmp_path / "llama"))
    strict, free = (
        SummaryJob(model=model, writing={"free": free}).locate_model().made_by() for free in (False, True)
    )
    assert len(strict["prompts"]) == len(strict["rules"]) == 16
    assert strict != free


def test_summarize_prints_what_is_written_and_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "boats.txt"
    file.write_text(BOATS)
    reply = "Ann sold Bob 3 boats. Carl paid 700 pounds for the boats."
    with serving(says(reply)) as server:
        command = ["summarize", str(file), "--model", f"{server.address}#tiny", "--words", "30"]
        assert main(command) == 0
        assert "sentences: 1 written and 1 quoted" in capsys.readouterr().err
        assert main([*command, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert [each["origin"] for each in record["sentences"]] == ["written", "quoted"]
        assert main([*command, "--free"]) == 0
        assert capsys.readouterr().out.strip() == reply


def test_evaluate_scores_a_writer_beside_a_model(tmp_path: Path) -> None:
    rows = [{"document": BOATS, "summary": "Ann sold Bob 3 boats."}] * 2
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving(says("Ann sold Bob 3 boats.")) as server:
        command = ["evaluate", "--data", str(pairs), "--model", f"{server.address}#tiny"]
        command += [
            "--model",
            str(save("bart", tmp_path / "bart")),
            "--out",
            str(tmp_path / "out"),
            "--threads",
            "1",
        ]
        assert main(command) == 0
    predictions = [file.read_text() for file in (tmp_path / "out" / "predictions").glob("*.jsonl")]
    assert sum("Ann sold Bob 3 boats." in text.partition("\n")[2] for text in predictions) >= 1
    assert len(predictions) == 2
