"""A tokenizer cannot make a short text take all memory."""

import base64
from typing import Any

import pytest

from precis_text.errors import UserError
from precis_text.tokenizer_growth import check_growth

THOUSAND = {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 1000}
NINE = {"type": "Replace", "pattern": {"Regex": "e*"}, "content": "e" * 9}


def charsmap(text: str) -> dict[str, Any]:
    content = (4).to_bytes(4, "little") + b"trie" + text.encode() + b"\0b\0"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(content).decode()}


@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer", "decoder"])
@pytest.mark.parametrize(
    "steps",
    [
        THOUSAND,
        {"type": "Sequence", "normalizers": [NINE, {"type": "Sequence", "decoders": [NINE]}]},
        charsmap("x" * 65),
        {"type": "Prepend", "prepend": "x" * 65},
    ],
)
def test_what_makes_texts_much_longer_is_refused(part: str, steps: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=rf"^its {part} can make one character [0-9,]+, more than 64"):
        check_growth({part: steps})


@pytest.mark.parametrize(
    "steps",
    [
        None,
        NINE,
        {"type": "NFKC"},
        charsmap("x" * 18),
        {"type": "Sequence", "normalizers": [charsmap("x" * 18), {**NINE, "content": " "}]},
        {"type": "Replace", "pattern": {"String": "e" * 1000}, "content": "e" * 1000},
        {"type": "Lowercase"},
    ],
)
def test_the_usual_steps_are_not(steps: dict[str, Any] | None) -> None:
    check_growth({"normalizer": steps})


def test_a_damaged_map_is_named() -> None:
    with pytest.raises(UserError, match=r"^its precompiled_charsmap is damaged"):
        check_growth({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"}})
