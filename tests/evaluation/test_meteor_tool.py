"""METEOR 1.5: its corpus score from counts, and a program that is checked rather than trusted.

The counts and scores are what METEOR 1.5 itself (`-l en -norm`) answered to these sentences.
"""

import hashlib
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from precis.evaluation.meteor import MeteorTool
from precis_text.errors import RunError, UserError

_PREDICTIONS = [
    "who burned the old mill ?",
    "where is the river ?",
    "",
    "how large is the big lake in the north ?",
]
_REFERENCES = [
    ["who set the old mill on fire ?", "which mill burned ?"],
    ["where is the river ?"],
    ["what is it ?"],
    ["how big is the northern lake ?"],
]
_COUNTS = [
    "6.0 8.0 3.0 4.0 2.0 2.0 3.0 3.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 1.0 1.0 0.0 1.0 4.0 6.0 7.0",
    "5.0 5.0 3.0 3.0 2.0 2.0 3.0 3.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 1.0 5.0 5.0",
    "0.0 4.0 0.0 4.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0",
    "10.0 7.0 5.0 3.0 3.0 3.0 3.0 3.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 1.0 1.0 1.0 0.0 6.0 8.0 7.0",
]
_SCORES = ["0.3350288618013228", "1.0", "0.0", "0.3764096833112636", "0.3708863754424267"]

_PROGRAM = """#!{python}
import sys
from pathlib import Path
counts, scores = {counts!r}, {scores!r}
log = open({log!r}, "w")
log.write(" ".join(sys.argv[1:]) + "\\n")
for line in sys.stdin:
    log.write(line)
    log.flush()
    if line.startswith("SCORE"):
        if not counts:
            sys.exit(3)
        print(counts.pop(0), flush=True)
    else:
        print("\\n".join(scores), flush=True)
"""


def tool(folder: Path, *, counts: list[str] = _COUNTS, scores: list[str] = _SCORES) -> MeteorTool:
    """A program that answers in place of `java`."""
    java, jar = folder / "java", folder / "meteor-1.5.jar"
    jar.write_bytes(b"a jar")
    java.write_text(
        _PROGRAM.format(python=sys.executable, counts=counts, scores=scores, log=str(folder / "log"))
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return MeteorTool(jar=jar, java=str(java))


def test_the_corpus_score_and_each_examples_are_the_programs_own(tmp_path: Path) -> None:
    found = tool(tmp_path)(_PREDICTIONS, _REFERENCES)
    assert found.score == pytest.approx(100 * float(_SCORES[-1]), abs=1e-10)
    assert found.examples == pytest.approx([100 * float(score) for score in _SCORES[:-1]], abs=1e-10)
    assert found.resampled(np.arange(4)) == found.score
    assert found.resampled(np.array([1, 1])) == pytest.approx(100)
    assert found.resampled(np.array([2])) == 0


def test_it_is_asked_as_the_papers_scripts_ask(tmp_path: Path) -> None:
    untidy = ["who burned\nthe old ||| mill ?", *_PREDICTIONS[1:]]
    tool(tmp_path)(untidy, _REFERENCES)
    arguments, first, *_, last = (tmp_path / "log").read_text().splitlines()
    assert arguments == f"-Xmx2G -jar {tmp_path}/meteor-1.5.jar - - -stdio -l en -norm"
    assert first == (
        "SCORE ||| who set the old mill on fire ? ||| which mill burned ? ||| who burned the old mill ?"
    )
    assert last == " ||| ".join(["EVAL", *_COUNTS])


def test_the_signature_names_the_program(tmp_path: Path) -> None:
    signature = tool(tmp_path).signature
    digest = hashlib.sha256(b"a jar").hexdigest()[:12]
    assert signature == f"meteor|java:meteor-1.5.jar|digest:{digest}|lang:en|norm:yes|refs:max"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"counts": _COUNTS[:2]}, "stopped before it answered"),
        ({"counts": ["0.5"] * 4}, "answers '0.5', which is not METEOR 1.5's 23 counts"),
        ({"counts": ["no number"] * 4}, "which is not METEOR 1.5's 23 counts"),
        ({"scores": [*_SCORES[:-1], "0.38"]}, "returns 0.38 for counts that give 0.3708.*; use METEOR 1.5"),
        ({"scores": _SCORES[:-1]}, "stopped before it answered"),
    ],
)
def test_a_program_that_is_not_meteor_is_found_out(
    change: dict[str, list[str]], says: str, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match=says):
        tool(tmp_path, **change)(_PREDICTIONS, _REFERENCES)


def test_a_missing_jar_and_a_missing_java_are_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.jar: no such file; pass METEOR's"):
        MeteorTool(jar=tmp_path / "none.jar")
    jar = tool(tmp_path).jar
    with pytest.raises(UserError, match=r"METEOR 1\.5 needs Java, and 'no-such-java' cannot be started"):
        MeteorTool(jar=jar, java="no-such-java")(["a"], [["b"]])
    with pytest.raises(UserError, match="at least one"):
        tool(tmp_path)([], [])
