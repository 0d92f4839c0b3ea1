"""What the lists of a language need."""

import subprocess
import sys

import pytest

from precis_text.language import has_case, language_of, languages, script_of

STEM = """
import sys
from precis_text.language import languages
assert languages()["en"].stem("boats") == "boat" and languages()["de"].stem("kosten") == "kost"
print(*{"scipy.stats", "sklearn", "pandas", "nltk"} & sys.modules.keys())
from nltk.metrics.association import fisher_exact
print(fisher_exact.__module__.partition(".")[0])
"""


@pytest.mark.long
def test_stems_need_no_library_of_statistics_and_leave_nltk_whole() -> None:
    done = subprocess.run([sys.executable, "-c", STEM], capture_output=True, text=True, check=True)
    loaded, source = done.stdout.split("\n")[:2]
    assert not loaded
    assert source == "scipy"


THREADS = """
import sys, threading
from precis_text.language import languages
languages()
start, done, seen, wrong = threading.Barrier(3), threading.Event(), set(), []
def stem():
    start.wait()
    try:
        wrong.extend([languages()["en"].stem("boats")] if languages()["en"].stem("boats") != "boat" else [])
    except BaseException as error:
        wrong.append(repr(error))
threads = [threading.Thread(target=stem) for _ in range(2)]
for thread in threads:
    thread.start()
start.wait()
while any(thread.is_alive() for thread in threads):
    seen |= {name for name in ("scipy.stats", "sklearn", "nltk", "nltk.stem") if name in sys.modules}
print(wrong, seen)
"""


def test_two_threads_stem_first_at_once_and_other_threads_see_no_change() -> None:
    """Another thread may import scipy or nltk at any moment."""
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)
    assert done.stdout == "[] set()\n"


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Straße 12", "latin"),
        ("Паром на озере", "cyrillic"),
        ("湖上的渡船", "zh"),
        ("カメラ", "ja"),
        ("漢" * 8 + "の", "ja"),
        ("漢" * 9 + "の", "zh"),  # one in ten may be a name
        ("漢字漢字のカ", "ja"),
        ("배가 간다", "ko"),
        ("Հայերեն", "armenian"),
        ("a" * 2001 + "я" * 9000, "latin"),  # of the first 4,000 letters
        ("12 !?", None),
        ("", None),
    ],
)
def test_a_script_is_that_of_most_letters_and_kana_mean_japanese(text: str, script: str | None) -> None:
    assert script_of(text) == script
    assert has_case(text) == (script in ("latin", "cyrillic", "armenian"))


@pytest.mark.parametrize(
    ("words", "unknown", "code"),
    [
        ("the with from", 22, "en"),  # three of 25
        ("the with from", 23, None),
        ("der und wird", 5, "de"),
        ("l’eau s'il d’où", 0, "fr"),
        ("the with from der und", 11, "en"),  # half as many again as of the next language
        ("the with der und", 11, None),
        ("não uma muito", 22, "pt"),
        ("não uma muito", 23, None),
        ("the with from não uma muito", 10, "en"),
        ("the with não uma muito", 10, "pt"),
        ("kdo bude podle", 22, "cs"),
        ("não uma muito niet een wordt", 10, None),
        ("Паром на озере", 0, "cyrillic"),
        ("", 0, None),
    ],
)
def test_a_language_has_12_percent_of_the_words_and_more_than_the_others(
    words: str, unknown: int, code: str | None
) -> None:
    assert language_of(f"{words} {'xylo ' * unknown}") == code


@pytest.mark.parametrize(
    ("code", "word", "value"),
    [
        ("en", "zero", 0),
        ("en", "nineteen", 19),
        ("en", "twenty", 20),
        ("en", "first", 1),
        ("en", "twentieth", 20),
        ("en", "dozen", 12),
        ("de", "einundzwanzig", 21),
        ("de", "zweiunddreißig", 32),
        ("de", "neunundneunzig", 99),
        ("de", "dritte", 3),
        ("fr", "soixante", 60),
        ("es", "décimo", 10),
    ],
)
def test_number_words_have_their_values(code: str, word: str, value: float) -> None:
    assert languages()[code].numbers[word] == value
    assert "zehnundzwanzig" not in languages()[code].numbers


def test_months_are_twelve_and_only_german_nouns_have_capitals() -> None:
    assert {code: len(known.months) for code, known in languages().items()} == dict.fromkeys(languages(), 12)
    assert [code for code, known in languages().items() if known.capitalizes_nouns] == ["de"]


def test_german_says_ones_before_tens() -> None:
    numbers = {code: languages()[code].numbers for code in ("de", "en")}
    assert (numbers["de"]["einundzwanzig"], numbers["de"]["neunundneunzig"], numbers["en"]["twenty"]) == (
        21,
        99,
        20,
    )
    assert not [word for word in numbers["en"] if word.endswith("undtwenty")]
