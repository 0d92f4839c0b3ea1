"""Verdicts on disk: nothing acknowledged is lost, whenever the process is killed."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from precis.storage.locks import HeldError
from precis_judge.judging_study import open_study
from precis_judge.verdicts import VerdictStore, read_verdicts
from precis_text.errors import RunError, UserError
from tests.judge.studies import lines, study_in

KEYS = ("faithfulness", "relevance", "grammaticality", "coherence", "overall")
_WRITER = """
import sys
from collections.abc import Callable
from pathlib import Path
from precis_judge.judging_study import open_study
from precis_judge.verdicts import VerdictStore
study = open_study(Path(sys.argv[1]))
with VerdictStore.opened(study) as store:
    for number in range(store.next_page("Ann"), len(study.layout.pages["Ann"])):
        choices = dict.fromkeys(study.protocol.keys, "left")
        store.add({"judge": "Ann", "page": number, "choices": choices, "reasons": {"overall": "x" * 1500}})
        print(number, flush=True)
"""


def verdict(page: int, choice: str = "left", **more: object) -> dict:
    return {"judge": "Ann", "page": page, "choices": dict.fromkeys(KEYS, choice), "reasons": {}, **more}


def test_no_acknowledged_verdict_is_lost_by_sigkill(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study", documents=400, judges=("Ann",))
    rng = random.Random(0)
    done = -1
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, study.folder], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        until = done + rng.randrange(1, 60)
        for line in writer.stdout:
            done = int(line)
            if done >= until:
                break
        writer.kill()
        done = max([done, *map(int, writer.stdout.read().split())])  # acknowledged before the kill reached it
        writer.wait()
        writer.stdout.close()
        kept = read_verdicts(study)
        assert [page for _, page in sorted(kept)] == list(range(len(kept)))
        assert done < len(kept) <= done + 2
        done = len(kept) - 1
    assert done > 5


def test_a_torn_line_is_left_out_and_cut_off_before_going_on(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    with VerdictStore.opened(study) as store:
        store.add(verdict(0))
    file = study.folder / "verdicts.jsonl"
    with file.open("a") as out:
        out.write('{"judge": "Ann", "pa')
    assert len(read_verdicts(study)) == 1
    with VerdictStore.opened(study) as store:
        assert store.next_page("Ann") == 1
        store.add(verdict(1))
    assert [one["page"] for one in lines(file)] == [0, 1]


def test_one_process_collects_at_a_time(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    with VerdictStore.opened(study):
        other = subprocess.run(
            [sys.executable, "-c", _WRITER, study.folder], capture_output=True, text=True, check=False
        )
    assert HeldError.__name__ in other.stderr
    assert "another process is collecting" in other.stderr


def test_the_last_verdict_on_a_page_counts(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    with VerdictStore.opened(study) as store:
        store.add(verdict(0, "left"))
        store.add(verdict(0, "same"))
    assert read_verdicts(study)["Ann", 0].choices["overall"] == "same"


def test_a_choice_of_a_side_is_a_choice_of_the_summary_that_stood_there(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study", repeats=0, gold=0)
    with VerdictStore.opened(study) as store:
        for number, page in enumerate(study.layout.pages["Ann"]):
            kept = store.add(verdict(number, "left"))
            first = study.documents[study.layout.items[page.item].document].summaries["first"]
            assert (study.shown(page)[1] == first) == (kept.first_won(study, "overall") == 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"judge": "Zoe"}, "unknown judge"),
        ({"page": 99}, "unknown page"),
        ({"page": True}, "unknown page"),
        ({"choices": {"overall": "left"}}, "a side for each criterion"),
        ({"choices": dict.fromkeys(KEYS, "up")}, "one of left, right, same"),
        ({"reasons": {"speed": "fast"}}, "a reason must belong to a criterion"),
        ({"reasons": {"overall": "x" * 2001}}, "at most 2,000 characters"),
        ({"reasons": {"overall": "\ud800"}}, "lone surrogate"),
        ({"seconds": -1}, "seconds must be a number"),
    ],
)
def test_what_is_no_verdict_of_the_study_is_refused_and_not_kept(
    wrong: dict, message: str, tmp_path: Path
) -> None:
    study = study_in(tmp_path / "study")
    with VerdictStore.opened(study) as store, pytest.raises(UserError, match=message):
        store.add({**verdict(0), **wrong})
    assert lines(study.folder / "verdicts.jsonl") == []


def test_a_changed_study_is_refused(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    items = study.folder / "items.jsonl"
    items.write_text(items.read_text().replace('"second"', '"SECOND"', 1))
    with pytest.raises(UserError, match=r"items\.jsonl has changed"):
        open_study(study.folder)


def test_a_study_comes_back_from_the_disk_as_it_was(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study", asked="discourse")
    again = open_study(study.folder)
    assert (again.protocol, again.design, again.systems) == (study.protocol, study.design, study.systems)
    assert (again.documents, again.layout) == (study.documents, study.layout)


def test_a_study_with_verdicts_is_never_made_anew(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    assert study.links
    study_in(tmp_path / "study", seed=5)
    with VerdictStore.opened(study) as store:
        store.add(verdict(0))
    with pytest.raises(UserError, match="already has verdicts"):
        study_in(tmp_path / "study")
    assert len(lines(study.folder / "verdicts.jsonl")) == 1


def test_links_are_kept_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    links = study.links
    assert open_study(study.folder).links == links
    assert (study.folder / "links.json").stat().st_mode & 0o777 == 0o600
    (study.folder / "links.json").write_text(json.dumps({"Ann": "a" * 20}))
    with pytest.raises(UserError, match="delete it"):
        _ = open_study(study.folder).links


def replaced(path: Path) -> None:
    """Put a copy in its place, as file synchronizers and editors do."""
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


@pytest.mark.parametrize("change", [replaced, Path.unlink])
def test_no_verdict_is_acknowledged_after_its_file_was_replaced_or_deleted(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    study = study_in(tmp_path / "study")
    file = study.folder / "verdicts.jsonl"
    with pytest.raises(RunError, match="was replaced or deleted"), VerdictStore.opened(study) as store:
        _two_around(store, lambda: change(file))
    file.unlink(missing_ok=True)
    next(study.folder.glob("verdicts.jsonl.kept-*")).rename(file)
    with VerdictStore.opened(study) as store:
        assert store.next_page("Ann") == 1
        store.add(verdict(1))
    assert [one["page"] for one in lines(file)] == [0, 1]


def _two_around(store: VerdictStore, change: Callable[[], object]) -> None:
    """Add a verdict, change the file, and try another one."""
    store.add(verdict(0))
    change()
    with pytest.raises(RunError, match="its 1 records are in"):
        store.add(verdict(1))
    assert store.next_page("Ann") == 1


def test_verdicts_of_another_study_are_refused(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    with VerdictStore.opened(study) as store:
        store.add(verdict(0))
    other = study_in(tmp_path / "other", seed=5)
    shutil.copy(study.folder / "verdicts.jsonl", other.folder)
    with pytest.raises(UserError, match=r"verdicts\.jsonl was started with study='\w+', now '\w+'; restore"):
        read_verdicts(other)
    with pytest.raises(UserError, match="was started with study="), VerdictStore.opened(other):
        pass


def test_a_changed_verdict_is_named(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    with VerdictStore.opened(study) as store:
        store.add(verdict(0, "left"))
    file = study.folder / "verdicts.jsonl"
    file.write_text(file.read_text().replace("left", "same"))
    with pytest.raises(UserError, match=r"verdicts\.jsonl, line 2: has changed since it was written"):
        read_verdicts(study)
