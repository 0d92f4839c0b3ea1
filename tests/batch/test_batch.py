"""What goes in comes out once: ids, rows that fail, parts that come together, what is refused. No Ray is started."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Self

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from precis.batch.batch_run import SUMMARIES, BatchRun, _assemble, _cause, _keep_token_private, _signals_kept
from precis.batch.batch_worker import ROWS, TRIES, Attempts, Worker, results_of
from precis.batch.document_source import DocumentSource, documents_of, files_of, packed, unpacked
from precis.batch.summaries_check import verify
from precis.cli import main
from precis.messages import silent
from precis.phases.use.input_documents import Document, Reading, read_documents
from precis.phases.use.summarization import Result
from precis.phases.use.summary_job import LoadedJob, SummaryJob
from precis_text.errors import UserError
from precis_text.length import make_length
from tests.document_files import epub
from tests.tiny_models import save, save_llama

TEXT = "Ann sings in the hall on Monday. Bob listens to her. They go home late."
HOW = Reading(keep_going=True)


@pytest.fixture
def shelf(tmp_path: Path) -> list[str]:
    rows = [{"document": f"{TEXT} {number}", "id": f"r{number}", "more": number} for number in range(20)]
    lines = [json.dumps(row) for row in rows] + ['{"document": ""}', "["]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(f"{TEXT} 3")
    (tmp_path / "in" / "b.epub").write_bytes(epub({"a.xhtml": "<h1>Mill</h1><p>Ann sings.</p>"}))
    (tmp_path / "in" / "c.pdf").write_bytes(b"%PDF-1.4 broken")
    parquet.write_table(arrow.table({"document": ["Ann sings."]}), tmp_path / "in" / "d.parquet")
    return files_of([str(tmp_path / "rows.jsonl"), str(tmp_path / "in")], recursive=False, notify=silent)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> SummaryJob:
    model = save("zcodepp", tmp_path_factory.mktemp("models") / "tiny")
    return SummaryJob(model=str(model), length=make_length(words=5), writing={"beams": 1})


def blocks(shelf: list[str]) -> list[arrow.Table]:
    tasks = DocumentSource(shelf, HOW).get_read_tasks(1)
    return [block for task in tasks for block in task()]


def test_every_document_is_a_row_with_an_id_of_its_own(shelf: list[str]) -> None:
    found = blocks(shelf)
    ids = [name for block in found for name in block["id"].to_pylist()]
    assert len(ids) == len(set(ids)) == 26
    assert max(block.num_rows for block in found) == 22
    documents = [unpacked(text) for block in found for text in block["document"].to_pylist()]
    assert sum(bool(document.problem) for document in documents) == 3
    assert ids == [name for block in blocks(shelf) for name in block["id"].to_pylist()]


def test_an_id_changes_with_the_text_and_the_place(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"document": "one"}\n{"document": "one"}\n')
    first, second = (name for name, _ in documents_of(str(file), HOW))
    assert first != second
    file.write_text('{"document": "two"}\n{"document": "one"}\n')
    changed, same = (name for name, _ in documents_of(str(file), HOW))
    assert (changed != first, same) == (True, second)


@pytest.mark.long
def test_a_file_that_is_damaged_in_the_middle_gives_its_rows_and_then_an_error(tmp_path: Path) -> None:
    import gzip

    file = tmp_path / "a.jsonl.gz"
    lines = "".join(json.dumps({"document": f"{number} " * 50}) + "\n" for number in range(20_000))
    file.write_bytes(gzip.compress(lines.encode())[:-2000])
    found = [document for _, document in documents_of(str(file), HOW)]
    assert not found[0].problem
    assert "truncated or damaged" in found[-1].problem
    assert sum(bool(document.problem) for document in found) == 1


@pytest.mark.parametrize("target", ["nowhere", "a.txt"])
def test_a_link_that_leads_nowhere_is_a_row_with_an_error_and_the_others_continue(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").symlink_to(target)  # the first file, which the command reads early
    (tmp_path / "b.txt").write_text(TEXT)
    files = files_of([str(tmp_path)], recursive=True, notify=silent)
    documents = [unpacked(row) for block in blocks(files) for row in block["document"].to_pylist()]
    assert [bool(document.problem) for document in documents] == [True, False]
    started: list[BatchRun] = []
    monkeypatch.setattr("precis.batch.batch_run.BatchRun.run", lambda batch, *_: started.append(batch))
    assert main(["batch", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert started


def test_the_cause_of_a_failure_is_not_the_advice_of_ray() -> None:
    advice = (
        "Failed to read x after 1/1 attempts (total backoff 0.0s).\nTo change retry attempts, configure `x`."
    )
    assert _cause(OSError(f"Traceback\nOSError: the disk is full\n{advice}")) == "OSError: the disk is full"


def test_a_document_travels_with_its_places(shelf: list[str]) -> None:
    (document,) = read_documents([shelf[2]])
    assert unpacked(packed(document)) == document
    assert document.passages.at(document.text.index("Ann")).heading == "Mill"


def test_files_of_a_folder_that_are_not_read_are_named(tmp_path: Path) -> None:
    for name in ("a.txt", "b.jsonl", "c.xyz"):
        (tmp_path / name).write_text(TEXT)
    told: list[str] = []
    found = files_of([str(tmp_path)], recursive=False, notify=told.append)
    assert [Path(file).name for file in found] == ["a.txt", "b.jsonl"]
    assert told == [f"{tmp_path}: 1 file not read: c.xyz"]


def test_missing_empty_and_repeated_places_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "empty").mkdir()
    for places, message in (
        (["-"], "a batch reads files"),
        (["no.txt"], "does not exist; a batch reads files"),
        (["empty"], "no document"),
        (["a.txt", "."], "is named twice"),
    ):
        with pytest.raises(UserError, match=message):
            files_of(
                [place if place == "-" else str(tmp_path / place) for place in places],
                recursive=False,
                notify=silent,
            )


def test_a_worker_gives_the_summaries_of_the_command_and_a_status(
    shelf: list[str], job: SummaryJob, precis_summaries: dict[str, str], tmp_path: Path
) -> None:
    worker = Worker(job, tmp_path, "now")
    rows = [row for block in blocks(shelf) for row in worker(block).to_pylist()]
    assert {row["name"]: row["summary"] for row in rows} == precis_summaries
    assert {row["status"] for row in rows if row["error"]} == {"error"}
    assert sum(row["status"] == "error" for row in rows) == 3
    assert json.loads(rows[0]["record"])["row"] == {"more": 0}


@pytest.mark.long
def test_a_worker_with_a_writer_gives_the_summaries_of_the_command(shelf: list[str], tmp_path: Path) -> None:
    model = save_llama(tmp_path / "llama")
    job = SummaryJob(model=str(model), length=make_length(words=12))
    worker = Worker(job, tmp_path, "now")
    block, *_ = blocks(shelf)
    rows = worker(block.slice(0, 3)).to_pylist()
    documents = [unpacked(packed_) for packed_ in block["document"].to_pylist()[:3]]
    alone = [*job.locate_model().load(keep_going=True).results(documents)]
    assert [row["summary"] for row in rows] == [each.to_dict()["summary"] for each in alone]
    for row in rows:
        assert row["status"] == "ok"
        assert 0 < row["words"] <= 12
        sentences = json.loads(row["record"])["sentences"]
        assert {each["origin"] for each in sentences} <= {"written", "quoted"}
        assert " ".join(each["text"] for each in sentences) == row["summary"]


class Deadly:
    """A model whose process ends at a document; it notes what it was given."""

    def __init__(self, told: Path) -> None:
        self.told = told

    def locate_model(self) -> Self:
        return self

    def load(self, *, keep_going: bool) -> LoadedJob:
        assert keep_going
        return LoadedJob(self, 64)

    def __call__(self, documents: Sequence[Document]) -> Iterator[Result]:
        names = [document.name[-2:] for document in documents]
        with self.told.open("a") as file:
            file.write(" ".join(names) + "\n")
        if "r2" in names:
            os._exit(9)
        return (Result(document, None) for document in documents)


def test_a_document_whose_worker_dies_is_taken_alone_and_given_up_in_the_end(
    shelf: list[str], tmp_path: Path
) -> None:
    block, attempts = blocks(shelf)[0].slice(0, 4), tmp_path / "attempts"
    attempts.mkdir()
    worker = Worker(Deadly(tmp_path / "told"), attempts, "now")  # type: ignore[arg-type]
    deaths = 0
    while (child := os.fork()) and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        deaths += 1
        assert deaths < 9
    if not child:
        worker(block)
        os._exit(0)
    assert deaths == 1 + TRIES
    alone = ["r0", "r1", "r3"]
    assert (tmp_path / "told").read_text().splitlines()[:4] == ["r0 r1 r2 r3", "r0", "r1", "r2"]
    rows = worker(block).to_pylist()
    assert (tmp_path / "told").read_text().splitlines()[-3:] == alone
    assert [row["name"][-2:] for row in rows if row["status"] == "failed"] == ["r2"]
    assert "died 3 times" in rows[2]["error"]
    assert [row["id"] for row in rows] == block["id"].to_pylist()


def test_workers_that_died_with_earlier_commands_give_no_document_up(
    shelf: list[str], tmp_path: Path
) -> None:
    block, attempts = blocks(shelf)[0].slice(0, 2), tmp_path / "attempts"
    attempts.mkdir()
    first, _ = block["id"].to_pylist()
    for number in range(TRIES + 1):
        with Attempts(attempts, str(number)).at([first]):
            (left,) = attempts.glob(f"{number}-*.json")
            kept = left.read_bytes()
        left.write_bytes(kept)  # as a kill leaves it
    worker = Worker(Deadly(tmp_path / "told"), attempts, "now")  # type: ignore[arg-type]
    rows = worker(block).to_pylist()
    assert "failed" not in [row["status"] for row in rows]
    assert (tmp_path / "told").read_text().splitlines() == ["r1", "r0"]  # the suspected one alone, and last
    assert Attempts(attempts, "0").deaths() == ({first}, {first: 1})


@pytest.fixture
def precis_summaries(shelf: list[str], job: SummaryJob, tmp_path: Path) -> dict[str, str | None]:
    from precis.cli import main

    out = tmp_path / "summaries.jsonl"
    length = ["--words", "5", "--beams", "1", "--keep-going"]
    assert main(["summarize", *shelf, "--model", str(job.model), "--out", str(out), *length]) == 1
    rows = map(json.loads, out.read_text().splitlines())
    return {row["name"]: row.get("summary") for row in rows}


def test_one_document_that_cannot_be_summarized_does_not_end_the_others() -> None:
    def make(documents: Iterable[Document]) -> Iterator[Result]:
        for document in documents:
            if document.name == "1":
                raise UserError("the summaries of its pieces are as long as the document")
            yield Result(document, None)

    found = results_of(make, [Document(str(number), "x") for number in range(3)])
    assert [result.document.name for result, _ in found] == ["0", "1", "2"]
    assert "pieces" in found[1][1]


def part(folder: Path, name: str, ids: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    row = dict.fromkeys(ROWS.names)
    record = json.dumps({"name": "n", "id": "own", "summary": "über"})
    rows = [{**row, "id": one, "name": one, "status": "ok", "record": record} for one in ids]
    parquet.write_table(arrow.Table.from_pylist(rows, ROWS), folder / name)


@pytest.mark.parametrize("name", SUMMARIES)
def test_an_id_that_two_parts_have_is_written_once(name: str, tmp_path: Path) -> None:
    for number, ids in enumerate((["a", "b"], ["b", "c"], ["b", "a"], ["d"])):
        part(tmp_path / "parts", f"{number}.parquet", ids)
    _assemble(tmp_path / "parts", tmp_path / name)
    if name.endswith("parquet"):
        assert parquet.read_table(tmp_path / name)["id"].to_pylist() == ["a", "b", "c", "d"]
        return
    rows = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
    assert rows[0] == {"id": "a", "status": "ok", "name": "n", "row_id": "own", "summary": "über"}
    assert len(rows) == 4


def test_verifying_names_what_is_missing_strange_twice_and_equal(shelf: list[str], tmp_path: Path) -> None:
    ids = [name for file in shelf for name, _ in documents_of(file, HOW)]
    part(tmp_path / "parts", "a.parquet", ids)
    good = verify(tmp_path / "parts" / "a.parquet", shelf, HOW)
    assert (good.problem(), good.documents) == ("", 26)
    assert [[Path(name).name for name in pair] for pair in good.same] == [["rows.jsonl: r3", "a.txt"]]
    part(tmp_path / "parts", "b.parquet", [*ids[1:], ids[5], "other"])
    bad = verify(tmp_path / "parts" / "b.parquet", shelf, HOW)
    assert bad.problem()
    assert (bad.missing, bad.strange, bad.twice) == ([f"{shelf[0]}: r0"], ["other"], [ids[5]])


def test_a_batch_of_other_settings_and_a_finished_one_of_another_format_are_refused(
    shelf: list[str], job: SummaryJob, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    batch = BatchRun(files=shelf, out=out, job=job)
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match=r"contains thesis\.txt"):
        batch.run()
    (out / "thesis.txt").unlink()
    (out / "summaries.jsonl").write_text("")
    (out / "summaries.jsonl").rename(out / "kept")
    (out / "kept").unlink()
    (out / "lock").write_text("1 host\n")
    (out / "settings.json").write_text('{"words": 9}')
    with pytest.raises(UserError, match=r"was started with.*, now "):
        batch.run()
    (out / "settings.json").unlink()
    (out / "summaries.parquet").write_text("")
    with pytest.raises(UserError, match=r"summaries\.parquet already exists"):
        batch.run()


def test_a_batch_that_resumes_says_how_many_documents_are_done(
    shelf: list[str],
    job: SummaryJob,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What Ray has committed counts; a part whose ids are pending is made again."""
    monkeypatch.setattr("precis.batch.batch_run._cluster", lambda _: nullcontext())

    def killed(_: BatchRun, out: Path) -> None:
        for name, ids in (("1.parquet", ["a", "b"]), ("2.parquet", ["c"]), ("3.pending.parquet", ["d"])):
            part(out / "checkpoint", name, ids)
        raise KeyboardInterrupt

    monkeypatch.setattr("precis.batch.batch_run._summarize", killed)
    command = ["batch", *shelf, "--out", str(tmp_path / "out"), "--model", str(job.model), "--words", "5"]
    assert main(command) == 130
    assert "done before" not in capsys.readouterr().err
    assert main(command) == 130
    assert f"{tmp_path / 'out'}: resumes; 3 documents done before\n" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_an_address_where_no_cluster_is_is_refused_at_once(
    address: str, shelf: list[str], job: SummaryJob, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=f"--address {address}: no cluster answers there"):
        BatchRun(files=shelf, out=tmp_path / "out", job=job, address=address).run()


def test_nobody_else_may_read_the_token_of_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    _keep_token_private(is_ours=False)
    token = tmp_path / ".ray" / "auth_token"
    assert token.parent.stat().st_mode & 0o777 == 0o700
    token.write_text("secret")
    token.chmod(0o644)
    _keep_token_private(is_ours=True)
    assert token.stat().st_mode & 0o777 == 0o600
    assert token.read_text() == "secret"


def test_the_token_of_a_ray_on_this_machine_is_private_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Path, "chmod", lambda self, mode: None)
    (tmp_path / ".ray").mkdir(mode=0o755)
    _keep_token_private(is_ours=False)
    assert not any((tmp_path / ".ray").iterdir()), "a cluster has a token of its own"
    _keep_token_private(is_ours=True)
    (token,) = (tmp_path / ".ray").iterdir()
    assert token.name == "auth_token"
    assert token.stat().st_mode & 0o777 == 0o600
    assert len(token.read_text()) == 64


def test_the_handler_of_sigterm_is_ours_again_after_ray_has_set_one() -> None:
    ours = signal.getsignal(signal.SIGTERM)
    with _signals_kept():
        signal.signal(signal.SIGTERM, lambda *_: None)
    assert signal.getsignal(signal.SIGTERM) is ours


def test_a_finished_batch_does_not_say_that_new_documents_have_rows(
    shelf: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("precis.batch.batch_run.BatchRun.run", lambda self, *_: self.out / self.summaries)
    (tmp_path / "out").mkdir()
    assert main(["batch", *shelf, "--out", str(tmp_path / "out")]) == 0
    assert "every document has a row" in capsys.readouterr().err
    (tmp_path / "out" / "summaries.jsonl").write_text("")
    assert main(["batch", *shelf, "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().err
    assert "every document has a row" not in told
    assert "documents added since then are not in it" in told
