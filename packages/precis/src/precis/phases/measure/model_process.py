"""A process of its own for each compared model, so that its speed and its memory are its own.

It summarizes the documents one at a time and appends each summary to a file of predictions, with these details:

seconds    from the document to its summary
opening    seconds to open the model; only the first summary of a process has it
memory     the most MiB of the process so far, with the libraries; without it for a server, which is another process
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from precis.data.pairs.pair import Pair
from precis.evaluation.predictions import PredictionWriter
from precis.phases.use.input_documents import Document
from precis.phases.use.summarization import Result
from precis.phases.use.summary_job import LocatedJob, SummaryJob
from precis.process import follow_parent, peak_mib
from precis_text.errors import RunError, UserError


@dataclass(frozen=True, kw_only=True)
class ModelTask:
    """The work of one process.

    Attributes:
        name: the model's name in the comparison.
        job: the model and its options.
        pairs: identifies the documents in the file; one each.
        file: the predictions.
        made_by: values that determine the predictions and their speed, JSON-ready.
        set_up: called first in the process: it limits threads and messages.
    """

    name: str
    job: SummaryJob
    documents: Sequence[Document]
    pairs: Sequence[Pair]
    file: Path
    made_by: Mapping[str, Any]
    set_up: Callable[[], None]


def summarize_in_process(task: ModelTask) -> Iterator[int]:
    """Run a task in a process of its own; yield the number of summaries that are done.

    Raises:
        UserError, RunError: the model failed, or the process died.
    """
    with _started(task) as (process, answers):
        while True:
            try:
                answer = answers.recv()
            except EOFError:
                process.join()
                raise RunError(
                    f"{task.name}: its process ended with code {process.exitcode}, perhaps for lack of memory; "
                    "repeat the command to resume, or leave the model out"
                ) from None
            if isinstance(answer, UserError | RunError):
                raise answer
            if answer is None:
                return
            yield answer


@contextmanager
def _started(task: ModelTask) -> Iterator[tuple[Any, Connection]]:
    """Start the process; end it with the body."""
    context = multiprocessing.get_context("spawn")  # forking a process with threads can hang
    answers, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(task, sender), daemon=True)
    process.start()
    sender.close()  # so that the end of the process ends the pipe
    try:
        yield process, answers
    finally:
        answers.close()
        process.terminate()
        process.join()


def _work(task: ModelTask, answers: Connection) -> None:
    """Do the task in this process, and send the number of summaries after each, then None or the error."""
    follow_parent()
    task.set_up()
    try:
        with PredictionWriter(task.file, task.pairs, made_by=task.made_by) as writer:
            _write(task, writer, answers)
        answers.send(None)
    except (UserError, RunError) as error:
        answers.send(
            type(error)(str(error)) if type(error) in (UserError, RunError) else UserError(str(error))
        )


def _write(task: ModelTask, writer: PredictionWriter, answers: Connection) -> None:
    start = time.perf_counter()
    located = task.job.locate_model()
    loaded = located.load(keep_going=True)
    details: dict[str, Any] = {"opening": time.perf_counter() - start}
    for document in task.documents[writer.done :]:
        start = time.perf_counter()
        try:
            (result,) = loaded.results([document])
        except UserError as error:
            raise UserError(f"{document.name}: {error}") from None
        details |= {"seconds": time.perf_counter() - start, **_memory(located), **_said(result)}
        read = result.summary
        writer.append(
            "" if read is None else read.text,
            document_tokens=0 if read is None else read.document_tokens,
            tokens_read=0 if read is None else read.tokens_read,
            details=details,
        )
        answers.send(writer.done)
        details = {}


def _said(result: Result) -> dict[str, Any]:
    """Return what the comparison needs of a result."""
    found = result.to_dict()
    names = ("error", "finished", "kept", "read", "mode", "sentences", "adapted")
    return {name: found[name] for name in names if name in found}


def _memory(located: LocatedJob) -> dict[str, float]:
    peak = None if located.model.is_endpoint else peak_mib()
    return {} if peak is None else {"memory": peak}
