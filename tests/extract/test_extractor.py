"""Summaries of chosen units: word for word, in order, within their cap, and the same whatever stands beside them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from precis.extract.encoder_extractor import EncoderExtractor
from precis.extract.extractor import AHEAD, Extractor, UnitScores
from precis.extract.extractor_opening import open_extractor
from precis.extract.unit_encoder import EncodedUnits, UnitReader
from precis.extract.unit_tokens import ReadUnits
from precis.generation.model_loader import load_model
from precis.models import unit_scorer
from precis.models.unit_scorer import WEIGHTS_FILE, UnitScorer, UnitScorerShape, load_scorer, save_scorer
from precis_text.central_choice import central_scores, scores_in_language
from precis_text.errors import UserError
from precis_text.length import make_length
from precis_text.selection import TOGETHER, choose, join_units
from precis_text.sentences import split_sentences
from precis_text.units import extraction_units
from precis_text.words import length_in_words
from tests.tiny_models import documents, save

DOCUMENT = (
    "Ann sings in the hall. Bob listens to her song for a long time.\n\n"
    "It rains. Carol brings a mail about the story of the hall. Nobody sings."
)


def folder_of(kind: str, place: Path) -> Path:
    save(kind, place)
    loaded = load_model(place)
    torch.manual_seed(0)
    save_scorer(UnitScorer(UnitScorerShape(states=loaded.model.config.hidden_size, width=16, heads=2)), place)
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of("zcodepp", tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def extractor(folder: Path) -> Extractor:
    return open_extractor(folder)


def read(*texts: str) -> ReadUnits:
    units = tuple(extraction_units("\n".join(texts)))
    assert [unit.text for unit in units] == [*texts]
    return ReadUnits(units, tuple(2 * len(text.split()) for text in texts), 0, 0, 1)


def read_alone(reader: UnitReader, document: str) -> EncodedUnits:
    (tokens,) = reader.tokenize([document])
    assert tokens is not None
    return reader.read([tokens])[0]


def mixed_documents() -> list[str]:
    """Documents of one unit to hundreds, shuffled."""
    parts = [text.split(". ") for text in documents(12)]
    made = [". ".join(parts[n % 12][: 1 + n % 5]) + "." for n in range(30)]
    return [*made, DOCUMENT * 9, ". ".join(map(". ".join, parts)), "Ann.", *made[:3], DOCUMENT * 40]


def test_an_extract_is_units_of_the_document_in_order(extractor: Extractor) -> None:
    (summary,) = extractor.summarize([DOCUMENT], sentences=2)
    places = summary.places
    assert len(places) == 2
    assert list(places) == sorted(places)
    assert [" ".join(DOCUMENT[a:b].split()) for a, b in places] == split_sentences(summary.text)
    assert summary.mode == "extract"
    assert summary.finished
    assert summary.tokens_read == summary.document_tokens


@pytest.mark.parametrize("kind", ["bart", "prophetnet"])
def test_any_encoder_decoder_can_choose(kind: str, tmp_path: Path) -> None:
    (summary,) = open_extractor(folder_of(kind, tmp_path / kind)).summarize([DOCUMENT], sentences=1)
    assert summary.text in " ".join(DOCUMENT.split())


@pytest.mark.parametrize("count", [*range(1, 9), 20])
def test_caps_hold(extractor: Extractor, count: int) -> None:
    (words,) = extractor.summarize([DOCUMENT], words=count)
    (sentences,) = extractor.summarize([DOCUMENT], sentences=count)
    (tokens,) = extractor.summarize([DOCUMENT], tokens=count)
    assert 0 < length_in_words(words.text) <= count
    assert 0 < len(split_sentences(sentences.text)) <= count
    assert 0 < tokens.summary_tokens <= count


def test_a_unit_that_is_cut_is_not_finished(extractor: Extractor) -> None:
    (summary,) = extractor.summarize([DOCUMENT], words=1)
    assert not summary.finished


@pytest.fixture
def counted(extractor: Extractor, monkeypatch: pytest.MonkeyPatch) -> Extractor:
    """An extractor that counts a token for each word and each end of a sentence inside, and finds all units good."""

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [[9] * (len(text.split()) + text.count(". ")) for text in texts]

    def scores(read: Sequence[ReadUnits], *_: object) -> list[UnitScores]:
        return [UnitScores([0.9] * len(each.units), 99.0) for each in read]

    tokens = replace(extractor.tokens, encode=encode, decode=lambda ids: " ".join(["word"] * len(ids)))
    monkeypatch.setattr(extractor, "tokens", tokens)
    monkeypatch.setattr(extractor, "scores", scores)
    return extractor


FOUR = "Ann sings in the hall. Bob left early for home. Carol mends an old boat. Nobody saw her other coat."


@pytest.mark.parametrize(("tokens", "units"), [(16, 2), (11, 2), (10, 1), (5, 1), (2, 1)])
def test_units_that_have_more_tokens_together_than_each_alone_stay_within_the_cap(
    counted: Extractor, tokens: int, units: int
) -> None:
    (summary,) = counted.summarize([FOUR], tokens=tokens)
    assert len(summary.places) == units
    assert summary.summary_tokens <= tokens
    assert summary.finished is (tokens >= 5)


def test_all_units_of_a_document_are_the_document_unless_a_summary_is_asked_for(counted: Extractor) -> None:
    (same,) = counted.summarize([FOUR])
    (written,) = counted.summarize([FOUR], short="write")
    assert (same.kept, written.kept) == (True, False)
    assert same.text == written.text == FOUR


def test_a_form_stays_within_a_cap_of_tokens(extractor: Extractor) -> None:
    for most in (20, 60):
        (made,) = extractor.summarize([DOCUMENT * 2], type="key-points", tokens=most)
        assert 0 < made.summary_tokens <= most


def test_a_document_within_the_cap_is_given_back(extractor: Extractor) -> None:
    (summary,) = extractor.summarize(["Ann sings. It rains."], words=10)
    assert summary.kept
    assert summary.text == "Ann sings. It rains."


def test_a_document_has_the_same_extract_alone_and_in_company(extractor: Extractor) -> None:
    others = ["It rains. Ann sings a song. Bob listens.", DOCUMENT, "Bob sings. " * 40]
    together = extractor.summarize(others, words=9)
    assert together == [extractor.summarize([text], words=9)[0] for text in others]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["zcodepp", "bart", "prophetnet"])
@pytest.mark.parametrize("together", [64, 8192])
def test_documents_of_all_lengths_have_the_vectors_and_scores_that_they_have_alone(
    kind: str, together: int, tmp_path: Path
) -> None:
    loaded = load_model(folder_of(kind, tmp_path / kind))
    reader = UnitReader(loaded.model, loaded.tokenizer, max_source=48, together=together)
    texts = [tokens for tokens in reader.tokenize(mixed_documents()) if tokens]
    extractor = open_extractor(tmp_path / kind)
    together_, alone = reader.read(texts), [reader.read([text])[0] for text in texts]
    for one, other in zip(together_, alone, strict=True):
        assert replace(one, vectors=other.vectors) == other
        torch.testing.assert_close(one.vectors, other.vectors, rtol=1e-5, atol=1e-5)
    for found, own in zip(
        extractor.scores(together_), map(extractor.scores, ([r] for r in alone)), strict=True
    ):
        torch.testing.assert_close(found.units, own[0].units, rtol=1e-5, atol=1e-5)
        assert found.words == pytest.approx(own[0].words, rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["zcodepp", "bart"])
@pytest.mark.parametrize("length", [{"words": 12}, {"sentences": 2}, {"tokens": 30}, {}])
def test_documents_of_all_lengths_have_the_extracts_that_they_have_alone(
    kind: str, length: dict[str, int], tmp_path: Path
) -> None:
    extractor = open_extractor(folder_of(kind, tmp_path / kind))
    texts = mixed_documents()
    assert extractor.summarize(texts, **length) == [extractor.summarize([t], **length)[0] for t in texts]  # type: ignore[arg-type]


def test_a_pass_has_no_more_positions_than_are_allowed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_model(folder)
    reader = UnitReader(loaded.model, loaded.tokenizer, max_source=10_000, together=300)
    sizes: list[tuple[int, int]] = []
    loaded.model.get_encoder().register_forward_pre_hook(
        lambda _, __, inputs: sizes.append(tuple(inputs["input_ids"].shape)), with_kwargs=True
    )
    reader.read([tokens for tokens in reader.tokenize(mixed_documents()) if tokens])
    assert any(rows > 1 for rows, _ in sizes)
    assert all(rows * width <= 300 for rows, width in sizes if rows > 1)


@pytest.mark.long
def test_documents_are_read_ahead_by_their_characters(extractor: Extractor) -> None:
    taken = []

    def many() -> Iterator[str]:
        for number in range(4000):
            taken.append(number)
            yield DOCUMENT * 20

    next(extractor.stream(many(), sentences=1))
    assert len(taken) * len(DOCUMENT) * 20 <= 2 * AHEAD
    assert len(taken) * sum(extractor.tokens.counts(DOCUMENT)) * 20 >= TOGETHER  # enough for a pass


def test_a_long_document_is_read_whole(folder: Path) -> None:
    loaded = load_model(folder)
    found = read_alone(UnitReader(loaded.model, loaded.tokenizer, max_source=16), DOCUMENT * 3)
    assert found.read == found.document_tokens == sum(found.tokens)
    assert found.pieces == 1


def test_a_model_that_reads_little_reads_in_pieces(tmp_path: Path) -> None:
    loaded = load_model(folder_of("bart", tmp_path / "bart"))
    widths: list[int] = []
    loaded.model.get_encoder().register_forward_pre_hook(
        lambda _, __, inputs: widths.append(inputs["input_ids"].shape[1]), with_kwargs=True
    )
    found = read_alone(UnitReader(loaded.model, loaded.tokenizer, max_source=48), DOCUMENT * 3)
    assert found.read == found.document_tokens
    assert found.pieces > 1
    assert max(widths) <= 48
    (summary,) = open_extractor(tmp_path / "bart").summarize([DOCUMENT * 40], sentences=1)
    assert summary.how == "chunk"
    assert summary.pieces > 1


def test_training_may_read_the_beginning_alone(folder: Path) -> None:
    loaded = load_model(folder)
    found = read_alone(UnitReader(loaded.model, loaded.tokenizer, max_source=64, most=40), DOCUMENT)
    assert found.read <= 40 < found.document_tokens
    assert found.read > found.tokens[0]
    least = read_alone(UnitReader(loaded.model, loaded.tokenizer, max_source=64, most=1), DOCUMENT)
    assert least.read == least.tokens[0] == sum(least.tokens)


def test_an_empty_document_is_named_or_passed_over(extractor: Extractor) -> None:
    with pytest.raises(UserError, match="document 2 is empty"):
        extractor.summarize([DOCUMENT, " \n"])
    assert extractor.summarize([" \n"], skip_empty=True)[0].document_tokens == 0


def test_a_document_of_unknown_characters_is_named(
    extractor: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = extractor.tokens.unknown
    assert unknown is not None
    tokens = replace(extractor.tokens, encode=lambda texts: [[unknown] for _ in texts])
    monkeypatch.setattr(extractor, "tokens", tokens)
    with pytest.raises(UserError, match="document 1 contains no tokens"):
        extractor.summarize([DOCUMENT])
    known = replace(tokens, encode=lambda texts: [[unknown, unknown + 1] for _ in texts])
    monkeypatch.setattr(extractor, "tokens", known)
    assert extractor.summarize([DOCUMENT], sentences=1)[0].text


def test_a_document_that_is_no_text_is_named_by_its_number(extractor: Extractor) -> None:
    with pytest.raises(UserError, match="document 2 is of type int; give a str"):
        extractor.summarize([DOCUMENT, 3], sentences=1)  # type: ignore[list-item]
    with pytest.raises(UserError, match=r"document 2: invalid Unicode .*U\+D83D at character 5"):
        extractor.summarize([DOCUMENT, "Ann \ud83d sings."], sentences=1)


def test_a_document_of_one_sentence_beyond_the_cap_is_cut_and_not_given_back(extractor: Extractor) -> None:
    (summary,) = extractor.summarize(["The council met on Monday and voted to repair the bridge."], words=4)
    assert summary.text == "The council met"
    assert not summary.kept
    assert not summary.finished


def test_a_document_of_headings_and_of_nothing_known_has_an_extract(extractor: Extractor) -> None:
    found = read("One two three four five.")
    heading = replace(found, units=tuple(replace(unit, heading=True) for unit in found.units))
    assert choose(heading, [0.5], make_length(), words=9) == [0]


@pytest.mark.usefixtures("everybody_understands")
def test_a_sentence_that_points_back_is_chosen_after_or_with_the_one_before_it_or_not_at_all() -> None:
    found = read("One two three four five.", "It is six seven eight.", "Seven eight nine ten eleven.")
    scores = [0.5, 0.9, 0.6]
    assert choose(found, scores, make_length(words=5), words=0) == [2]
    assert choose(found, scores, make_length(words=10), words=0) == [0, 1]  # the pair counts as 0.72
    assert choose(found, [0.5, 0.2, 0.6], make_length(words=10), words=0) == [0, 2]  # and here as 0.16
    assert choose(found, scores, make_length(words=15), words=0) == [0, 1, 2]
    assert choose(found, [0.8, 0.9, 0.6], make_length(words=10), words=0) == [0, 1]


def test_a_sentence_that_a_line_break_cut_is_not_begun_in_its_middle() -> None:
    found = read(
        "The first half of one sentence -", "goes on here with more words.", "Six seven eight nine ten."
    )
    assert choose(found, [0.1, 0.9, 0.5], make_length(sentences=1), words=0) == [2]


def test_headings_and_parts_are_not_chosen() -> None:
    found = read("One two three four five.", "In a clone of it:", "Five six seven eight nine.")
    heading = replace(found, units=(replace(found.units[0], heading=True), *found.units[1:]))
    assert choose(heading, [0.9, 0.8, 0.1], make_length(words=99), words=99) == [2]


def test_the_best_units_that_fit_are_chosen() -> None:
    found = read(
        "One two three four five six.", "Five six seven eight nine.", "Seven eight nine ten eleven twelve."
    )
    assert choose(found, [0.9, 0.5, 0.8], make_length(words=11), words=0) == [0, 1]
    assert choose(found, [0.9, 0.5, 0.8], make_length(sentences=2), words=0) == [0, 2]


def test_what_is_longer_than_the_cap_gives_way_to_what_is_nearly_as_good_and_fits() -> None:
    found = read("One two three four five six seven eight.", "Five six seven eight nine.")
    assert choose(found, [0.9, 0.7], make_length(words=6), words=0) == [1]
    assert choose(found, [0.9, 0.5], make_length(words=6), words=0) == [0]


@pytest.mark.usefixtures("everybody_understands")
def test_without_a_cap_the_extract_is_as_near_to_the_expected_length_as_whole_units_come() -> None:
    found = read("One two three four five six.", "Ann sings in the hall.", "Seven eight nine ten eleven.")
    assert choose(found, [0.9, 0.5, 0.8], make_length(), words=7) == [0]
    assert choose(found, [0.9, 0.1, 0.8], make_length(), words=10) == [0, 2]
    assert choose(found, [0.9, 0.5, 0.8], make_length(min_words=12), words=1) == [0, 1, 2]


def wide(*texts: str) -> list[str]:
    """Return the texts with four words in place of each, for caps that are not small."""
    return [
        " ".join(" ".join(f"{word.rstrip('.')}{end}" for end in "wxyz") for word in text.split()) + "."
        for text in texts
    ]


def test_the_room_that_is_left_is_filled_with_what_is_worse_until_most_of_a_cap_is_used() -> None:
    found = read(
        *wide("One two three four five six.", "Seven eight nine ten red.", "Old new big wet dry low.")
    )
    assert choose(found, [0.9, 0.1, 0.8], make_length(words=44), words=0) == [0, 1]
    assert choose(found, [0.9, 0.1, 0.8], make_length(sentences=1), words=0) == [0]
    assert choose(found, [0.9, 0.5, 0.8], make_length(words=44), words=0) == [0, 1]


def test_a_cap_beyond_the_expected_length_is_used_by_85_percent_before_worse_units_are_left_out() -> None:
    found = read(*wide("One two three four five.", "Six seven eight nine ten.", "Old new big wet dry."))
    scores = [0.9, 0.5, 0.3]
    assert choose(found, scores, make_length(words=64), words=20) == [0, 1, 2]
    assert choose(found, scores, make_length(words=44), words=20) == [0, 1]
    assert choose(found, scores, make_length(words=64), words=60) == [0, 1, 2]
    assert choose(found, scores, make_length(words=64, min_words=44), words=20) == [0, 1, 2]
    assert choose(found, scores, make_length(words=120), words=20) == [0, 1, 2]
    assert choose(found, scores, make_length(sentences=3), words=20) == [0, 1, 2]


def test_a_small_cap_is_not_filled_with_worse_units() -> None:
    found = read("One two three four five.", "Five six seven eight nine.", "Eight nine ten eleven twelve.")
    assert choose(found, [0.9, 0.5, 0.3], make_length(words=10), words=5) == [0, 1]
    assert choose(found, [0.9, 0.4, 0.3], make_length(words=10), words=5) == [0]
    assert choose(found, [0.9, 0.4, 0.3], make_length(words=10, min_words=10), words=5) == [0, 1]


def test_a_half_that_follows_a_whole_sentence_is_not_chosen() -> None:
    found = read(
        "The bridge is closed.", "and of the river that rose.", "Ann sings in the hall.", *["It rains."] * 4
    )
    assert choose(found, [0.1, 0.9, 0.8, *[0.0] * 4], make_length(sentences=2), words=60) == [0, 2]


def test_references_and_notices_of_rights_are_not_chosen() -> None:
    document = (
        "© Copyright Olm Corp. 2014.\n\nSmith, J. A postmortem for a bridge. Comm. ACM 12, 8 (1969).\n\n"
        "Ann sings in the hall today."
    )
    units = tuple(extraction_units(document))
    sizes = tuple(2 * len(unit.text.split()) for unit in units)
    found = ReadUnits(units, sizes, 0, 0, 1)
    scores = [0.9] * (len(units) - 1) + [0.1]
    assert choose(found, scores, make_length(words=60), words=60) == [len(units) - 1]


def test_a_unit_of_a_word_or_two_is_chosen_alone_only() -> None:
    found = read("Yes, yes.", "Eight nine ten eleven twelve.")
    assert choose(found, [0.9, 0.2], make_length(sentences=2), words=0) == [0, 1]
    assert choose(found, [0.5, 0.2], make_length(sentences=2), words=0) == [1]


@pytest.mark.usefixtures("everybody_understands")
def test_few_words_and_questions_are_worth_less() -> None:
    found = read("We found both.", "What did the survey find?", "Eight nine ten eleven twelve.")
    assert choose(found, [0.9, 0.6, 0.4], make_length(sentences=1), words=0) == [2]
    assert choose(found, [0.05, 0.9, 0.02], make_length(sentences=1), words=0) == [1]


def test_what_was_said_already_is_passed_over() -> None:
    found = read("The hall is cold today.", "Today the hall is cold.", "Bob left early for home.")
    assert choose(found, [0.9, 0.8, 0.1], make_length(sentences=2), words=0) == [0, 2]


def test_sentences_of_a_line_share_a_line() -> None:
    document = "Ann sings. Bob listens.\nIt rains."
    assert join_units(document, extraction_units(document)) == document


def test_sentences_that_stand_without_spaces_are_joined_without() -> None:
    document = "\u4e00\u4e8c\u3002\u4e09\u56db\u3002\u4e94\u516d\u3002"
    first, _, last = extraction_units(document)
    assert join_units(document, [first, last]) == first.text + last.text


def test_a_model_that_cannot_choose_says_so(tmp_path: Path) -> None:
    save("zcodepp", tmp_path / "plain")
    with pytest.raises(UserError, match="not trained to choose sentences"):
        open_extractor(tmp_path / "plain")


@pytest.mark.parametrize("states", [8, 0])
def test_a_scorer_of_another_encoder_or_a_damaged_one_is_refused(tmp_path: Path, states: int) -> None:
    save_scorer(UnitScorer(UnitScorerShape(states=16, width=16, heads=2)), tmp_path)
    if not states:
        (tmp_path / WEIGHTS_FILE).write_bytes((tmp_path / WEIGHTS_FILE).read_bytes()[:-40])
    with pytest.raises(UserError, match="invalid scorer"):
        load_scorer(tmp_path, states=states or 16)


def test_a_scorer_is_not_used_in_a_language_that_it_does_not_know(folder: Path, extractor: Extractor) -> None:
    german = (
        "Die Fähre auf dem See fährt bald mit Strom. Im Hafen gibt es einen Kiosk, und der ist im Winter zu. "
        "Der Strom für die Fähre auf dem See kommt aus dem Wasser des Flusses."
    )
    loaded = load_model(folder)
    english = EncoderExtractor.of(replace(loaded, use=replace(loaded.use, languages=("en",))))
    both = EncoderExtractor.of(replace(loaded, use=replace(loaded.use, languages=("en", "de"))))

    def scores(one: Extractor, document: str) -> list[float]:
        assert isinstance(one, EncoderExtractor)
        (found,) = one.scores([read_alone(UnitReader(one.model, one.tokenizer, max_source=64), document)])
        return found.units

    assert scores(english, DOCUMENT) == scores(both, DOCUMENT) == scores(extractor, DOCUMENT)
    assert scores(both, german) == scores(extractor, german)
    assert scores(english, german) == central_scores(extraction_units(german))


@pytest.mark.parametrize("text", ["Паром на озере. Он идёт.", "湖上的渡船。它开了。"])
def test_other_scripts_are_other_languages(text: str) -> None:
    units = extraction_units(text)
    found = scores_in_language(units, [0.5] * len(units), ("en",))
    assert found == central_scores(units)


@pytest.mark.parametrize(
    "text", ["Паром на озере. Он идёт.", "Il traghetto è sul lago. Non è più fermo, ma va con la corrente."]
)
def test_a_scorer_of_several_languages_serves_others_in_their_scripts(text: str) -> None:
    units = extraction_units(text)
    assert scores_in_language(units, [0.5] * len(units), ("en", "de", "ru")) == [0.5] * len(units)
    assert scores_in_language(units, [0.5] * len(units), ("el", "zh")) == central_scores(units)


def test_text_that_shows_no_language_is_left_to_the_scorer() -> None:
    units = extraction_units("foo(bar) baz[qux] 12. corge grault garply 13.")
    assert scores_in_language(units, [0.5] * len(units), ("en",)) == [0.5] * len(units)


def test_an_extract_whose_tokens_are_not_counted_is_not_lost_in_silence(
    extractor: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(extractor.tokens), "counts", lambda _, *texts: [1] * (len(texts) - 1))
    with pytest.raises(ValueError, match="shorter"):
        extractor.summarize([DOCUMENT, DOCUMENT], sentences=1)


def test_a_scorer_of_the_largest_size_is_read_and_a_larger_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_scorer(UnitScorer(UnitScorerShape(states=16, width=16, heads=2)), tmp_path)
    size = (tmp_path / WEIGHTS_FILE).stat().st_size
    monkeypatch.setattr(unit_scorer, "_MOST_BYTES", size)
    load_scorer(tmp_path, states=16)
    monkeypatch.setattr(unit_scorer, "_MOST_BYTES", size - 1)
    with pytest.raises(UserError, match="larger than"):
        load_scorer(tmp_path, states=16)


def test_a_document_that_is_read_whole_is_one_piece(extractor: Extractor) -> None:
    (tokens,) = extractor.tokens.tokenize([DOCUMENT])
    assert tokens is not None
    whole = ReadUnits.whole(tokens)
    assert (whole.pieces, whole.read, sum(whole.tokens)) == (1, *[tokens.document_tokens] * 2)
