"""A comparison of models: what its tables count and its page shows."""

from dataclasses import replace

import pytest

from precis.data.pairs.pair import Pair
from precis.evaluation.comparison import ComparedSummary, Comparison
from precis.evaluation.offline_pages import comparison_page
from precis.evaluation.rouge import Rouge
from precis_text.length import Words

BOATS = "Ann sold 3 boats to Bob in March. It rained <all> day. Bob paid 900 pounds for the boats."
MILL = "The mill in Arlen burned down in 1904. Nobody was hurt. Carl built another one in 1906."


def made(text: str, **fields: object) -> ComparedSummary:
    return replace(ComparedSummary(text=text, seconds=0.5, opening=2.0, memory=300.4), **fields)  # type: ignore[arg-type]


@pytest.fixture
def comparison() -> Comparison:
    """Two models on two documents, one of them with a reference."""
    quoted = made(
        "Ann sold 3 boats to Bob in March.", reasons={"Ann sold 3 boats to Bob in March.": "it is <bad>"}
    )
    return Comparison(
        pairs=[Pair(BOATS, "Ann sold Bob 3 boats.", (), "boats"), Pair(MILL, "", (), "mill")],
        summaries={
            "first": [quoted, made("The mill in Arlen burned down in 1904.", seconds=1.5)],
            "second": [
                made(
                    "Ann sold Bob 7 boats and Carl of Berlin paid for all of them.",
                    memory=None,
                    is_whole=False,
                ),
                made("", error="the model wrote nothing", finished=False, opening=None),
            ],
        },
        cap=Words(count=8),
    )


def rows(comparison: Comparison, title: str) -> dict[str, dict[str, str]]:
    """Return the rows of a table by model."""
    (found,) = [table for table in comparison.tables() if table.title == title]
    return {row[0]: dict(zip(found.header, row, strict=True)) for row in found.rows}


def test_speed_and_memory_are_those_of_each_model(comparison: Comparison) -> None:
    speed = rows(comparison, "Speed and memory")
    assert speed["first"]["seconds a document"].startswith("1.00 [0.50, 1.50]")
    assert speed["first"]["words a second"] == "18"  # 36 words in 2 seconds
    assert (speed["first"]["memory MiB"], speed["first"]["read whole %"]) == ("300", "100")
    assert (speed["second"]["memory MiB"], speed["second"]["read whole %"]) == ("300", "50")
    assert [speed[name]["seconds to open"] for name in speed] == ["2.0", "2.0"]
    served = [replace(each, memory=None, opening=None) for each in comparison.summaries["first"]]
    remote = rows(replace(comparison, summaries={"server": served}), "Speed and memory")["server"]
    assert (remote["memory MiB"], remote["seconds to open"]) == ("-", "-")


def test_of_one_document_no_figure_has_an_interval(comparison: Comparison) -> None:
    one = replace(
        comparison, pairs=comparison.pairs[:1], summaries={"only": comparison.summaries["first"][:1]}
    )
    for table in one.tables():
        assert not [cell for row in table.rows for cell in row if "[" in str(cell)]
    assert rows(one, "Summaries")["only"]["with a mark %"] == "0.0"
    assert [table.title for table in one.tables()] == ["Speed and memory", "Summaries", "ROUGE", "Agreement"]


def test_broken_caps_cuts_marks_and_failures_are_counted(comparison: Comparison) -> None:
    shape = rows(comparison, "Summaries")
    first, second = shape["first"], shape["second"]
    assert (first["over the cap"], second["over the cap"]) == ("0", "1")
    assert (first["cut off"], second["cut off"]) == ("0", "1")
    assert (first["quoted %"], second["written %"]) == ("100", "100")
    assert (first["written %"], second["quoted %"]) == ("0", "0")
    assert (first["words"], first["other language %"]) == ("8.0", "0")
    assert (first["with a mark %"][:3], second["with a mark %"][:4]) == ("0.0", "50.0")
    assert (first["without a summary"], second["without a summary"]) == ("0", "1")
    assert rows(replace(comparison, cap=None), "Summaries")["second"]["over the cap"] == "-"


def test_marks_need_no_rouge(comparison: Comparison) -> None:
    assert all(not system.metrics for system in comparison.marks.systems)


def test_rouge_needs_references_and_agreement_does_not(comparison: Comparison) -> None:
    assert comparison.scores is not None
    assert len(comparison.scores.pairs) == 1
    assert "[" not in rows(comparison, "ROUGE")["first"]["ROUGE-1"]  # one document has no interval
    without = replace(comparison, pairs=[replace(pair, summary="") for pair in comparison.pairs])
    assert [table.title for table in without.tables()] == ["Speed and memory", "Summaries", "Agreement"]
    agreement = rows(without, "Agreement")
    assert agreement["first"]["second"] == agreement["second"]["first"]
    texts = [[each.text for each in found] for found in comparison.summaries.values()]
    shared = Rouge(types=("rouge1",)).score(texts[0], [[text] for text in texts[1]])["rouge1"].mean()
    assert agreement["first"] == {"model": "first", "first": "-", "second": f"{shared:.1f}"}
    assert 0 < shared < 100
    assert without.to_dict()["scores"] is None


def test_the_page_shows_texts_as_text_with_marks_reasons_and_failures(comparison: Comparison) -> None:
    page = comparison_page(comparison)
    assert "It rained &lt;all&gt; day." in page
    assert "quoted, since it is &lt;bad&gt;" in page
    assert "<mark>7</mark>" in page
    assert "<mark>Carl</mark>" in page
    assert "no summary: the model wrote nothing" in page
    assert page.count("not all of the document was read") == 1
    assert page.count("<details") == page.count("<details open>") + 1 == 2
    assert page.count("<h3>Reference</h3>") == 1
    assert '<th>model</th><th class="number">words</th>' in page
    assert '<td>first</td><td class="number">8.0</td>' in page
    assert "cut off" not in page.partition("<h2>Documents</h2>")[2]
    assert "<script" not in page


def test_differences_to_the_first_model_follow_the_scores(comparison: Comparison) -> None:
    titles = ["Speed and memory", "Summaries", "ROUGE", "Differences", "Agreement"]
    assert [table.title for table in comparison.tables()] == titles
    written = comparison.to_dict()
    assert (written["documents"], [*written["tables"]]) == (2, titles)
    assert written["tables"]["Agreement"][1]["second"] == "-"
    assert written["scores"]["examples"] == 1
    both = replace(comparison, pairs=[replace(pair, summary="Ann sold boats.") for pair in comparison.pairs])
    first = rows(both, "ROUGE")["first"]["ROUGE-1"]
    assert both.scores is not None
    assert first == str(both.scores.system("first").metrics["rouge1"])


def test_sentences_that_the_model_calls_quotations_count_as_such(comparison: Comparison) -> None:
    """A quoted turn may start with its speaker, so that the document does not hold it word by word."""
    turns = [
        replace(each, text=f"Ann: {each.text}", quoted=(True,)) for each in comparison.summaries["first"]
    ]
    (shape,) = rows(replace(comparison, summaries={"one": turns}), "Summaries").values()
    assert (shape["written %"], shape["quoted %"]) == ("0", "100")


def test_a_summary_in_another_language_is_counted(comparison: Comparison) -> None:
    german = made("Die Mühle in Arlen ist im Jahr 1904 abgebrannt, und niemand wurde dabei verletzt.")
    english = made("The mill in Arlen burned down in 1904, and nobody was hurt in the fire.")
    changed = replace(comparison, summaries={"one": [english, german]})
    assert rows(changed, "Summaries")["one"]["other language %"] == "50"
