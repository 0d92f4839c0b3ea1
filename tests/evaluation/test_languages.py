"""Scores in other languages: equal texts score 100, a letter makes a difference, and the language decides the words."""

import pytest
import sacrebleu

from precis.data.pairs.pair import Pair
from precis.evaluation.rouge import Rouge
from precis.evaluation.sacrebleu_scores import bleu, chrf, ter
from precis.phases.measure.task_metrics import scores_for

#: Of each language a text, and the same text with one word changed by a letter or a mark.
TEXTS = {
    "ru": ("Мост через реку закрыли на ремонт.", "Мост через реку закрыть на ремонт."),
    "tr": ("İki köprü ışık olmadığı için kapandı.", "İki köprü aşık olmadığı için kapandı."),
    "vi": ("Cây cầu mà họ xây đã bị đóng.", "Cây cầu má họ xây đã bị đóng."),
    "de": ("Die größte Brücke wird zur Übung gesperrt.", "Die großte Brücke wird zur Übung gesperrt."),
    "es": ("El año pasado cerraron el puente.", "El ano pasado cerraron el puente."),
    "zh": ("昨天大桥因维修而关闭。", "昨天大桥因检查而关闭。"),
}


@pytest.mark.parametrize("language", TEXTS)
def test_equal_texts_score_100_and_one_letter_is_another_word(language: str) -> None:
    text, other = TEXTS[language]
    for rouge in (Rouge.choose([], language=language), Rouge.choose([text])):
        same, changed = (rouge.score([one], [[text]]) for one in (text, other))
        assert all(values[0] == pytest.approx(100) for values in same.values())
        words = len(rouge.tokenize(text))
        wrong = len([a for a, b in zip(rouge.tokenize(text), rouge.tokenize(other), strict=True) if a != b])
        assert wrong >= 1
        assert changed["rouge1"][0] == pytest.approx(100 * (words - wrong) / words)
    assert bleu([text], [[text]]).score == pytest.approx(100)
    assert (chrf([text], [[text]]).score, ter([text], [[text]]).score) == (100, 0)
    assert chrf([other], [[text]]).score == sacrebleu.corpus_chrf([other], [[text]]).score < 100


def test_turkish_has_two_letters_i() -> None:
    upper, lower = "IŞIK İSTANBUL", "ışık istanbul"
    turkish = Rouge.choose([], language="tr", types=("rouge1",))
    assert turkish.tokenize(upper) == turkish.tokenize(lower) == ["ışık", "istanbul"]
    assert Rouge(tokenizer="unicode").tokenize(upper) != ["ışık", "istanbul"]
    assert "tok:unicode-tr" in turkish.signature


def test_chinese_is_scored_by_characters_as_sacrebleu_does() -> None:
    text, other = TEXTS["zh"]
    assert bleu([other], [[text]]).score == pytest.approx(
        sacrebleu.corpus_bleu([other], [[text]], tokenize="zh").score
    )
    assert "tok:zh" in bleu([other], [[text]]).signature
    assert "tok:13a" in bleu([TEXTS["ru"][1]], [[TEXTS["ru"][0]]]).signature
    by_characters = ter([other], [[text]])
    assert (
        by_characters.score
        == sacrebleu.corpus_ter([other], [[text]], normalized=True, asian_support=True).score
    )
    assert 0 < by_characters.score < 50


def test_a_task_brings_its_language() -> None:
    pairs = [Pair("Ein Artikel.", "OSLO IST KALT.")]
    asked = {name: scores_for(name, pairs).rouge for name in ("mlsum_de", "xsum")}
    assert (asked["mlsum_de"].tokenizer, asked["mlsum_de"].stemmer) == ("unicode", False)
    assert (asked["xsum"].tokenizer, asked["xsum"].stemmer) == ("rouge-score", True)
