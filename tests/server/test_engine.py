"""Which documents are worked on together, and what becomes of those that get no summary."""

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import pytest

from precis.generation.model_metadata import Mode
from precis.generation.summarizer import NOTHING
from precis.generation.summary import Summary
from precis.messages import OnPartial, OnProgress
from precis.server.engine import MODEL_THREAD, Ask, Engine, QueuedDocument
from precis.server.limits import ApiError, Limits
from precis.server.metrics import Metrics
from precis_text.documents.passages import NOWHERE, Passages, Place
from precis_text.errors import UserError
from precis_text.length import make_length


class Counting(Metrics):
    """Counters that write down why documents have no summary."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []

    def dropped(self, reason: str) -> None:
        self.reasons.append(reason)


class Recorder:
    """A summarizer that writes down the lengths of its batches; the first batch waits until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = threading.Event()

    def make(
        self, texts: Sequence[Any], ask: Ask, on_progress: OnProgress, on_partial: OnPartial | None
    ) -> list[Summary]:
        self.batches.append([len(text) for text in texts])
        self.go.wait(10)
        return [NOTHING] * len(texts)


def batches_of(lengths: list[int], ask: Ask, limits: Limits, others: Ask | None = None) -> list[list[int]]:
    """The batches of documents that came while another one was in work."""
    summarizer = Recorder()
    engine = Engine(summarizer, limits, Counting(), lambda error: None)

    async def run() -> None:
        first = engine.submit(["x"], [1], ask)
        while not summarizer.batches:
            await asyncio.sleep(0.001)
        jobs = []
        for place, length in enumerate(lengths):
            asked = others if others is not None and place % 2 else ask
            jobs += engine.submit(["x" * length], [length], asked)
        summarizer.go.set()
        await asyncio.gather(*(job.done for job in [*first, *jobs]))

    engine.start()
    try:
        asyncio.run(run())
    finally:
        engine.stop(seconds=10)
    return summarizer.batches[1:]


def test_documents_of_all_lengths_whose_sentences_are_chosen_share_a_pass_up_to_its_tokens() -> None:
    found = batches_of([40, 3, 50, 8, 90, 2], Ask(model="m", mode="extract"), Limits(batch=2, together=100))
    assert found == [[40, 3, 50, 2], [8, 90]]


def test_a_document_beyond_the_tokens_of_a_pass_is_alone() -> None:
    assert batches_of([300, 5, 6], Ask(model="m", mode="extract"), Limits(together=100)) == [[300], [5, 6]]


def test_documents_that_are_written_share_a_batch_if_they_are_about_as_long() -> None:
    found = batches_of([40, 3, 50, 60, 90, 5], Ask(model="m", mode="abstract"), Limits(batch=3))
    assert found == [[40, 50, 60], [3, 5], [90]]
    assert batches_of([40, 80, 30], Ask(model="m", mode="abstract"), Limits()) == [[40, 80], [30]]


def test_a_pass_is_filled_to_its_last_token() -> None:
    found = batches_of([40, 60, 1], Ask(model="m", mode="extract"), Limits(together=100))
    assert found == [[40, 60], [1]]


@pytest.mark.parametrize("mode", ["extract", "abstract"])
def test_documents_that_ask_for_something_else_wait_for_their_turn(mode: Mode) -> None:
    found = batches_of(
        [10, 11, 12, 13],
        Ask(model="m", mode=mode),
        Limits(),
        others=Ask(model="m", mode=mode, length=make_length(words=9)),
    )
    assert found == [[10, 12], [11, 13]]


@pytest.mark.parametrize(
    ("running", "waiting", "late", "together", "turns"),
    [
        ([20], [10], False, 100, [[10]]),
        ([20], [11], False, 100, []),
        ([8, 60], [30], False, 100, [[30]]),  # the longest counts
        ([40], [6], False, 5, []),
        ([40], [5], False, 5, [[5]]),
        ([20], [10], True, 100, []),
    ],
)
def test_a_document_of_half_the_length_gets_a_turn_if_it_fits_a_pass_and_somebody_waits(
    running: list[int], waiting: list[int], late: bool, together: int, turns: list[list[int]]
) -> None:
    summarizer = Recorder()
    summarizer.go.set()
    engine = Engine(summarizer, Limits(together=together), Counting(), lambda error: None)

    async def run() -> None:
        loop, ask = asyncio.get_running_loop(), Ask(model="m", mode="extract")

        def job(length: int, seconds: float = 60) -> QueuedDocument:
            deadline = time.monotonic() + seconds
            return QueuedDocument("x" * length, ask, length, deadline, loop, loop.create_future())

        engine._queue = [job(length, -1 if late else 60) for length in waiting]
        engine._take_turn([job(length) for length in running])

    asyncio.run(run())
    assert summarizer.batches == turns


class Picky:
    """A summarizer that no batch with a bad document gets through; its first batch waits until it is let go."""

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), threading.Event()

    def make(
        self, texts: Sequence[Any], ask: Ask, on_progress: OnProgress, on_partial: OnPartial | None
    ) -> list[Summary]:
        self.begun.set()
        while not self.go.wait(0.005):
            with suppress(Exception):  # as a library may
                on_progress(0, 1, 0)
        if "bad" in texts:
            raise RuntimeError("a library's own trouble")
        return [NOTHING] * len(texts)


def test_a_fault_is_answered_to_the_document_that_has_it_alone() -> None:
    summarizer, faults, listener = Picky(), [], Counting()  # type: ignore[var-annotated]
    engine = Engine(summarizer, Limits(), listener, faults.append)

    async def run() -> list:
        first = engine.submit(["x"], [1], Ask(model="m", mode="extract"))
        await asyncio.to_thread(summarizer.begun.wait, 10)
        jobs = engine.submit(["good", "bad", "fine"], [1, 1, 1], Ask(model="m", mode="extract"))  # one batch
        summarizer.go.set()
        return await asyncio.gather(*(job.done for job in [*first, *jobs]), return_exceptions=True)

    engine.start()
    try:
        found = asyncio.run(run())
    finally:
        engine.stop(seconds=10)
    assert [found[0], found[1], found[3]] == [NOTHING] * 3
    assert isinstance(found[2], ApiError)
    assert (found[2].status, len(faults), listener.reasons) == (500, 1, ["internal_error"])


def test_work_that_nobody_waits_for_ends_even_if_a_library_suppresses_all_errors() -> None:
    summarizer = Picky()
    engine = Engine(summarizer, Limits(), Counting(), lambda error: None)

    async def run() -> None:
        in_work = engine.submit(["x"], [1], Ask(model="m", mode="extract"))
        await asyncio.to_thread(summarizer.begun.wait, 10)
        engine.forget(in_work)

    engine.start()
    try:
        asyncio.run(run())
        assert engine.stop(seconds=5)
    finally:
        summarizer.go.set()


@pytest.mark.parametrize("reason", ["too_late", "client_left"])
def test_a_document_without_a_summary_is_counted_once(reason: str) -> None:
    summarizer, listener = Picky(), Counting()
    engine = Engine(
        summarizer, Limits(seconds=0.2 if reason == "too_late" else 60), listener, lambda error: None
    )

    async def run() -> None:
        in_work = engine.submit(["x"], [1], Ask(model="m", mode="extract"))
        await asyncio.to_thread(summarizer.begun.wait, 10)
        waiting = engine.submit(
            ["y", "z"], [1, 1], Ask(model="m", mode="extract", length=make_length(words=9))
        )
        await asyncio.sleep(0.4 if reason == "too_late" else 0)
        engine.forget([*waiting, *in_work])  # as a request does at its end
        summarizer.go.set()

    engine.start()
    try:
        asyncio.run(run())
    finally:
        engine.stop(seconds=10)
    assert listener.reasons == [reason] * 3


@pytest.mark.parametrize(("seconds", "again"), [(0.1, 1), (5.5, 6), (300.0, 61)])
def test_a_late_document_may_come_again_after_the_limit_but_within_about_a_minute(
    seconds: float, again: int
) -> None:
    summarizer = Picky()
    engine = Engine(summarizer, Limits(seconds=seconds), Counting(), lambda error: None)

    async def run() -> object:
        (job,) = engine.submit(["x"], [1], Ask(model="m", mode="extract"))
        job.deadline = 0.0
        engine._give_up(job)
        return (await asyncio.gather(job.done, return_exceptions=True))[0]

    engine.start()
    try:
        refused = asyncio.run(run())
    finally:
        summarizer.go.set()
        engine.stop(seconds=10)
    assert isinstance(refused, ApiError)
    assert (refused.code, refused.retry_after) == ("too_late", again)


def test_a_document_whose_client_left_is_no_error_of_the_server() -> None:
    engine = Engine(Picky(), Limits(), Counting(), lambda error: None)

    async def run() -> object:
        loop = asyncio.get_running_loop()
        deadline = time.monotonic() + 60
        job = QueuedDocument("x", Ask(model="m", mode="extract"), 1, deadline, loop, loop.create_future())
        assert not job.useless
        engine._give_up(job)
        assert job.useless
        return (await asyncio.gather(job.done, return_exceptions=True))[0]

    left = asyncio.run(run())
    assert isinstance(left, ApiError)
    assert (left.status, left.code, left.retry_after) == (499, "client_left", None)


def test_documents_that_wait_when_the_time_to_stop_is_over_may_come_again() -> None:
    summarizer = Picky()
    engine = Engine(summarizer, Limits(), Counting(), lambda error: None)

    async def run() -> list[Any]:
        jobs = engine.submit(["x"], [1], Ask(model="m", mode="extract"))
        await asyncio.to_thread(summarizer.begun.wait, 10)
        jobs += engine.submit(["y"], [1], Ask(model="m", mode="abstract"))
        assert not engine.stop(seconds=0.01)
        summarizer.go.set()
        return await asyncio.gather(*(job.done for job in jobs), return_exceptions=True)

    engine.start()
    try:
        made, refused = asyncio.run(run())
    finally:
        summarizer.go.set()
        assert engine.stop(seconds=10)
    assert made == NOTHING
    assert (refused.status, refused.code, refused.retry_after) == (503, "stopping", 5)


def test_places_count_only_for_the_text_that_they_belong_to() -> None:
    placed = Passages(text="x", starts=(0,), places=(Place(page=2),))

    async def given() -> list[object]:
        loop = asyncio.get_running_loop()
        return [
            QueuedDocument(
                text, Ask(model="m", mode="extract"), 1, 0.0, loop, loop.create_future(), passages=passages
            ).document
            for text, passages in (("x", placed), ("y", placed), ("", NOWHERE))
        ]

    assert asyncio.run(given()) == [placed, "y", ""]


def test_documents_whose_clients_left_make_room_in_the_queue() -> None:
    summarizer = Picky()
    engine = Engine(summarizer, Limits(queue=10, tokens=10), Counting(), lambda error: None)
    ask = Ask(model="m", mode="extract")

    async def run() -> list:
        in_work = engine.submit(["x"], [1], ask)
        await asyncio.to_thread(summarizer.begun.wait, 10)
        for _ in range(3):
            engine.forget(engine.submit(["y"], [9], ask))
        with pytest.raises(ApiError, match="queue is full"):
            engine.submit(["z"], [10], ask)
        last = engine.submit(["z"], [9], ask)
        summarizer.go.set()
        return await asyncio.gather(*(job.done for job in [*in_work, *last]))

    engine.start()
    try:
        assert asyncio.run(run()) == [NOTHING] * 2
    finally:
        engine.stop(seconds=10)


class Second(Picky):
    """The same, but its first document waits for another event, so that two come together after it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = threading.Event()

    def make(
        self, texts: Sequence[Any], ask: Ask, on_progress: OnProgress, on_partial: OnPartial | None
    ) -> list[Summary]:
        if texts == ["x"]:
            self.first.wait(10)
            return [NOTHING]
        return super().make(texts, ask, on_progress, on_partial)


def test_a_client_that_leaves_does_not_stop_the_batch_of_another() -> None:
    summarizer = Second()
    engine = Engine(summarizer, Limits(), Counting(), lambda error: None)
    ask = Ask(model="m", mode="extract")

    async def run() -> Summary:
        engine.submit(["x"], [1], ask)
        left, stays = engine.submit(["y", "z"], [1, 1], ask)  # one batch
        summarizer.first.set()
        await asyncio.to_thread(summarizer.begun.wait, 10)
        engine.forget([left])
        await asyncio.sleep(0.05)  # it reports its progress meanwhile
        summarizer.go.set()
        return await stays.done

    engine.start()
    try:
        assert asyncio.run(run()) == NOTHING
    finally:
        engine.stop(seconds=10)


class InPieces:
    """A summarizer that reads a piece of ten characters at a time; it writes down what it reads."""

    def __init__(self, *, between: bool = True) -> None:
        self.read: list[int] = []
        self.between, self.go, self.begun = between, threading.Event(), threading.Event()

    def make(
        self, texts: Sequence[Any], ask: Ask, on_progress: OnProgress, on_partial: OnPartial | None
    ) -> list[Summary]:
        known = sum(-(-len(text) // 10) for text in texts)
        for done in range(1, known + 1):
            self.read.append(max(map(len, texts)))
            self.begun.set()
            self.go.wait(10)
            on_progress(done, known, 0 if self.between else 8)
        return [NOTHING] * len(texts)


def order_of(summarizer: InPieces, lengths: list[int], ask: Ask, **options: Any) -> list[int]:
    """The lengths of the documents in the order in which their pieces were read; the first one begins alone."""
    engine = Engine(summarizer, Limits(), Counting(), lambda error: None, **options)

    async def run() -> None:
        jobs = engine.submit(["x" * lengths[0]], [lengths[0]], ask)
        await asyncio.to_thread(summarizer.begun.wait, 10)
        for length in lengths[1:]:
            jobs += engine.submit(["x" * length], [length], ask)
        summarizer.go.set()
        await asyncio.wait_for(asyncio.gather(*(job.done for job in jobs)), 20)

    engine.start()
    try:
        asyncio.run(run())
    finally:
        assert engine.stop(seconds=10)
    return summarizer.read


def test_short_documents_wait_for_one_piece_of_a_long_one() -> None:
    assert order_of(InPieces(), [50, 5, 40, 6], Ask(model="m", mode="extract"))[:4] == [50, 6, 6, 50]
    assert order_of(InPieces(), [50, 5, 40, 20], Ask(model="m", mode="abstract")) == [
        *(50, 5, 50, 20, 20, 50, 50, 50),
        *(40, 40, 40, 40),
    ]


class Ending(InPieces):
    """The same; the end of a batch is its length below zero."""

    def make(
        self, texts: Sequence[Any], ask: Ask, on_progress: OnProgress, on_partial: OnPartial | None
    ) -> list[Summary]:
        found = super().make(texts, ask, on_progress, on_partial)
        self.read.append(-max(map(len, texts)))
        return found


def test_after_its_last_piece_a_document_gives_no_turn() -> None:
    ask = Ask(model="m", mode="abstract")
    assert order_of(Ending(), [20, 5], ask) == [20, 5, -5, 20, -20]
    assert order_of(Ending(), [10, 5], ask) == [10, -10, 5, -5]


def test_a_batch_that_is_being_written_gives_no_turn() -> None:
    found = order_of(InPieces(between=False), [30, 5], Ask(model="m", mode="abstract"))
    assert found == [30, 30, 30, 5]


def test_a_turn_loads_no_model() -> None:
    found = order_of(InPieces(), [30, 5], Ask(model="m", mode="extract"), loaded=lambda name: name != "m")
    assert found == [30, 30, 30, 5]


def test_whoever_has_an_answer_may_send_the_next_document_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place in the queue is free before the answer goes out, so a full queue never refuses its only client."""
    engine = Engine(Recorder(), Limits(tokens=10, queue=10), Counting(), lambda error: None)
    engine._summarizer.go.set()  # type: ignore[attr-defined]
    counted = []
    finish = QueuedDocument.finish

    def watched(job: QueuedDocument, result: Summary | Exception) -> None:
        counted.append((engine._documents, engine._tokens))
        finish(job, result)

    monkeypatch.setattr(QueuedDocument, "finish", watched)

    async def run() -> None:
        for _ in range(3):
            await engine.submit(["x" * 10], [10], Ask(model="m", mode="extract"))[0].done

    engine.start()
    try:
        asyncio.run(run())
    finally:
        engine.stop(seconds=10)
    assert counted == [(0, 0)] * 3


def test_a_model_that_still_works_does_not_keep_the_process_from_its_end() -> None:
    summarizer = Picky()
    engine = Engine(summarizer, Limits(), Counting(), lambda error: None)
    engine.start()
    try:
        (found,) = (each for each in threading.enumerate() if each is engine._thread)
        assert (found.name, found.daemon) == (MODEL_THREAD, True)
    finally:
        engine.stop(seconds=10)


def test_what_a_user_can_mend_is_answered_as_their_mistake_and_is_no_fault() -> None:
    class Refusing:
        def make(
            self, texts: Sequence[Any], ask: Ask, on_progress: OnProgress, on_partial: OnPartial | None
        ) -> NoReturn:
            raise UserError("the document is too long; shorten it")

    faults: list[BaseException] = []
    engine = Engine(Refusing(), Limits(), Counting(), faults.append)

    async def run() -> None:
        await engine.submit(["x"], [1], Ask(model="m", mode="extract"))[0].done

    engine.start()
    try:
        with pytest.raises(ApiError, match="too long; shorten it") as refused:
            asyncio.run(run())
    finally:
        engine.stop(seconds=10)
    assert (refused.value.status, refused.value.code, faults) == (422, "cannot_be_summarized", [])


def test_an_engine_takes_documents_only_while_it_runs() -> None:
    engine = Engine(Picky(), Limits(), Counting(), lambda error: None)

    async def submit() -> None:
        engine.submit(["x"], [1], Ask(model="m", mode="extract"))

    for is_before in (True, False):
        with pytest.raises(ApiError) as refused:
            asyncio.run(submit())
        assert (refused.value.status, refused.value.code, refused.value.retry_after) == (503, "stopping", 5)
        if is_before:
            engine.start()
            assert engine.stop(seconds=10)


def test_a_full_queue_names_its_size_and_refuses_a_request_as_a_whole() -> None:
    summarizer, listener = Picky(), Counting()
    engine = Engine(summarizer, Limits(queue=9, tokens=9, batch=2), listener, lambda error: None)
    ask = Ask(model="m", mode="extract")

    async def run() -> list[Any]:
        jobs = engine.submit(["x", "y", "z"], [1, 2, 3], ask)
        with pytest.raises(ApiError, match="the queue is full: 3 documents with 6 tokens") as refused:
            engine.submit(["u", "v"], [1, 3], ask)
        assert (refused.value.code, refused.value.retry_after) == ("queue_full", 2)
        assert listener.reasons == ["queue_full"] * 2
        jobs += engine.submit(["u", " ", "v"], [1, 0, 2], ask)  # as many as there is room for
        summarizer.go.set()
        return await asyncio.gather(*(job.done for job in jobs), return_exceptions=True)

    engine.start()
    try:
        *made, empty, last = asyncio.run(run())
    finally:
        summarizer.go.set()
        engine.stop(seconds=10)
    assert [*made, last] == [NOTHING] * 5
    assert (empty.code, empty.document) == ("empty_document", 2)


def test_a_document_that_has_its_turn_gives_none_to_a_shorter_one() -> None:
    found = order_of(InPieces(), [90, 40, 5], Ask(model="m", mode="abstract"))
    assert found[:7] == [90, 40, 40, 40, 40, 90, 5]


def test_only_a_longer_beginning_is_news() -> None:
    async def run() -> list[tuple[bool, str]]:
        loop, found = asyncio.get_running_loop(), []
        job = QueuedDocument("x", Ask(model="m", mode="abstract"), 1, 0.0, loop, loop.create_future())
        for beginning in ("It rains.", "It pours.", "It", "It rains. It pours."):
            job.news.clear()
            job._begin(beginning)
            found.append((job.news.is_set(), job.written))
        return found

    first, longer = "It rains.", "It rains. It pours."
    assert asyncio.run(run()) == [(True, first), (False, first), (False, first), (True, longer)]


def test_the_seconds_of_a_batch_are_those_that_it_took() -> None:
    metrics = Metrics()
    engine = Engine(Recorder(), Limits(), metrics, lambda error: None)
    engine._summarizer.go.set()  # type: ignore[attr-defined]

    async def run() -> None:
        await engine.submit(["x"], [1], Ask(model="m", mode="extract"))[0].done

    engine.start()
    try:
        asyncio.run(run())
    finally:
        engine.stop(seconds=10)
    told = metrics.text().decode().split("precis_batch_seconds_sum ")[1]
    assert 0 <= float(told.split()[0]) < 10
