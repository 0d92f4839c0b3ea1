"""How far a document travels: the modules that it passes from `precis summarize` to the model."""

from pathlib import Path

from tiny_models import tiny
from walks import modules_passed

from precis.cli import main


def test_a_document_passes_at_most_twelve_modules(tmp_path: Path) -> None:
    model, tokenizer = tiny("zcodepp")
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "a.txt").write_text("Ann sings in the hall. Zorro listens to her.")
    words = [
        "summarize",
        tmp_path / "a.txt",
        "--model",
        tmp_path / "model",
        "--device",
        "cpu",
        "--tokens",
        "5",
    ]
    passed = modules_passed(
        lambda: main([str(word) for word in words]),
        word="Zorro",
        token=tokenizer.convert_tokens_to_ids("Z"),
        until="precis.models.encoder_decoder:forward",
    )
    inside = ("precis.nn.", "precis.models.")
    way = [name for name in passed if not name.startswith(inside)]
    assert len(way) <= 12
