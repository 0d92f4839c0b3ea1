"""Settings survive JSON, and a typing error never becomes a silent default."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from precis_text.config import Settings
from precis_text.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Small(Settings):
    size: int = 1


@dataclass(frozen=True, kw_only=True)
class Large(Settings):
    size: int = 9
    label: str = "x"


@dataclass(frozen=True, kw_only=True)
class Outer(Settings):
    choice: Small | Large = Small()
    plain: Small = Small()
    lengths: tuple[int, ...] = (1, 2)
    name: str | None = None


@pytest.mark.parametrize("value", [Outer(), Outer(choice=Large(label="y"), lengths=(), name="n")])
def test_json_round_trip(value: Outer) -> None:
    assert Outer.from_dict(json.loads(json.dumps(value.to_dict()))) == value


def test_a_choice_keeps_its_type_under_type() -> None:
    assert Outer(choice=Large()).to_dict()["choice"] == {"type": "Large", "size": 9, "label": "x"}


def test_unknown_keys_are_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"does not have a setting 'lenghts'; did you mean 'lengths'\?"):
        Outer.from_dict({"lenghts": [1]})


def test_unknown_choices_are_refused_with_what_is_known() -> None:
    with pytest.raises(UserError, match=r"unknown type 'Huge'; known: Large, Small"):
        Outer.from_dict({"choice": {"type": "Huge"}})


def test_lists_of_lists_come_back_as_tuples() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Shape(Settings):
        changes: tuple[tuple[str, float], ...] = ()

    shape = Shape(changes=(("dropout", 0.0), ("rows", 2)))
    assert Shape.from_dict(json.loads(json.dumps(shape.to_dict()))) == shape


def test_a_question_ends_its_message_wherever_names_are_suggested() -> None:
    """`nearest` and `suggest` end in a question mark, which no semicolon may follow."""
    calls = re.compile(r"\{(?:nearest|meant|_meant)\([^{}]*\)\};")
    sources = Path(__file__).parents[2].glob("packages/*/src/**/*.py")
    assert {path.name: found for path in sources if (found := calls.findall(path.read_text("utf-8")))} == {}
