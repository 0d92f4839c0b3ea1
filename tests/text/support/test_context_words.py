"""Numbers and names that a source has, but not beside these words."""

import pytest

from precis_text.language import languages
from precis_text.support.context_words import NameContext, NumberContext
from precis_text.support.numbers import numbers_of
from precis_text.support.placed_words import words_of

FAR = "It was in the best of all the years that anybody in the old town remembers."


def contradicts(source: str, sentence: str, code: str | None = "en") -> bool:
    language = languages()[code] if code else None
    known, words = words_of(source), words_of(sentence)
    context = NumberContext(source, known, numbers_of(source, language, words=known), language)
    return context.contradict(numbers_of(sentence, language, words=words)[0], sentence, words)


@pytest.mark.parametrize(
    ("source", "sentence", "contradicted"),
    [
        (f"It is 2 hours. {FAR} It has 30 seats.", "It is 30 hours.", True),
        (f"It is 2 hours. {FAR} It has 30 seats.", "It is 2 hours.", False),
        (f"It is 2 hours. {FAR} It has 30 seats.", "It is 30 years.", False),  # "years" has no number there
        (f"It is 2-hours. {FAR} It has 30 seats.", "It is 30\nhours.", True),
        (f"It is 2 (hours). {FAR} It has 30 seats.", "It is 30 hours.", False),
        # the number may be six words before the word, or behind it
        ("We have 7 a b c d e boats. But 3 boats.", "The 7 boats.", False),
        ("We have 7 a b c d e f boats. But 3 boats.", "The 7 boats.", True),
        ("But 3 boats. We saw the boats a b c d e 7 times.", "The 7 boats.", False),
        ("But 3 boats. We saw the boats a b c d e f 7 times.", "The 7 boats.", True),
        (f"It is 12% more. {FAR} It has 40 seats.", "It is 40% more.", True),
        (f"It is 12 percent more. {FAR} It has 40 seats.", "It is 40% more.", True),
        (f"It is 12% more. {FAR} It has 40 seats.", "It is 12% more.", False),
        (f"It is 12% more. {' ' * 18}It has 40 seats.", "It is 40% more.", True),
        (f"It is 12% more. {' ' * 7}It has 40 seats.", "It is 40% more.", False),  # 25 characters away
        (f"It costs $5. {FAR} It has 9 seats.", "It costs $9.", True),
        (f"It costs $5. {FAR} It has 9 seats.", "It costs $5.", False),
        (f"It costs $5. {FAR} It has 9 seats.", "It costs 9€.", False),
        (f"It is version 3. {FAR} It has 5 seats.", "It is version 5.", True),
        (f"It is version 3. {FAR} It has 5 seats.", "Version 5 is it.", True),
        (f"It is version 3. {FAR} It has 5 seats.", "It is version five.", False),
        (f"It is version 3. {FAR} It has 5 seats.", "It is version 5 to 7.", False),
        (f"It is version 3. {FAR} It has 5 seats.", "It is version (5).", False),
        (f"It is 3 km. {FAR} It has 5 seats.", "It is 5 km.", False),  # too short a word
        (f"It is 3 mph. {FAR} It has 5 seats.", "It is 5 mph.", True),
        (f"It is 3-fold. {FAR} It has 5 seats.", "It is 5-fold.", False),
        (f"It has 3 of them. {FAR} It has 5 seats.", "It has 5 of them.", False),
        (f"It has 3 other boats. {FAR} It has 5 seats.", "It has 5 other boats.", False),
        (f"It has one boat. {FAR} It has 5 seats.", "It has 5 boats.", False),  # "one" mostly does not count
        (f"It has two boats. {FAR} It has 5 seats.", "It has 5 boats.", True),
    ],
)
def test_a_number_is_doubted_that_the_source_has_beside_other_words(
    source: str, sentence: str, contradicted: bool
) -> None:
    assert contradicts(source, sentence) == contradicted


def test_without_word_lists_words_are_compared_as_they_are() -> None:
    source = f"It is 2 hours. {FAR} It has 30 seats."
    assert contradicts(source, "It is 30 hours.", None)
    assert not contradicts(source, "It is 30 hour.", None)
    assert contradicts(source, "It is 30 hour.")


@pytest.mark.parametrize(
    ("source", "name", "doubted"),
    [
        ("Ann Smith then met Tom Jones.", "Ann Jones", ["Ann Jones"]),
        ("Ann Smith met Tom Jones.", "Ann Jones", []),  # four words apart
        ("Ann Smith then met Tom Jones.", "Ann Smith", []),
        ("Ann Smith then met Tom Jones.", "Jones Ann", []),
        ("Ann Smith then met Tom Jones.", "Ann Berg", []),
        ("Ann, Smith then met Tom Jones.", "Ann Jones", []),  # no neighbours there
        ("Ann Smith then met Tom JONES.", "Ann JONES", []),
        ("A Smith then met Tom Jones.", "A Jones", []),
        ("Mayor Ann then met Ann Smith and the old President Smith.", "President Ann Smith", []),
        ("Mayor Ann then soon met Bo Smith and President Smith.", "President Ann Smith", ["President Ann"]),
    ],
)  # fmt: skip
def test_neighbours_of_a_name_are_doubted_that_the_source_has_beside_others(
    source: str, name: str, doubted: list[str]
) -> None:
    context = NameContext(source, words_of(source), languages()["en"])
    found = context.contradicted(words_of(name))
    assert [f"{one.text} {two.text}" for one, two in found] == doubted
