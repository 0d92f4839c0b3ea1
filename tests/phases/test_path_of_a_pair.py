"""How far a pair travels from `precis finetune` to the model: its stays in files, counted."""

import json
from pathlib import Path

from precis.cli import main
from tests.tiny_models import SMALL_RUN, once, our_tokenizer
from tests.walks import Followed, stays_of

NAMES = ("Yuki", "Ann", "Bob", "Tom", "Kim", "Sam")
MOST_STAYS, MOST_FILES = 33, 19
CHECKED = 9  # the plan reads the first pair, to refuse missing columns before libraries are imported


def test_a_pair_travels_a_short_way_from_the_command_to_the_model(tmp_path: Path) -> None:
    tokenizer = our_tokenizer()
    tokenizer.save_pretrained(tmp_path / "words")
    for split, names in (("train", NAMES), ("dev", NAMES[1:])):
        rows = [{"document": f"{name} sings a song.", "summary": f"{name} sings."} for name in names]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{split}.jsonl").write_text(text)
    of_one, of_others = (set(tokenizer(name)["input_ids"]) for name in (NAMES[0], " ".join(NAMES[1:])))
    data = tmp_path / "train.jsonl"
    words = once(
        *SMALL_RUN, "--data", data, "--dev", tmp_path / "dev.jsonl", "--out", tmp_path / "run",
        "--tokenizer", tmp_path / "words", "--steps", 1, "--set", "generated_rows=0", "--set", "train.select=loss",
    )  # fmt: skip
    stays = stays_of(
        lambda: main(["finetune", *words]),
        Followed(word=NAMES[0], token=max(of_one - of_others), place=str(data)),
        until="precis.models.encoder_decoder:forward",
        inside=("precis.nn.", "precis.models."),
    )
    assert len(stays) <= MOST_STAYS + CHECKED, stays
    assert len(set(stays)) <= MOST_FILES, stays
