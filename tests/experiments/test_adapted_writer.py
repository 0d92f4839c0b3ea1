"""The script that compares the adapted writer with the writer and the extract."""

from __future__ import annotations

import pytest

from experiments.scripts.adapted_writer import Scored, checked_again
from precis.data.pairs.pair import Pair

DOCUMENT = (
    "Ann sold three boats to Bob in March. The harbour of the town has a new light. It rained all week."
)


@pytest.mark.parametrize(
    ("text", "closeness", "written", "replaced"),
    [
        ("In March Ann sold boats to Bob.", 0.8, 1, 0),
        ("The harbour of the town sold three boats to Bob.", -1.0, 1, 0),
        ("The harbour of the town sold three boats to Bob.", 0.8, 0, 1),
        ("Ann sold three boats to Bob in March.", 1.0, 0, 0),
    ],
)
def test_recorded_summaries_are_checked_again(
    text: str, closeness: float, written: int, replaced: int
) -> None:
    row = Scored("boats", 3, Pair(document=DOCUMENT, summary="Boats."), words=12)
    (record,) = checked_again({("boats", 3): {"text": text}}, [row], closeness).values()
    assert (record["written"], record["replaced"]) == (written, replaced)
    assert (record["text"] == text) is (not replaced)
