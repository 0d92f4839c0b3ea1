"""Answers without content, such as "Sounds good." or "I'll do it.", with the statement that they agree to.

Such answers say nothing in minutes. The proposal is then the decision, and the task is the action.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from precis_text.forms.meeting_cues import Cues
from precis_text.forms.statements import Statement, plain

_TURNS = 4  # turns before an answer that may have its proposal
_STATEMENTS = 8  # statements before it


@dataclass(frozen=True)
class Assent:
    """An answer that makes a proposal a decision, or a task an action.

    Attributes:
        answer: the index of the answer.
        part: the part of the minutes to which the proposal or task belongs.
    """

    answer: int
    part: Literal["decisions", "actions"]


def assents_of(said: Sequence[Statement], known: Cues, *, taken: Collection[int] = ()) -> dict[int, Assent]:
    """Return the index of each proposal and task to which an answer without content agrees.

    "That is decided" refers to the last proposal of up to 4 turns before. "Sounds good" refers to the turn before, of
    another speaker. "I'll do it" refers to the last task.

    Args:
        taken: requests that are accepted, and their answers, which agree to nothing else.
    """
    found: dict[int, Assent] = {}
    for place, statement in enumerate(said):
        text = plain(statement)
        bare = known.undated(text) if known.promises.search(text) else text
        if place in taken or text.endswith("?") or not known.is_hollow(bare) or known.undecided.search(text):
            continue
        for meant in _before(said, place):
            assent = _assent(said, meant, place, known)
            if assent is not None:
                if meant not in taken:
                    found.setdefault(meant, assent)
                break
            if known.agrees.search(text) and known.decides(plain(said[meant])):
                break  # it agrees to what is decided already
        else:
            if known.decisions.search(text):
                found = _summed_up(said, place) | found
    return found


def _summed_up(said: Sequence[Statement], place: int) -> dict[int, Assent]:
    """Return what a speaker said two turns before, if that turn ended in a question ("..., Ruben?") to who agrees."""
    now = said[place]
    near = range(max(0, place - _STATEMENTS), place)
    turn = [at for at in near if (said[at].turn, said[at].speaker) == (now.turn - 2, now.speaker)]
    answers = [at for at in near if said[at].turn == now.turn - 1]
    told = [at for at in turn if not plain(said[at]).endswith("?")]
    is_asked = bool(turn) and turn[-1] not in told
    return {told[-1]: Assent(answers[0], "decisions")} if is_asked and told and answers else {}


def _assent(said: Sequence[Statement], meant: int, place: int, known: Cues) -> Assent | None:
    """Return how an answer agrees to a statement before it; None if it does not."""
    text, before = plain(said[place]), plain(said[meant])
    turns = said[place].turn - said[meant].turn
    if known.is_hollow(before):
        return None
    if known.promises.search(text):
        asks = known.tasks.search(before) and not known.idle.search(before)
        return Assent(place, "actions") if asks else None
    if not known.proposals.search(before):
        return None
    after = (each for each in said[place + 1 : place + 2] if each.turn == said[place].turn)
    doubts = (plain(each) for each in after if each.text.endswith("?"))
    is_reply = turns == 1 and said[place].speaker != said[meant].speaker
    is_reply = is_reply and not any(map(known.objects.search, doubts))
    if known.decisions.search(text) or (is_reply and known.agrees.search(text)):
        return Assent(place, "decisions")
    return None


def _before(said: Sequence[Statement], place: int) -> Iterator[int]:
    """Yield the places of the statements before an answer, the nearest first."""
    for other in range(place - 1, max(-1, place - 1 - _STATEMENTS), -1):
        if said[place].turn - said[other].turn > _TURNS:
            return
        yield other
