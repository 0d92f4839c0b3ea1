"""Documents come from texts, folders and rows, in order, and nothing is left out without a word."""

import json
from collections.abc import Iterator

import pytest
from transformers import BartConfig, BartForConditionalGeneration

from precis.generation.summarizer import Summarizer, Summary
from precis.phases.use.input_documents import Document
from precis.phases.use.summarization import Result, summarize_documents
from precis.phases.use.summary_format import describe_result
from precis_text.decoding_settings import GenerationSettings
from precis_text.documents.passages import Passages, Place
from precis_text.errors import RunError, UserError
from precis_text.length import make_length
from tests.tiny_models import bert_tokenizer, tiny


@pytest.fixture(scope="module")
def summarizer() -> Summarizer:
    return Summarizer(*tiny("zcodepp"), settings=GenerationSettings(max_tokens=6))


@pytest.fixture(scope="module")
def in_berts_manner() -> Summarizer:
    words = bert_tokenizer()
    shape = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 32}
    marks = {"pad_token_id": words.pad_token_id, "eos_token_id": words.sep_token_id}
    config = BartConfig(
        vocab_size=len(words),
        **shape,
        **marks,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        bos_token_id=words.cls_token_id,
        decoder_start_token_id=words.sep_token_id,
        forced_eos_token_id=None,
    )
    model = BartForConditionalGeneration(config).eval()
    return Summarizer(model, words, settings=GenerationSettings(max_tokens=6))


def test_empty_documents_keep_their_place(summarizer: Summarizer) -> None:
    documents = [
        Document(str(number), text) for number, text in enumerate(["", "Ann sings.", " ", "Bob hums."])
    ]
    results = list(summarize_documents(summarizer, documents, batch_size=1, keep_going=True))
    assert [result.summary is None for result in results] == [True, False, True, False]
    assert json.loads(json.dumps(results[0].to_dict())) == {"name": "0", "error": "the document is empty"}
    assert results[1].to_dict()["tokens_read"] > 0


def test_the_only_document_must_not_be_empty(summarizer: Summarizer) -> None:
    with pytest.raises(UserError, match=r"a\.txt: the document is empty"):
        list(summarize_documents(summarizer, [Document("a.txt", " ")]))


def test_documents_without_tokens_keep_their_place(in_berts_manner: Summarizer) -> None:
    texts = ["\u200b", "ann sings.", "\u200b", "bob hums.", "☃"]
    documents = [Document(f"rows.jsonl: row {row}", text) for row, text in enumerate(texts, start=1)]
    for size in (1, 4):
        results = list(summarize_documents(in_berts_manner, documents, batch_size=size, keep_going=True))
        assert [result.document for result in results] == documents
        assert [result.summary is None for result in results] == [True, False, True, False, True]
    assert results[0].to_dict() == {
        "name": "rows.jsonl: row 1",
        "error": "the document gives no tokens that the model knows",
    }
    assert describe_result(results[0], max_source=None).startswith(
        "rows.jsonl: row 1: no summary: the document gives no tokens"
    )
    (known,) = summarize_documents(in_berts_manner, documents[1:2])
    assert known == results[1]


def test_the_only_document_must_have_tokens(in_berts_manner: Summarizer) -> None:
    with pytest.raises(UserError, match=r"a\.txt: the document gives no tokens that the model knows"):
        list(summarize_documents(in_berts_manner, [Document("a.txt", "\u200b")]))


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        (
            Summary(text="a b", document_tokens=9, tokens_read=9, summary_tokens=2),
            "read all 9 tokens; 2 words",
        ),
        (
            Summary(
                text="a", document_tokens=9, tokens_read=4, summary_tokens=2, how="truncate", finished=False
            ),
            "read only the first 4 of 9 tokens; 1 word, cut off mid-sentence",
        ),
        (
            Summary(text="a", document_tokens=9, tokens_read=9, summary_tokens=2, how="chunk", pieces=3),
            "read all 9 tokens in 3 pieces, then summarized their summaries; 1 word",
        ),
    ],
)
def test_each_summary_says_what_was_read(summary: Summary, said: str) -> None:
    assert describe_result(Result(Document("d", "x"), summary), max_source=5) == f"d: {said}"


def test_the_first_document_that_cannot_be_summarized_ends_the_work_after_those_before_it(
    summarizer: Summarizer,
) -> None:
    documents = [Document("a", "Ann sings."), Document("b", ""), Document("c", "Bob hums.")]
    results = summarize_documents(summarizer, documents)
    assert next(results).document.name == "a"
    with pytest.raises(UserError, match="b: the document is empty; --keep-going continues with the others"):
        next(results)
    kept = list(summarize_documents(summarizer, documents, keep_going=True))
    assert [result.problem for result in kept] == ["", "the document is empty", ""]


def test_a_document_whose_problem_the_reader_names_does_not_end_the_work(summarizer: Summarizer) -> None:
    documents = [
        Document("a", "Ann sings."),
        Document("b", "", problem="is a PDF"),
        Document("c", "Bob hums."),
    ]
    results = list(summarize_documents(summarizer, documents))
    assert [result.problem for result in results] == ["", "is a PDF", ""]


def test_an_empty_summary_is_an_error_that_is_named(summarizer: Summarizer) -> None:
    nothing = Summary(text="", document_tokens=9, tokens_read=9, summary_tokens=0)
    result = Result(Document("a.txt", "Ann sings."), nothing)
    assert isinstance(result.failure(alone=True), RunError)
    assert str(result.failure(alone=True)) == "a.txt: the model wrote nothing"
    assert result.to_dict()["error"] == "the model wrote nothing"
    assert result.to_dict()["document_tokens"] == 9
    assert describe_result(result, max_source=5) == "a.txt: no summary: the model wrote nothing"


def test_id_and_other_columns_come_along_and_name_and_text_are_different_keys(summarizer: Summarizer) -> None:
    row = {"title": "Choir", "year": 1990, "summary": "of somebody else's", "name": "x"}
    document = Document("rows.jsonl: 7", "Ann sings.", id="7", row=row)
    (result,) = summarize_documents(summarizer, [document])
    found = json.loads(json.dumps(result.to_dict()))
    assert (found["name"], found["id"], found["row"]) == ("rows.jsonl: 7", "7", row)
    assert "document" not in found


@pytest.mark.parametrize("text", ["\u0000", "\u0006\u0005 \n", "\u200b"])
def test_control_characters_alone_are_no_summary(text: str) -> None:
    result = Result(
        Document("a.txt", "Ann sings."),
        Summary(text=text, document_tokens=3, tokens_read=3, summary_tokens=1),
    )
    assert result.problem == "the model wrote nothing that can be read"


def test_chosen_sentences_name_their_page_and_heading_and_what_was_left_out_is_said() -> None:
    places = [Place(page=1), Place(page=2, heading="Budget"), Place(page=3)]
    passages = Passages("Ann sings. Bob pays. It rains.", (0, 11, 21), places, ["no text on page 4"])
    summary = Summary(
        text="Ann sings.\nBob pays.",
        document_tokens=9,
        tokens_read=9,
        summary_tokens=6,
        mode="extract",
        places=((0, 10), (11, 20)),
    )
    result = Result(Document("a.pdf", passages.text, passages=passages), summary)
    assert result.to_dict()["sources"] == [{"page": 1}, {"page": 2, "heading": "Budget"}]
    assert result.to_dict()["left_out"] == ["no text on page 4"]
    assert describe_result(result, max_source=None).endswith(
        '4 words, chosen word for word (page 1; page 2, "Budget"); no text on page 4'
    )
    plain = Result(Document("a.txt", passages.text), summary)
    assert not {"sources", "left_out"} & plain.to_dict().keys()


def test_documents_before_one_that_cannot_be_read_are_summarized(summarizer: Summarizer) -> None:
    def read() -> Iterator[Document]:
        yield Document("a.txt", "Ann sings in the hall. Bob listens to her.")
        raise UserError("b.pdf: is broken")

    results = summarize_documents(summarizer, read(), length=make_length(tokens=4))
    assert next(results).summary is not None
    with pytest.raises(UserError, match=r"b\.pdf"):
        next(results)
