"""ROUGE: the figures of rouge-score, plus split sentences, several references and any script."""

from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer
from rouge_score.rouge_scorer import RougeScorer

import precis
from precis.data.tasks.tasks import TASKS
from precis.evaluation.rouge import ROUGE_TYPES, Rouge, lcs_length, union_hits
from precis_text.errors import UserError
from precis_text.sentences import split_sentences

_WORD = st.sampled_from(
    ["the", "mill", "burned", "down", "nobody", "was", "hurt", "at", "3.5", "o'clock", ".", "!", "\n"]
)
_TEXT = st.lists(_WORD, max_size=25).map(" ".join)
_SCRIPTS = {
    "Russian": "Старая мельница сгорела. Никто не пострадал.",
    "Japanese": "古い水車小屋が燃えた。けが人はいない。",
    "Chinese": "老磨坊烧毁了。没有人受伤。",
    "Arabic": "احترقت الطاحونة القديمة. لم يصب أحد.",
    "Hindi": "पुरानी चक्की जल गई। कोई घायल नहीं हुआ।",
    "Thai": "โรงสีเก่าถูกไฟไหม้ ไม่มีใครบาดเจ็บ",
    "Korean": "낡은 방앗간이 탔다. 다친 사람은 없다.",
    "Greek": "Ο παλιός μύλος κάηκε. Κανείς δεν τραυματίστηκε.",
    "Hebrew": "הטחנה הישנה נשרפה. איש לא נפגע.",
    "Georgian": "ძველი წისქვილი დაიწვა. არავინ დაშავებულა.",
    "Tamil": "பழைய ஆலை எரிந்தது. யாரும் காயமடையவில்லை.",
    "Amharic": "አሮጌው ወፍጮ ተቃጠለ። ማንም አልተጎዳም።",
}


@given(_TEXT, _TEXT, st.booleans())
@settings(deadline=None, max_examples=150)
def test_every_measure_equals_rouge_score_on_the_same_lines(
    prediction: str, target: str, stemmer: bool
) -> None:
    ours = Rouge(stemmer=stemmer, split="newline").score([prediction], [[target]])
    theirs = RougeScorer(list(ROUGE_TYPES), use_stemmer=stemmer).score(target, prediction)
    for name in ROUGE_TYPES:
        assert ours[name][0] == 100 * theirs[name].fmeasure


@pytest.mark.parametrize(("stemmer", "shared"), [(True, 100.0), (False, 25.0)])
def test_a_stemmer_makes_forms_of_a_word_equal(stemmer: bool, shared: float) -> None:
    prediction, target = "boats raised sails quickly", "boat raises sail quickly"
    (ours,) = Rouge(types=("rouge1",), stemmer=stemmer).score([prediction], [[target]])["rouge1"]
    theirs = RougeScorer(["rouge1"], use_stemmer=stemmer).score(target, prediction)["rouge1"]
    assert ours == 100 * theirs.fmeasure == shared
    (words,) = Rouge(types=("rouge1",), stemmer=stemmer, tokenizer="unicode").score([prediction], [[target]])[
        "rouge1"
    ]
    assert words == shared


@given(_TEXT, _TEXT)
@settings(deadline=None, max_examples=60)
def test_lsum_is_rouge_score_on_split_sentences_and_the_rest_sees_no_difference(
    prediction: str, target: str
) -> None:
    def on_lines(text: str) -> str:
        return text if "\n" in text.strip() else "\n".join(split_sentences(text))

    ours = Rouge().score([prediction], [[target]])
    split = RougeScorer(list(ROUGE_TYPES), use_stemmer=True).score(on_lines(target), on_lines(prediction))
    raw = RougeScorer(list(ROUGE_TYPES), use_stemmer=True).score(target, prediction)
    assert ours["rougeLsum"][0] == 100 * split["rougeLsum"].fmeasure
    for name in ("rouge1", "rouge2", "rougeL"):
        assert ours[name][0] == 100 * raw[name].fmeasure


def test_words_of_up_to_three_letters_and_those_of_other_scripts_keep_their_endings() -> None:
    assert Rouge(tokenizer="unicode").tokenize("ads boats größes") == ["ads", "boat", "größes"]


def test_lsum_without_line_splitting_falls_to_rouge_l() -> None:
    prediction, target = "The mill burned. Nobody was hurt.", "Nobody was hurt. The mill burned."
    split = Rouge().score([prediction], [[target]])
    unsplit = Rouge(split="newline").score([prediction], [[target]])
    assert split["rougeLsum"][0] == 100
    assert unsplit["rougeLsum"][0] == unsplit["rougeL"][0] == split["rougeL"][0] == 50


def test_a_text_that_has_lines_is_not_split_again() -> None:
    rouge = Rouge()
    assert rouge.lines("One. Two.\nThree.") == "One. Two.\nThree."
    assert rouge.lines("One. Two.\n") == "One.\nTwo."


@pytest.mark.parametrize("language", _SCRIPTS)
def test_identical_text_scores_100_in_any_script_with_the_unicode_tokenizer(language: str) -> None:
    text = _SCRIPTS[language]
    scores = Rouge(tokenizer="unicode").score([text], [[text]])
    assert {name: values[0] for name, values in scores.items()} == dict.fromkeys(ROUGE_TYPES, 100.0)


def test_the_default_tokenizer_gives_0_on_identical_russian_as_rouge_score_does() -> None:
    text = _SCRIPTS["Russian"]
    assert Rouge().score([text], [[text]])["rouge1"][0] == 0


@given(_TEXT, _TEXT)
@settings(deadline=None, max_examples=60)
def test_both_tokenizers_agree_on_english(prediction: str, target: str) -> None:
    ascii_scores = Rouge().score([prediction], [[target]])
    unicode_scores = Rouge(tokenizer="unicode").score([prediction], [[target]])
    assert all(ascii_scores[name][0] == unicode_scores[name][0] for name in ROUGE_TYPES)


@given(st.text(max_size=40), st.text(max_size=40))
@settings(deadline=None, max_examples=100)
def test_scores_lie_between_0_and_100_on_any_text(prediction: str, target: str) -> None:
    for values in Rouge(tokenizer="unicode").score([prediction], [[target]]).values():
        assert 0 <= values[0] <= 100


@given(_TEXT, st.lists(_TEXT, min_size=1, max_size=4), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=50)
def test_the_order_of_references_is_irrelevant(prediction: str, targets: list[str], random: object) -> None:
    shuffled = list(targets)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for how in ("max", "mean"):
        rouge = Rouge(references=how)
        first, second = rouge.score([prediction], [targets]), rouge.score([prediction], [shuffled])
        assert all(np.allclose(first[name], second[name], atol=1e-10) for name in ROUGE_TYPES)


def test_several_references_count_by_the_best_of_each_measure_as_score_multi() -> None:
    prediction = "the mill burned down at night"
    targets = ["at night the mill burned down", "the mill burned", "nobody was hurt"]
    best = Rouge(split="newline").score([prediction], [targets])
    theirs = RougeScorer(list(ROUGE_TYPES), use_stemmer=True).score_multi(targets, prediction)
    mean = Rouge(split="newline", references="mean").score([prediction], [targets])
    single = Rouge(split="newline").score([prediction] * 3, [[target] for target in targets])
    for name in ROUGE_TYPES:
        assert best[name][0] == 100 * theirs[name].fmeasure == single[name].max()
        assert mean[name][0] == pytest.approx(single[name].mean())


def test_an_empty_prediction_scores_0() -> None:
    assert all(values[0] == 0 for values in Rouge().score([""], [["the mill burned"]]).values())


def test_the_signature_names_every_choice() -> None:
    assert Rouge().signature == (
        "rouge|types:1,2,L,Lsum|stem:porter|tok:rouge-score|split:precis-rules-7|refs:max"
        f"|version:{version('rouge-score')}|precis:{precis.__version__}"
    )
    other = Rouge(types=("rougeL",), stemmer=False, tokenizer="unicode", split="newline", references="mean")
    assert other.signature.startswith("rouge|types:L|stem:no|tok:unicode|split:newline|refs:mean|")
    assert Rouge.from_dict(other.to_dict()) == other


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"types": ("rougeX",)}, "unknown ROUGE type 'rougeX'"),
        ({"types": ("rouge0",)}, "unknown ROUGE type 'rouge0'"),
        ({"types": ()}, "no ROUGE type"),
        ({"tokenizer": "unicod"}, "did you mean 'unicode'"),
        ({"split": "nltk"}, "unknown ROUGE split 'nltk'"),
    ],
)
def test_unknown_choices_are_refused_with_what_is_known(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Rouge(**settings_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["a"], [], "1 predictions for 0 examples"),
        (["a"], [[]], "example 1 lacks a reference"),
        (["a"], ["a"], "give a list of texts"),
    ],
)
def test_unequal_or_missing_references_are_refused(
    predictions: list[str], references: list[list[str]], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Rouge().score(predictions, references)


_SENTENCES = {
    "en": "The mill at Ashby burned down, and the café beside it closed on Monday.",
    "de": "Die größte Mühle brannte ab; die Übung für Schüler fällt aus.",
    "es": "El molino más viejo se quemó, y la señora volvió mañana.",
    "fr": "Le moulin à côté de l'école a brûlé.",
    "ru": "Мельница сгорела в понедельник.",
    "tr": "Değirmen pazartesi günü yandı, çocuklar üzüldü.",
    "vi": "Cối xay gió bị cháy, trẻ em buồn.",
    "zh": "磨坊星期一烧毁了。",
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("language", _SENTENCES)
def test_identical_text_scores_100_in_every_language(language: str, known: bool) -> None:
    text = _SENTENCES[language]
    rouge = Rouge.choose([text] * 3, language=language if known else None)
    scores = rouge.score([text], [[text]])
    assert {name: values[0] for name, values in scores.items()} == dict.fromkeys(rouge.types, 100.0)


def test_every_language_of_the_task_table_has_its_words_counted() -> None:
    for task in TASKS.values():
        assert (Rouge.choose([], language=task.language).tokenizer == "rouge-score") == (
            task.language == "en"
        )


def test_tones_tell_words_apart_where_the_language_has_them() -> None:
    rouge = Rouge.choose(["má mà mạ"])
    assert (rouge.tokenizer, rouge.stemmer) == ("unicode", False)
    assert rouge.score(["mà"], [["má"]])["rouge1"][0] == 0
    assert "stem:no|tok:unicode" in rouge.signature


def test_a_few_foreign_names_leave_english_english() -> None:
    foreign = "The council met in Zürich on Monday and did not decide anything at all about the bridge."
    plain = ["Nothing new was said by anybody, and the session ended before noon."] * 9
    assert Rouge.choose([foreign, *plain]) == Rouge()
    assert Rouge.choose(plain, tokenizer="unicode").tokenizer == "unicode"


_TOKENS = st.lists(st.sampled_from("abcde"), max_size=90)
_TOKENIZED = st.lists(st.lists(st.sampled_from("abcd"), max_size=12), min_size=1, max_size=5)


@given(_TOKENS, _TOKENS)
@settings(deadline=None, max_examples=100)
def test_length_equals_the_last_cell_of_rouge_scores_table(
    reference: list[str], candidate: list[str]
) -> None:
    assert lcs_length(reference, candidate) == rouge_scorer._lcs_table(reference, candidate)[-1][-1]


@given(_TOKENIZED, _TOKENIZED)
@settings(deadline=None, max_examples=300)
def test_union_hits_equal_rouge_scores_summary_level_lcs(
    references: list[list[str]], candidates: list[list[str]]
) -> None:
    wanted, given_tokens = sum(map(len, references)), sum(map(len, candidates))
    expected = rouge_scorer._summary_level_lcs(references, candidates)
    hits = union_hits(references, candidates)
    assert hits == (round(expected.recall * wanted) if wanted and given_tokens else 0)
