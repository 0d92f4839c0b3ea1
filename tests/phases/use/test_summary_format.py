"""What is said of a summary: how its document was read, and where its sentences stand."""

from dataclasses import replace
from pathlib import Path

from precis.generation.summarizer import Summary
from precis.phases.use.input_documents import Document, read_documents
from precis.phases.use.summarization import Result, chosen_support, with_support
from precis.phases.use.summary_format import describe_result, support_text
from precis_text.documents.passages import Passages, Place
from precis_text.selection import join_units
from precis_text.support.marks import SourceText
from precis_text.units import extraction_units

LONG = "Bob listens to the song that she sings for him on the old stage in the cold hall behind the school."
SOURCE = f"Ann sings.\n\n{LONG}\nIt rains. Carol has 30 boats."


def result(text: str, **summary: object) -> Result:
    made = Summary(text=text, document_tokens=9000, tokens_read=9000, summary_tokens=3, **summary)  # type: ignore[arg-type]
    return Result(Document("a.txt", SOURCE), made, SourceText(SOURCE).support(text))


def test_a_document_that_was_read_in_pieces_is_said_to_be_summarized_twice_only_if_a_model_wrote() -> None:
    read = result("Ann sings.", how="chunk", pieces=2)
    assert "read all 9,000 tokens in 2 pieces, then summarized their summaries; 2 words" in describe_result(
        read, max_source=8192
    )
    assert read.summary is not None
    chosen = replace(read, summary=replace(read.summary, mode="extract"))
    assert "read all 9,000 tokens in 2 pieces; 2 words, chosen word for word" in describe_result(
        chosen, max_source=8192
    )


def test_of_chosen_sentences_the_lines_are_shown_and_no_sentence_twice() -> None:
    shown = support_text(result(f"Ann sings.\n{LONG}", mode="extract").to_dict())
    first, second = shown.strip().splitlines()
    assert first == "[1] word for word, line 1: Ann sings."
    assert second.startswith("[2] word for word, line 3: Bob listens to the song")
    assert second.endswith(" ...")
    assert LONG not in shown


def test_places_of_sentences_behind_a_meaning_are_their_own() -> None:
    source = (
        "The Harbour Safety Board (HSB) met. The HSB closed the pier. It rained. Carol came to see the HSB."
    )
    text = "The HSB [Harbour Safety Board] closed the pier. Carol came to see the HSB."
    places = tuple(
        (source.index(each), source.index(each) + len(each))
        for each in ("The HSB closed the pier.", "Carol came to see the HSB.")
    )
    made = Summary(
        text=text, document_tokens=9, tokens_read=9, summary_tokens=3, mode="extract", places=places
    )
    support = chosen_support(source, made)
    assert [each.text for each in support.sentences] == [text[:47], text[48:]]


def test_what_an_abbreviation_means_is_named_as_added() -> None:
    source = "The Harbour Safety Board (HSB) met. Carol came.\nThe HSB [3] closed the pier."
    text = "The HSB [Harbour Safety Board] closed the pier."
    made = Summary(text=text, document_tokens=9, tokens_read=9, summary_tokens=3, mode="extract")
    shown = support_text(Result(Document("a.txt", source), made, SourceText(source).support(text)).to_dict())
    assert shown.strip() == f"[1] word for word, but for [Harbour Safety Board], line 2: {text}"


def test_of_written_sentences_the_sources_are_shown_with_their_lines_and_the_marks() -> None:
    shown = support_text(result("Carol has 40 boats. It rains.").to_dict())
    assert "source, line 4: Carol has 30 boats." in shown
    assert "? number '40'" in shown
    assert "[2] It rains.\n    word for word" in shown
    assert "marks are hints" in shown


def with_pages(found: Result) -> Result:
    """The result for the same text in a file whose second paragraph stands on page 2 under a heading."""
    passages = Passages(SOURCE, (0, SOURCE.index("Bob")), (Place(), Place(page=2, heading="Hall")))
    return replace(found, document=replace(found.document, passages=passages))


def test_of_a_file_with_pages_the_page_and_the_heading_of_each_passage_are_shown_and_no_lines() -> None:
    chosen = support_text(with_pages(result(f"Ann sings.\n{LONG}", mode="extract")).to_dict())
    first, second = chosen.strip().splitlines()
    assert first == "[1] word for word: Ann sings."
    assert second.startswith('[2] word for word, page 2, "Hall": Bob listens')
    written = with_pages(result("Carol has 40 boats.")).to_dict()
    assert written["support"]["sentences"][0]["aligned"][0]["place"] == {"page": 2, "heading": "Hall"}
    assert 'source, page 2, "Hall": Carol has 30 boats.' in support_text(written)


def chosen(document: str, *wanted: str, text: str | None = None, **summary: object) -> list[tuple[str, str]]:
    """The sentences of an extract as `--support` has them, with the text at the place of each."""
    units = [unit for unit in extraction_units(document) if unit.text in wanted]
    made = Summary(
        text=join_units(document, units) if text is None else text,
        document_tokens=90,
        tokens_read=90,
        summary_tokens=30,
        mode="extract",
        places=tuple((unit.start, unit.stop) for unit in units),
        **summary,  # type: ignore[arg-type]
    )
    (found,) = with_support([Result(Document("a.md", document), made)])
    record = found.to_dict()["support"]["sentences"]
    assert support_text(found.to_dict()).count("] word for word, line ") == len(record)
    assert [made.text[each["start"] : each["end"]] for each in record] == [each["text"] for each in record]
    assert {each["copied"] for each in record} <= {True}
    places = [passage for each in record for passage in each["aligned"]]
    assert len(places) == len(record)
    return [
        (each["text"], document[place["start"] : place["end"]])
        for each, place in zip(record, places, strict=True)
    ]


def test_each_chosen_sentence_has_its_own_place_also_if_an_equal_one_stands_before_it() -> None:
    document = "The door is shut.\n\nAnn waits at the mill.\n\nThe door is shut.\n\nBob comes late."
    units = extraction_units(document)
    last = tuple((unit.start, unit.stop) for unit in units[2:])
    made = Summary(
        text="The door is shut.\nBob comes late.", document_tokens=9, tokens_read=9, summary_tokens=9,
        mode="extract", places=last,
    )  # fmt: skip
    (found,) = with_support([Result(Document("a.txt", document), made)])
    lines = support_text(found.to_dict()).strip().splitlines()
    assert lines == [
        "[1] word for word, line 5: The door is shut.",
        "[2] word for word, line 7: Bob comes late.",
    ]


def test_chosen_lines_that_look_like_one_sentence_in_the_summary_have_a_source_each() -> None:
    item, command = "the printer prints a page with all of its settings", "Hold the button for ten seconds."
    other = "the second tray holds the large sheets and the labels"
    document = f"Notes on the new printer in the hall.\n\n- {item}\n- {other}\n\nIt is loud.\n\n{command}"
    items = [f"- {item}", f"- {other}"]
    assert chosen(document, *items, command) == [(each, each) for each in (*items, command)]
    plain = f"{item}\n\nIt is loud.\n\n{other}\n\nIt rains.\n\n{command}"
    assert len(extraction_units(f"{item}\n{other}")) == 1
    assert chosen(plain, item, other, command) == [(each, each) for each in (item, other, command)]


def test_a_lone_item_is_shown_without_its_bullet_and_a_sentence_without_its_references() -> None:
    item = "- Hold the button for ten seconds."
    cited = "The tray holds forty sheets [12] of thick paper (Fig. 3)."
    shown = "The tray holds forty sheets of thick paper."
    document = f"Notes on the new printer in the hall.\n\n{item}\n\n{cited}\n\nIt is loud."
    assert chosen(document, item, shown) == [(item.removeprefix("- "), item), (shown, cited)]


def test_a_sentence_that_the_length_cuts_has_a_source_and_one_that_it_drops_has_no_line() -> None:
    document = "Ann waits at the mill for Bob.\n\nIt rains. Bob comes late."
    assert chosen(document, "Ann waits at the mill for Bob.", text="Ann waits at") == [
        ("Ann waits at", "Ann waits at the mill for Bob.")
    ]
    assert len(chosen(document, "Ann waits at the mill for Bob.", "It rains.", text="Ann waits at")) == 1


def test_a_document_that_is_its_own_summary_has_a_source_for_each_sentence() -> None:
    document = "\n- Ann waits [12].\n- Ann waits [12].\n\n***\n\nBob comes late."
    found = chosen(document, text=document.strip(), kept=True)
    assert [text for text, _ in found] == ["- Ann waits [12].", "- Ann waits [12].", "***", "Bob comes late."]
    assert [place for _, place in found] == [text for text, _ in found]


def test_a_markdown_page_gives_the_lines_of_its_file(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("---\ntitle: Mill\n---\n\n# Mill\n\nAnn waits\nat the mill. It rains\nall day.\n")
    (document,) = read_documents([str(page)])
    units = extraction_units(document.text)[1:]
    places = tuple((unit.start, unit.stop) for unit in units)
    made = Summary(
        text=join_units(document.text, units), document_tokens=9, tokens_read=9, summary_tokens=9, mode="extract",
        places=places,
    )  # fmt: skip
    (found,) = with_support([Result(document, made)])
    assert found.to_dict()["sources"] == [{"heading": "Mill", "line": 7}, {"heading": "Mill", "line": 8}]
    first, second = support_text(found.to_dict()).strip().splitlines()
    assert first == '[1] word for word, "Mill", line 7: Ann waits at the mill.'
    assert second == '[2] word for word, "Mill", line 8: It rains all day.'
    assert describe_result(found, max_source=None).endswith('("Mill"); front matter left out')
