"""English sentences that begin with a word that points back refer back to the one before."""

import pytest

from precis_text.back_references import has_back_reference, has_inner_reference, points_to_a_part


@pytest.mark.parametrize(
    "sentence",
    [
        "It is ready.",
        "There the boat sank.",
        "But nobody came.",
        "\u201cThis is ours.\u201d",
        "For example, Ann sings.",
        "The latter is red.",
        "Since then prices fell.",
        "Because they were late, nobody waited.",
        "The main reason is not the weather.",
        "The plan did not suit all, however.",
        "Bob, too, was late.",
        "In this way, nobody waited.",
        "This bridge is new.",
        "Consistent with this, prices fell.",
        "A similar wall was built.",
        "In the meantime, nobody came.",
        "Further, the walls were built.",
        "Some walls are red, for example.",
        "Об этом сообщила администрация города.",
        "Das teilte die Polizei am Montag mit.",
        "Así lo anunció la alcaldesa.",
        "An diesem Tag ist die Schule zu.",
        "Aber er sagt das Fest nicht ab.",
        "Dans ce cas, la banque paie.",
        "Por este motivo se cerró el puente.",
        "In tal caso paga la banca.",
    ],
)
def test_sentences_that_point_back_have_a_back_reference(sentence: str) -> None:
    assert has_back_reference(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Italy voted.",
        "There are two ways to oil the lock.",
        "There was a fire in the town.",
        "Ann: It is ready.",
        "The latterday saints met.",
        "Sie kommt.",
        "Das Wasser teilte die Stadt.",
        "An diesem Fluss steht die Schule.",
        "Aber Ann sagt das Fest nicht ab.",
        "Dans ce livre, la banque paie.",
        "Об этой стене говорят все.",
        "Forty came.",
        "The reasonable ones left, and however long it took they waited.",
        "Because Ann was late, nobody waited.",
        "In this paper, we build bridges.",
        "Here, we build bridges.",
        "This code example opens a window.",
        "This page describes it.",
        "Further walls were built.",
        "Some walls, for example those of the hall, are red.",
        "The first one is the hall of May.",
        "It is important that the bridge opens.",
        "It is with mixed emotions that Ann leaves.",
        "It was agreed to sell the boat.",
        "It was unanimously resolved that Ann sells the boat.",
        "",
        "...",
    ],
)
def test_other_sentences_stand_alone(sentence: str) -> None:
    assert not has_back_reference(sentence)


@pytest.mark.parametrize(
    ("sentence", "points"),
    [
        ("Treatment lowered both of these genes.", True),
        ("In rice, such plants are rare.", True),
        ("Ann prefers the latter method.", True),
        ("Rice plants grow, and these plants are rare.", False),
        ("As in this study, rice grows.", False),
        ("Plants such as rice grow.", False),
        ("These plants are rare.", False),
        ("Ann grows those that last.", False),
    ],
)
def test_a_noun_that_nothing_named_points_to_another_sentence(sentence: str, points: bool) -> None:
    assert has_inner_reference(sentence) is points


@pytest.mark.parametrize(
    ("sentence", "points"),
    [
        ("Additional file 1 lists the boats.", True),
        ("The boats are in supplementary Table S3.", True),
        ("The Board requested additional information from the harbour.", False),
        ("The seller hands over additional data and supporting materials.", False),
        ("Ann Lee ( left ) waves from the boat.", True),
        ("Ann Lee (far right, in white) waves from the boat.", True),
        ("They turned (right after the boat) to the harbour.", False),
        ("The call f(left) returns the boat.", False),
    ],
)
def test_a_numbered_file_or_a_person_in_a_picture_is_a_part_of_a_document(
    sentence: str, points: bool
) -> None:
    assert points_to_a_part(sentence) is points
