"""Several models in one service: chosen by name, and dropped when memory is short."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from precis.generation.summarizer import NOTHING, Summarizer
from precis.server import model_pool
from precis.server.engine import Ask
from precis.server.limits import ApiError
from precis.server.model_pool import ModelPool
from precis.server.served_model import ServedModel
from precis_text.errors import UserError
from tests.server_of_tests import ByWords, run_pool
from tests.tiny_models import tiny

TEXT = "Ann sings in the hall. Bob listens to her song for a long time. It rains."


@dataclass
class Fake:
    """A model of ten megabytes that remembers what it was asked for."""

    name: str
    modes: tuple = ("abstract",)
    languages: tuple[str, ...] = ()
    size: int = 10_000_000
    asked: list[str] = field(default_factory=list)

    def counter(self) -> ByWords:
        return ByWords()

    def make(self, texts: Any, ask: Ask, on_progress: Any, on_partial: Any) -> list[Any]:
        self.asked += texts
        return [NOTHING for _ in texts]


@pytest.fixture
def loads() -> list[str]:
    """The names in the order in which they were loaded."""
    return []


@pytest.fixture
def pool_of(loads: list[str]) -> Callable[..., ModelPool]:
    """Make a pool of the models a, b and c."""

    def load(name: str) -> Fake:
        loads.append(name)
        return Fake(name)

    def pool(memory: int | None) -> ModelPool:
        return ModelPool({name: (lambda name=name: load(name)) for name in "abc"}, memory=memory)  # type: ignore[misc]

    return pool


def use(pool: ModelPool, *names: str) -> None:
    for name in names:
        pool.make(["text"], Ask(model=name, mode="abstract"), lambda *_: None, None)


def test_without_a_bound_each_model_is_loaded_once(
    pool_of: Callable[..., ModelPool], loads: list[str]
) -> None:
    pool = pool_of(None)
    pool.load_all()
    use(pool, "a", "b", "c", "a")
    assert sorted(loads) == ["a", "b", "c"]
    assert pool.names == ["a", "b", "c"]


@pytest.mark.long
def test_the_least_recently_used_model_is_dropped(
    pool_of: Callable[..., ModelPool], loads: list[str]
) -> None:
    pool = pool_of(20_000_000)
    pool.load_all()
    assert pool.loaded == ["b", "a"]
    use(pool, "b", "c")
    assert pool.loaded == ["b", "c"]
    use(pool, "b", "a")
    assert pool.loaded == ["b", "a"]
    assert loads == ["c", "b", "a", "c", "a"]
    assert pool.modes("c") == ("abstract",)


def test_a_model_above_the_bound_is_refused_at_the_start(pool_of: Callable[..., ModelPool]) -> None:
    with pytest.raises(UserError, match=r"--model-memory 9: the model 'c' has 10 MB of weights"):
        pool_of(9_000_000).load_all()


@pytest.mark.long
def test_a_model_that_has_gone_is_an_error_of_the_server() -> None:
    gone = iter([Fake("a")])

    def load() -> Fake:
        for model in gone:
            return model
        raise UserError("/secret/place: no such folder")

    pool = ModelPool({"b": lambda: Fake("b"), "a": load}, memory=10_000_000)
    pool.load_all()
    with pytest.raises(ApiError, match="'a' cannot be loaded again") as refused:
        use(pool, "a")
    assert (refused.value.status, "/secret" in str(refused.value)) == (503, False)


@pytest.mark.long
@pytest.mark.parametrize("has_gpu", [True, False])
def test_memory_is_given_back_to_the_system_when_a_model_is_dropped(
    pool_of: Callable[..., ModelPool], monkeypatch: pytest.MonkeyPatch, has_gpu: bool
) -> None:
    given: list[str] = []
    monkeypatch.setattr(model_pool, "trim_heap", lambda: given.append("heap"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: has_gpu)
    monkeypatch.setattr("torch.cuda.empty_cache", lambda: given.append("gpu"))
    pool = pool_of(20_000_000)
    pool.load_all()  # c leaves
    use(pool, "b")
    assert given == [*["gpu"] * has_gpu, "heap"]


def test_a_model_without_weights_drops_no_other() -> None:
    sizes = {"ranker": 0, "b": 10_000_000, "a": 10_000_000}
    loaders = {name: (lambda name=name, size=size: Fake(name, size=size)) for name, size in sizes.items()}
    pool = ModelPool(loaders, memory=20_000_000)
    pool.load_all()
    assert pool.loaded == ["a", "b", "ranker"]


def served(name: str, seed: int) -> ServedModel:
    model, tokenizer = tiny("zcodepp", seed=seed)
    return ServedModel(name, ("abstract",), Summarizer(model, tokenizer), None, 8)


def test_the_weights_of_a_model_are_measured() -> None:
    made = served("one", 0)
    model = made.writer.model  # type: ignore[union-attr]
    assert made.size == sum(each.numel() * 4 for each in model.parameters()) + sum(
        each.numel() * each.element_size() for each in model.buffers()
    )


def test_a_request_chooses_a_model_by_its_name() -> None:
    one, two = served("one", 0), served("two", 1)
    running = run_pool(ModelPool.of(one, two))
    try:
        with running.client() as client:

            def summary(**body: Any) -> httpx.Response:
                return client.post("/v1/summarize", json={"text": TEXT, "tokens": 9, **body})

            writers = [made.writer for made in (one, two) if isinstance(made.writer, Summarizer)]
            expected = [writer.summarize([TEXT], tokens=9)[0].text for writer in writers]
            assert expected[0] != expected[1]
            answers = [summary(model="one").json(), summary(model="two").json(), summary().json()]
            texts = [answer["summaries"][0]["summary"] for answer in answers]
            assert texts == [*expected, expected[0]]
            assert [answer["model"] for answer in answers] == ["one", "two", "one"]
            refused = summary(model="three")
            assert (refused.status_code, "'one', 'two'" in refused.text) == (404, True)
            listed = client.get("/v1/models").json()["data"]
            assert [entry["id"] for entry in listed] == ["one", "two"]
            assert client.get("/v1/models/two").json() == listed[1]
            chat = {"model": "two", "messages": [{"role": "user", "content": TEXT}], "max_tokens": 9}
            answer = client.post("/v1/chat/completions", json=chat).json()
            assert (answer["model"], answer["choices"][0]["message"]["content"]) == ("two", expected[1])
    finally:
        running.stop()
