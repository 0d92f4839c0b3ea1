"""LexRank and TextRank against their definition on small graphs, and against sumy's values."""

import numpy as np
import pytest

from precis_text.centrality import WINDOW, TermCounts, _walk, cosines, in_windows, lex_rank, text_rank

_DOCUMENT = [
    "The bridge at Olm was closed because a pillar had cracked.",
    "Engineers found the crack in the pillar during a yearly inspection.",
    "The repair of the bridge takes nine weeks and costs two million.",
    "A choir sang in the square.",
    "Until the bridge opens, a ferry crosses the river every hour.",
    "The ferry is free for those who live at the river.",
    "The pillar is in the river, and the river wore it out.",
]
_UNITS = [text.lower().replace(",", "").rstrip(".").split() for text in _DOCUMENT]


def test_the_cosine_of_two_units_is_that_of_their_tf_idf_vectors() -> None:
    found = cosines(TermCounts.of([["a", "b", "b"], ["b", "c"], ["d"], ["e"]]))
    idf = {"a": np.log(4 / 2), "b": np.log(4 / 3), "c": np.log(4 / 2)}
    first, second = np.array([idf["a"] / 2, idf["b"], 0]), np.array([0, idf["b"], idf["c"]])
    expected = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert found[0, 1] == found[1, 0] == pytest.approx(expected)
    assert found[0, 0] == pytest.approx(1)
    assert found[2, :2].tolist() == [0, 0]


@pytest.mark.parametrize("rank", [lex_rank, text_rank])
def test_the_unit_that_shares_words_with_most_is_the_most_central(rank: object) -> None:
    units = [["a", "b", "x"], ["b", "c", "y"], ["c", "d", "z"], ["e", "f", "g"], ["h", "i", "j"]]
    scores = rank(units)  # type: ignore[operator]
    assert scores.sum() == pytest.approx(1)
    assert int(scores.argmax()) == 1
    assert scores[3] == pytest.approx(scores[4])


@pytest.mark.parametrize("rank", [lex_rank, text_rank])
def test_units_without_words_and_no_units_have_scores(rank: object) -> None:
    assert rank([]).shape == (0,)  # type: ignore[operator]
    scores = rank([[], ["a"], []])  # type: ignore[operator]
    assert np.isfinite(scores).all()
    assert scores.sum() == pytest.approx(1)


def test_shares_are_where_a_walk_with_jumps_ends() -> None:
    links = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]], dtype=np.float64)
    steps = links / np.maximum(links.sum(1, keepdims=True), 1)
    shares = np.full(4, 0.25)
    for _ in range(300):
        shares = 0.85 * (shares @ steps) + 0.15 / 4
        shares /= shares.sum()
    np.testing.assert_allclose(_walk(steps, 0.15), shares, rtol=1e-12)


def test_long_documents_are_compared_window_by_window() -> None:
    units = [_UNITS[place % len(_UNITS)] for place in range(WINDOW + 7)]
    found = in_windows(text_rank, units)
    assert found.shape == (WINDOW + 7,)
    assert found[:WINDOW].mean() == pytest.approx(1)
    np.testing.assert_allclose(found[WINDOW:], text_rank(units[WINDOW:]) * 7)


class _Words:
    """The tokenizer that sumy's documents ask for."""

    def to_words(self, text: str) -> tuple[str, ...]:
        return tuple(text.split())


def _of_sumy(kind: str, units: list[list[str]]) -> np.ndarray:
    """Return the values that sumy walks to, of sum 1."""
    dom = pytest.importorskip(
        "sumy.models.dom", reason="sumy is not installed: pip install --group benchmarks"
    )
    module = pytest.importorskip(f"sumy.summarizers.{kind}")
    sentences = [dom.Sentence(" ".join(words), _Words()) for words in units]
    document = dom.ObjectDocumentModel([dom.Paragraph(sentences)])
    if kind == "text_rank":
        summarizer = module.TextRankSummarizer()
        summarizer.epsilon = 1e-9
        ranks = summarizer.rate_sentences(document)
        values = np.array([ranks[sentence] for sentence in sentences])
    else:
        summarizer = module.LexRankSummarizer()
        words = [list(sentence.words) for sentence in sentences]
        tf, idf = summarizer._compute_tf(words), summarizer._compute_idf(words)
        matrix = summarizer._create_matrix(words, summarizer.threshold, tf, idf)
        values = summarizer.power_method(matrix, 1e-9)
    return np.asarray(values / values.sum())


def _made(seed: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[f"w{word}" for word in rng.zipf(1.4, rng.integers(3, 20)) % 60] for _ in range(25)]


@pytest.mark.parametrize("seed", range(5))
def test_lexrank_has_the_values_of_sumy(seed: int) -> None:
    units = _made(seed)
    np.testing.assert_allclose(lex_rank(units, restart=0), _of_sumy("lex_rank", units), atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_textrank_has_the_values_of_sumy(seed: int) -> None:
    units = _made(seed)
    np.testing.assert_allclose(text_rank(units), _of_sumy("text_rank", units), atol=1e-6)
