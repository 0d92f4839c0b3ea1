"""What is said of a summary: how its document was read, and where its sentences stand."""

from dataclasses import replace

from precis.generation.summarizer import Summary
from precis.phases.use.input_documents import Document
from precis.phases.use.summarization import Result
from precis.phases.use.summary_format import support_text, told
from precis_text.documents.passages import Passages, Place
from precis_text.support.marks import SourceText

LONG = "Bob listens to the song that she sings for him on the old stage in the cold hall behind the school."
SOURCE = f"Ann sings.\n\n{LONG}\nIt rains. Carol has 30 boats."


def result(text: str, **summary: object) -> Result:
    made = Summary(text=text, document_tokens=9000, tokens_read=9000, summary_tokens=3, **summary)  # type: ignore[arg-type]
    return Result(Document("a.txt", SOURCE), made, SourceText(SOURCE).support(text))


def test_a_document_that_was_read_in_pieces_is_said_to_be_summarized_twice_only_if_a_model_wrote() -> None:
    read = result("Ann sings.", how="chunk", pieces=2)
    assert "read all 9,000 tokens in 2 pieces, then summarized their summaries; 2 words" in told(
        read, max_source=8192
    )
    assert read.summary is not None
    chosen = replace(read, summary=replace(read.summary, mode="extract"))
    assert "read all 9,000 tokens in 2 pieces; 2 words, chosen word for word" in told(chosen, max_source=8192)


def test_of_chosen_sentences_the_lines_are_shown_and_no_sentence_twice() -> None:
    shown = support_text(result(f"Ann sings.\n{LONG}", mode="extract").to_dict())
    first, second = shown.strip().splitlines()
    assert first == "[1] word for word, line 1: Ann sings."
    assert second.startswith("[2] word for word, line 3: Bob listens to the song")
    assert second.endswith(" ...")
    assert LONG not in shown


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
