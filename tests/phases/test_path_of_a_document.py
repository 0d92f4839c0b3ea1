"""How far a document travels from `precis summarize` to the model: its stays in files, counted."""

from pathlib import Path

from precis.cli import main
from tests.tiny_models import tiny
from tests.walks import Followed, stays_of

MOST_STAYS, MOST_FILES = 27, 16


def test_a_document_travels_a_short_way_from_the_command_to_the_model(tmp_path: Path) -> None:
    model, tokenizer = tiny("zcodepp")
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    file = tmp_path / "a.txt"
    file.write_text("Ann sings in the hall. Zorro listens to her.")
    words = ["summarize", file, "--model", tmp_path / "model", "--device", "cpu", "--tokens", "5"]
    stays = stays_of(
        lambda: main([str(word) for word in words]),
        Followed(word="Zorro", token=tokenizer.convert_tokens_to_ids("Z"), place=str(file)),
        until="precis.models.encoder_decoder:forward",
        inside=("precis.nn.", "precis.models."),
    )
    assert len(stays) <= MOST_STAYS, stays
    assert len(set(stays)) <= MOST_FILES, stays
