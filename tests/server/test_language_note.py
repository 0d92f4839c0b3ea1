"""The answer says so if the model in the box reads a document in a language that it was not trained on."""

from precis.server.served_model import ServedModel
from tests.server.conftest import Serve
from tests.server_of_tests import Running

GERMAN = (
    "Der Rat traf sich am Montag. Er beschloss, die alte Brücke zu reparieren, da sie alt und schwach ist."
)
ITALIAN = "Il consiglio si è riunito lunedì. Ha deciso di riparare il vecchio ponte, che è debole e non è più sicuro."
ENGLISH = (
    "The council met on Monday. It voted to repair the bridge, since it is old. The work will begin in May."
)


def test_each_document_of_another_language_has_a_note(serve: Serve) -> None:
    service = serve(ServedModel.load("default", name="default"))
    with service.client() as client:
        made = client.post(
            "/v1/summarize", json={"text": [ENGLISH, GERMAN, ITALIAN, ITALIAN], "sentences": 1}
        ).json()
    english, german, *italian = [one["read"]["note"] for one in made["summaries"]]
    assert "seems" not in english + german
    assert all("The document seems to be Italian: the model" in note for note in italian)


def test_another_model_has_no_such_note(service: Running) -> None:
    with service.client() as client:
        made = client.post("/v1/summarize", json={"text": ITALIAN, "words": 5}).json()
    assert "seems" not in made["summaries"][0]["read"]["note"]
