"""Summarizes many documents with Ray Data, each exactly once, on one machine or several.

    read -> blocks of a few documents -> workers, a model each -> parts/*.parquet -> summaries.jsonl or .parquet

    OUT/settings.json           the settings of the summaries; a batch with other settings cannot resume here
    OUT/attempts                documents in work, and documents of workers that died
    OUT/parts, OUT/checkpoint   written by Ray: a part is committed with its ids, or removed on resuming
    OUT/summaries.*             all summaries, moved into place at once

Ray commits a part and its ids together. Committed ids are not read again.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet

from precis.batch.batch_worker import ROWS, Worker
from precis.batch.document_source import DocumentSource
from precis.messages import Notify, silent
from precis.phases.output_folders import writing_to
from precis.phases.use.input_documents import Reading
from precis.phases.use.summary_job import SummaryJob
from precis.storage.atomic import replacing, write_file
from precis.storage.settings_change import refuse_change
from precis_text.bounded_io import read_json, stat_or_none
from precis_text.cores import available_cores
from precis_text.errors import RunError, UserError, first_line
from precis_text.row import pluralize

SUMMARIES = ("summaries.jsonl", "summaries.parquet")
_SETTINGS = "settings.json"
_ADVICE = re.compile(r"\nFailed to .* attempts \(total backoff")
_SPARE = 6  # Ray's processors besides the workers': without them reading, filtering and writing wait forever


@dataclass(frozen=True, kw_only=True)
class BatchRun:
    """A batch of documents to summarize.

    Attributes:
        files: the result of `source.files_of`.
        out: a folder for this batch only; all machines see it under this name.
        summaries: one of `SUMMARIES`, in `out`.
        workers: models at a time, each on a processor or a GPU; if None, one for each.
        address: address of a Ray cluster; if None, this machine.
        rows: documents that are committed together.
    """

    files: Sequence[str]
    out: Path
    job: SummaryJob
    how: Reading = field(default_factory=Reading)
    summaries: str = SUMMARIES[0]
    workers: int | None = None
    address: str | None = None
    rows: int = 32

    def run(self, on_progress: Callable[[int], object] = lambda _: None, notify: Notify = silent) -> Path:
        """Summarize the remaining documents; return the file of all summaries.

        Args:
            on_progress: called now and then with the number of finished documents.
            notify: receives the number of documents that an interrupted command finished, if any.

        Raises:
            UserError: the folder is in use for something else, or the batch was started with other settings.
            RunError: the cluster failed. The same batch resumes where it stopped.
        """
        out = self.out.absolute()
        with writing_to(out, doing="summarizing to"):
            _agree(out / _SETTINGS, json.loads(json.dumps(self.job.locate_model().made_by())))
            done = out / self.summaries
            other = next((name for name in SUMMARIES if name != done.name and stat_or_none(out / name)), None)
            if other is not None:
                raise UserError(f"{out / other} already exists; name another folder with --out")
            if stat_or_none(done) is None:
                (out / "attempts").mkdir(exist_ok=True)
                if before := _committed(out / "checkpoint"):
                    notify(f"{self.out}: resumes; {pluralize(before, 'document')} done before")
                with _cluster(self), _counting(out / "parts", on_progress):
                    _summarize(self, out)
                _assemble(out / "parts", done)
            for left in ("parts", "checkpoint", "attempts"):
                shutil.rmtree(out / left, ignore_errors=True)
        return done


def _agree(file: Path, made_by: dict[str, Any]) -> None:
    if stat_or_none(file) is None:
        write_file(file, json.dumps(made_by, indent=2) + "\n")
    remedy = "resume with the same setting, or name another folder with --out"
    refuse_change(file.parent, read_json(file), made_by, remedy=remedy)


@contextmanager
def _cluster(batch: BatchRun) -> Iterator[None]:
    """Start Ray on this machine, or connect to a cluster; disable Ray's usage reports."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if batch.address is not None:
        _refuse_unreachable(batch.address)
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors that a user can fix raise an exception
    os.environ.setdefault("RAY_worker_niceness", "0")  # with Ray's 15, workers wait for all other work
    import ray
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    _keep_token_private(is_ours=batch.address is None)
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    workers = batch.workers or available_cores()
    here = {"address": "local", "num_cpus": workers + _SPARE, "include_dashboard": False}
    how = {**quiet, **(here if batch.address is None else {"address": batch.address})}
    with _to_the_end(lambda: _quietly(partial(ray.init, **how)), ray.shutdown) as started:
        try:
            with _signals_kept():
                started.result()
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UserError(
                f"--address {batch.address or 'local'}: Ray does not start: {first_line(error)}"
            ) from None
        yield


@contextmanager
def _to_the_end(start: Callable[[], object], end: Callable[[], object]) -> Iterator[Future[object]]:
    """Call `start` in a thread that lives until `end`, which waits for the end of `start` even if a signal came.

    What Ray has half started, its shutdown would leave behind. Its processes end with the thread that started them.
    """
    with ThreadPoolExecutor(1) as thread:
        started = thread.submit(start)
        try:
            yield started
        finally:
            wait([started])
            end()


def _keep_token_private(*, is_ours: bool) -> None:
    """Hide the token in the home folder with which Ray lets programs in: a reader of it can run code.

    Args:
        is_ours: Ray is to start on this machine, so a missing token is made. Others could read one that Ray makes.
    """
    with suppress(OSError, RuntimeError):  # it is somebody else's, or there is no home
        token = Path.home() / ".ray" / "auth_token"
        token.parent.mkdir(mode=0o700, exist_ok=True)
        with NamedTemporaryFile("w", dir=token.parent) as made, suppress(FileExistsError):
            made.write(secrets.token_hex(32))
            made.flush()
            if is_ours:
                os.link(made.name, token)  # whole at once, and for one of two that start together
        token.chmod(0o600)


def _refuse_unreachable(address: str) -> None:
    """Refuse a machine that does not answer; Ray would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except (OSError, OverflowError) as error:
            raise UserError(
                f"--address {address}: no cluster answers there ({error}); start one with ray start --head, or correct "
                "the address"
            ) from None


def _quietly(start: Callable[[], object]) -> None:
    """Call `start` without standard error, also for Ray's C++ library, which prints its log level."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        start()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Take SIGTERM back from Ray, whose C++ library ends the process by it with a stack trace."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():  # elsewhere nobody may set one
            signal.signal(signal.SIGTERM, handler)


def _summarize(batch: BatchRun, out: Path) -> None:
    import ray
    from ray.data.checkpoint import CheckpointConfig

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # Kept to the end: otherwise a kill between the last part and the final file would restart all work.
    checkpoint = CheckpointConfig("id", str(out / "checkpoint"), delete_checkpoint_on_success=False)
    checkpoint.checkpoint_actor_memory_bytes = 64 << 20
    checkpoint.checkpoint_actor_pool_max_size = 2
    context.checkpoint_config = checkpoint
    on_gpu = (batch.job.device or "").startswith("cuda")
    pool = ray.data.ActorPoolStrategy(min_size=1, max_size=_most_workers(batch, on_gpu=on_gpu))
    source = DocumentSource(batch.files, batch.how)
    # With fewer tasks than Ray prefers, it would split their blocks into single documents.
    read = ray.data.read_datasource(source, override_num_blocks=len(source.get_read_tasks(1)))
    made = read.repartition(target_num_rows_per_block=batch.rows).map_batches(
        Worker,
        fn_constructor_args=(batch.job, out / "attempts", uuid.uuid4().hex),
        batch_size=None,
        batch_format="pyarrow",
        compute=pool,
        **({"num_gpus": 1} if on_gpu else {"num_cpus": 1}),
    )
    try:
        made.write_parquet(str(out / "parts"))
    except (ray.exceptions.RayError, OSError, ValueError) as error:
        raise RunError(f"{batch.out}: {_cause(error)}; repeat the command to resume") from error


def _most_workers(batch: BatchRun, *, on_gpu: bool) -> int:
    import ray

    if batch.workers is not None:
        return batch.workers
    there = ray.cluster_resources().get("GPU" if on_gpu else "CPU", 1)
    return max(1, int(there) - (0 if on_gpu else _SPARE))


def _cause(error: BaseException) -> str:
    """Return the last line of the deepest error; Ray wraps it in the worker's traceback and its own advice."""
    text = _ADVICE.split(str(getattr(error, "cause", None) or error))[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _committed(checkpoint: Path) -> int:
    """Count the documents that Ray will not read again; what is pending it removes."""
    files = (file for file in checkpoint.glob("*.parquet") if not file.name.endswith(".pending.parquet"))
    return sum(parquet.read_metadata(file).num_rows for file in files)


@contextmanager
def _counting(parts: Path, on_progress: Callable[[int], object]) -> Iterator[None]:
    """Report every second the number of documents in the parts; open each part once."""
    known: dict[Path, int] = {}
    ended = threading.Event()

    def count() -> None:
        while not ended.wait(1):
            for part in {*parts.glob("*.parquet")} - known.keys():
                with suppress(OSError, arrow.ArrowInvalid):  # Ray is still writing it
                    known[part] = parquet.read_metadata(part).num_rows
            on_progress(sum(known.values()))

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _assemble(parts: Path, place: Path) -> None:
    """Merge the rows of all parts into one file, each id once."""
    seen: set[str] = set()
    with replacing(place) as file:
        writer = parquet.ParquetWriter(file, ROWS) if place.suffix == ".parquet" else None
        for part in sorted(parts.glob("*.parquet")):
            table = parquet.read_table(part).cast(ROWS)
            # A machine that died while writing may have left the same rows twice.
            new = [number for number, name in enumerate(table["id"].to_pylist()) if name not in seen]
            table = table.take(arrow.array(new, arrow.int64()))  # typed, since all rows may be there already
            seen.update(table["id"].to_pylist())
            if writer is not None:
                writer.write_table(table)
            else:
                file.writelines(_line(row) for row in table.select(["id", "status", "record"]).to_pylist())
        if writer is not None:
            writer.close()


def _line(row: dict[str, str]) -> bytes:
    found = json.loads(row["record"])
    # `id` is that of the document in the batch
    own = {("row_id" if name == "id" else name): value for name, value in found.items()}
    return json.dumps({"id": row["id"], "status": row["status"], **own}, ensure_ascii=False).encode() + b"\n"
