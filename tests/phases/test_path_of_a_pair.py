"""How far a pair travels: the modules that it passes from `precis finetune` to the model."""

import json
from pathlib import Path

from tiny_models import SMALL_RUN, once, our_tokenizer
from walks import modules_passed

from precis.cli import main

NAMES = ("Yuki", "Ann", "Bob", "Tom", "Kim", "Sam")


def test_a_pair_passes_at_most_twelve_modules(tmp_path: Path) -> None:
    tokenizer = our_tokenizer()
    tokenizer.save_pretrained(tmp_path / "words")
    for split, names in (("train", NAMES), ("dev", NAMES[1:])):
        rows = [{"document": f"{name} sings a song.", "summary": f"{name} sings."} for name in names]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{split}.jsonl").write_text(text)
    of_one, of_others = (set(tokenizer(name)["input_ids"]) for name in (NAMES[0], " ".join(NAMES[1:])))
    words = once(
        *SMALL_RUN, "--data", tmp_path, "--out", tmp_path / "run", "--tokenizer", tmp_path / "words",
        "--steps", 1, "--set", "generated_rows=0", "--set", "train.select=loss",
    )  # fmt: skip
    passed = modules_passed(
        lambda: main(["finetune", *words]),
        word=NAMES[0],
        token=max(of_one - of_others),
        until="precis.models.encoder_decoder:forward",
    )
    inside = ("precis.nn.", "precis.models.")
    way = [name for name in passed if not name.startswith(inside)]
    assert len(way) <= 12
