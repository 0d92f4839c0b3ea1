"""Nothing that is printed steers the terminal."""

import json
import unicodedata

from precis_text.terminal_text import escape_controls, escape_line, json_for_terminal

EVERY = "".join(map(chr, range(0x3000)))


def controls(text: str) -> set[str]:
    return {letter for letter in text if unicodedata.category(letter) == "Cc"}


def test_no_control_character_is_left_but_line_breaks_and_tabs() -> None:
    assert controls(escape_controls(EVERY)) == {"\n", "\t"}
    assert controls(escape_line(EVERY)) == set()
    assert escape_controls("a\x1b[2Jb\x9b2J\x07\r") == r"a\x1b[2Jb\x9b2J\x07\x0d"
    assert escape_line("a\nb") == r"a\nb"


def test_a_text_without_control_characters_stays_as_it_is() -> None:
    text = "Über 3 Träger.\n\tمرحبا \u200eабв"
    assert escape_controls(text) == text
    assert escape_controls("one\r\ntwo") == "one\ntwo"


def test_json_has_the_same_meaning() -> None:
    line = json.dumps({"a": EVERY}, ensure_ascii=False)
    assert not controls(json_for_terminal(line))
    assert json.loads(json_for_terminal(line)) == {"a": EVERY}
