from pathlib import Path

from precis.server.engine import Ask
from precis.server.response_body import answer
from precis.server.schemas import OneSummary
from precis.server.served_model import ServedModel
from precis_text.length import make_length
from tests.generation.writers.endpoint_server import says, serving
from tests.generation.writers.test_writer import BOATS
from tests.tiny_models import save_llama


def ask(words: int) -> Ask:
    return Ask(model="m", mode="abstract", length=make_length(words=words))


def test_a_causal_model_and_an_endpoint_are_served_like_other_models(tmp_path: Path) -> None:
    local = ServedModel.load(str(save_llama(tmp_path / "llama")), name="m")
    (summary,) = local.make([BOATS], ask(20), lambda *_: None, None)
    assert local.modes == ("abstract",)
    assert local.size > 100_000
    assert local.counter().count([BOATS])[0] > 50
    assert len(summary.text.split()) <= 20
    with serving(says("Ann sold Bob 3 boats.")) as server:
        remote = ServedModel.load(f"{server.address}#tiny", name="m")
        (summary,) = remote.make([BOATS], ask(20), lambda *_: None, None)
    assert remote.size == 0
    assert remote.counter().at_least(BOATS) == len(BOATS.split())
    assert summary.text == "Ann sold Bob 3 boats."
    told = answer(0, BOATS, summary, support=True)
    assert [each["origin"] for each in told["sentences"]] == ["written"]
    assert OneSummary.model_validate(told).sentences[0].origin == "written"


def test_an_answer_gives_the_reason_of_a_quotation() -> None:
    with serving(says("Ann sold Bob 3 boats. Carl paid 700 pounds for the boats.")) as server:
        remote = ServedModel.load(f"{server.address}#tiny", name="m")
        (summary,) = remote.make([BOATS], ask(30), lambda *_: None, None)
    written, quoted = answer(0, BOATS, summary, support=False)["sentences"]
    assert written["origin"] == "written"
    assert "reason" not in written
    assert quoted["origin"] == "quoted"
    assert "700" in quoted["reason"]
