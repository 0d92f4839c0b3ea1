"""The main part of a web page is read whole; menus, requests for consent and what looks like a frame are not."""

from __future__ import annotations

import pytest

from precis_text.documents.html_text import parse_page
from precis_text.documents.passages import Passages, Writer
from precis_text.documents.web_page import _write_article

MENUS, CONSENT = "menus and other parts around the article left out", "a request for consent left out"
STORY = "The mill on the river Arn ground rye for nine villages."  # 11 words
FIRST, SECOND = (" ".join(f"{STORY[:-1]} in the year {k}." for k in years) for years in ((1, 2), (3, 4, 5)))
PROSE = f"{FIRST}\n{SECOND}"  # 15 words a sentence


def read(body: str, answer: str = PROSE) -> Passages:
    """Read a page whose article is known."""
    writer = Writer()
    _write_article(parse_page(f"<body>{body}</body>"), answer, writer)
    return writer.finished()


def is_kept(box: str, answer: str = PROSE, around: str = "<div><p>{}</p>{}<p>{}</p></div>") -> bool:
    """Whether OATS in a box within the text of an article is read."""
    found = read(around.format(FIRST, box, SECOND), answer)
    assert STORY[:-1] in found.text
    assert ("OATS" in " ".join(text for _, text in found.left)) != ("OATS" in found.text)
    return "OATS" in found.text


def test_only_a_long_answer_shows_where_the_article_is() -> None:
    box = "<div class=sidebar>OATS</div>"
    assert len(PROSE) > 250
    assert not is_kept(box)
    assert not is_kept(box, PROSE[:250])
    assert is_kept(box, PROSE[:249])
    assert is_kept(box, "")


@pytest.mark.parametrize(("words", "kept"), [(75, False), (76, True)])
def test_an_answer_with_less_than_half_of_the_prose_is_not_the_article(words: int, kept: bool) -> None:
    rest = f"<p>{'oats ' * (words - 1)}OATS.</p>"
    found = read(f"<main><p>{FIRST}</p><p>{SECOND}</p></main>{rest}")
    assert ("OATS" in found.text) == kept


def test_words_outside_sentences_count_where_there_are_no_sentences() -> None:
    answer = "\n".join(f"Cod eel ray hake bream from boat {k} of Olm" for k in range(10))  # 10 words each
    lines = "".join(f"<p>{line}</p>" for line in answer.split("\n"))
    for words, is_found in ((100, True), (101, False)):
        found = read(f"<main>{lines}</main><section>{'oats ' * words}</section>", answer)
        assert ("oats" not in found.text) == is_found


def test_the_article_is_the_smallest_part_that_holds_nine_tenths_of_it() -> None:
    paragraphs = [f"<p>{STORY[:-1]} since {year}.</p>" for year in range(1840, 1850)]
    answer = "\n".join(p[3:-4] for p in paragraphs)
    nine = read(f"<div><section>{''.join(paragraphs[:9])}</section>{paragraphs[9]}</div>", answer)
    assert "1848" in nine.text
    assert "1849" not in nine.text
    eight = read(f"<div><section>{''.join(paragraphs[:8])}</section>{''.join(paragraphs[8:])}</div>", answer)
    assert "1849" in eight.text


def test_all_text_around_the_part_that_is_read_is_named_once() -> None:
    article = f"<main>c<p>{FIRST}</p><p>{SECOND}</p>d</main>"
    body = f"a<div>b{article}e<script>f</script>g</div>h<style>i</style><p>j<b>k</b>l</p>"
    found = read(body)
    assert found.text == f"c\n\n{FIRST}\n\n{SECOND}\n\nd"
    assert sorted(text.strip() for _, text in found.left if len(text) < 3 and text.strip()) == [*"abeghjkl"]
    assert [*found.notes] == [MENUS]


@pytest.mark.parametrize(
    ("box", "kept"),
    [
        ("<p>OATS</p>", True),
        ("<div class=sidebar>OATS</div>", False),
        ("<div id=x-share-y>OATS</div>", False),
        ("<div class=shareholder>OATS</div>", True),
        ("<span class=sidebar>OATS</span>", True),
        ("<div role=navigation>OATS</div>", False),
        ("<div class=my-navigations>OATS</div>", True),
        ("<nav>OATS</nav>", False),
        ("<header>OATS</header>", False),
        ("<footer>OATS</footer>", False),
        ("<aside>OATS</aside>", False),
        ("<article><header>OATS</header></article>", True),
        ("<article><div><footer>OATS</footer></div></article>", True),
        ("<main><aside>OATS</aside></main>", True),
        ("<article><nav>OATS</nav></article>", False),
        ("<section><aside>OATS</aside></section>", False),
        ("<div class=sidebar>OATS The mill on the river Arn ground</div>", True),  # of the article
        ("<div class=sidebar>OATS <p>The mill on the</p></div>", False),
    ],
)
def test_what_looks_like_a_frame_is_left_out_unless_it_is_of_the_article(box: str, kept: bool) -> None:
    assert is_kept(box) == kept


def test_half_of_the_words_of_a_box_make_it_no_part_of_the_article() -> None:
    known = "<p>The mill on the river Arn</p>"
    assert not is_kept(f"<div class=sidebar>{known} <i>of us in Olm so OATS</i></div>")
    assert is_kept(f"<div class=sidebar>{known} <i>of us in Olm OATS</i></div>")


@pytest.mark.parametrize(("answer", "kept"), [(PROSE, False), ("", True)])
def test_names_of_boxes_count_where_the_article_was_found(answer: str, kept: bool) -> None:
    assert is_kept("<div class=related>OATS</div>", answer) == kept
    assert not is_kept("<nav>OATS</nav>", answer)
    assert not is_kept("<div role=navigation>OATS</div>", answer)


@pytest.mark.parametrize(
    ("box", "kept"),
    [
        ("<div class=cookie-banner>OATS</div>", False),
        ("<div id=cookies>OATS</div>", False),
        ("<section class='a consent'>OATS</section>", False),
        ("<div class=cookie-banner>OATS The mill on the river Arn ground</div>", False),
        ("<div class=has-cookie-banner-text>OATS</div>", False),
        ("<div class=cookie-jar>OATS</div>", True),
        ("<header class=cookie-banner>OATS</header>", False),
        ("<i class=cookie-banner>OATS</i>", True),
    ],
)
def test_a_request_for_consent_is_named_as_one(box: str, kept: bool) -> None:
    assert is_kept(box) == is_kept(box, "") == kept
    if not kept:
        assert [*read(f"<div><p>{FIRST}</p>{box}<p>{SECOND}</p></div>").notes] == [
            MENUS if "<header" in box else CONSENT
        ]


def test_a_box_with_most_of_the_prose_is_no_frame() -> None:
    parts = [f"<p>{STORY}</p>", f"<p>{STORY}</p>"]
    assert STORY in read(f"<nav>{parts[0]}{parts[1]}</nav>{parts[0]}", "").text
    assert read(f"<nav>{parts[0]}</nav>{parts[1]}", "").text == STORY


LINK = "<a href=/>two words</a> "


@pytest.mark.parametrize(
    ("box", "kept"),
    [
        (f"<ul>{LINK * 3}a b OATS</ul>", False),
        (f"<ul>{LINK * 3}a b c OATS</ul>", True),
        (f"<ul>{LINK * 2} OATS</ul>", True),
        (f"<ul>{LINK * 3} OATS</ul>".replace("href", "name"), True),
        (f"<ul>{LINK * 30}Nobody knows the OATS.</ul>", True),
        (f"<ul>{LINK * 30}Nobody knows OATS.</ul>", False),  # shorter than a sentence
        (f"<ul>{LINK * 2}<a href=/>Nobody knows where the OATS are.</a></ul>", False),
        (f"<ul>{LINK * 2}<a href=/><b>Nobody knows where the OATS are.</b></a></ul>", False),
        (f"<ul>{LINK * 3}a <script>a b c d e</script> b OATS</ul>", False),
        (f"<ul>{LINK * 2}<template>{LINK}</template> OATS</ul>", True),
    ],
)
def test_three_links_and_few_other_words_are_a_menu(box: str, kept: bool) -> None:
    assert is_kept(box, "") == kept


def test_words_of_scripts_without_spaces_count_one_by_one() -> None:
    links = "<a href=/>水車</a>" * 3
    assert is_kept(f"<ul>{links}小屋麦OATS</ul>", "")
    assert not is_kept(f"<ul>{links}小屋OATS</ul>", "")


@pytest.mark.parametrize("start", range(0, 7))
def test_an_article_is_known_by_five_words_in_a_row_wherever_they_begin(start: int) -> None:
    words = STORY[:-1].split()[start:]
    assert is_kept(f"<div class=sidebar>{' '.join(words)} <i>OATS</i></div>") == (len(words) >= 5)
