"""JSON of others: nothing of it is lost, and no text of any shape breaks the reader."""

from pathlib import Path

import pytest

from precis.errors import UserError
from precis.json_files import MAX_DEPTH, JsonError, parse_json, read_json

BAD = {
    '{"a": 1, "a": 2}': "has the key 'a' twice",
    "[" * 200_000: "is nested deeper than 100 levels",
    '{"a":' * 100_000: "is nested deeper than 100 levels",
    "[" * 150 + "]" * 150: "is nested deeper than 100 levels",
    "1" * 5_000: "has an integer of more than 4,300 digits",
    "[0" + ",0" * 4_000_001 + "]": "has more than 4,000,000 values",
    "[NaN]": "has NaN, which is no JSON",
    "-Infinity": "has -Infinity, which is no JSON",
    "1e999": "has the number 1e999",
    "{": "Expecting property name",
}


@pytest.mark.parametrize(("text", "says"), BAD.items(), ids=list(BAD.values()))
def test_what_is_no_plain_json_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(JsonError) as caught:
        parse_json(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plain_json_is_read() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse_json(b'{"a": [1, 2.5, null, "[[["]}') == {"a": [1, 2.5, None, "[[["]}
    assert isinstance(parse_json(deep), list)
    assert parse_json("[NaN]", constants=True)[0] != 0


def test_a_file_is_one_object_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(UserError, match=r"a\.json: no such file"):
        read_json(path)
    path.write_text('{"a": 1}')
    assert read_json(path) == {"a": 1}
    with pytest.raises(UserError, match=r"a\.json: is larger than 5 bytes"):
        read_json(path, limit=5)
    path.write_text("[1]")
    with pytest.raises(UserError, match=r"a\.json: is not a JSON object"):
        read_json(path)
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"a\.json: is not valid JSON: is not UTF-8 at byte 1"):
        read_json(path)
