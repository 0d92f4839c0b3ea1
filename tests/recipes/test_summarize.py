"""Documents come from texts, folders and rows, in order, and nothing is left out without a word."""

import json
from pathlib import Path

import pytest
from tiny_models import bert_tokenizer, tiny
from transformers import BartConfig, BartForConditionalGeneration

from precis.data.tasks import GenerationSettings
from precis.errors import UserError
from precis.generation.summarizer import Summarizer, Summary
from precis.recipes.summarize import Document, Result, holds_many, read_documents, summarize_documents, told


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


def test_a_text_is_one_document_and_a_folder_one_for_each_text(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "a.summary.txt"):
        (tmp_path / name).write_text(name)
    found = list(read_documents([str(tmp_path / "b.txt"), str(tmp_path)]))
    assert [document.text for document in found] == ["b.txt", "a.txt", "b.txt"]
    assert found[0].name == str(tmp_path / "b.txt")


def test_rows_are_documents_and_skipped_ones_are_told(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"document": "one"}\n{"document": ""}\n{"document": "three", "id": "x7"}\n')
    with pytest.raises(UserError, match="line 2"):
        list(read_documents([str(file)]))
    notes: list[str] = []
    found = list(read_documents([str(file)], skip_bad=True, tell=notes.append))
    assert [document.name for document in found] == [f"{file}: row 1", f"{file}: x7"]
    assert "1 rows skipped" in notes[0]
    assert "line 2" in notes[0]


def test_another_column_can_hold_the_document(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("body,title\none,two\n")
    assert [d.text for d in read_documents([str(file)], column="body")] == ["one"]


def test_a_file_that_cannot_be_opened_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("Ann sings.")

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    for place in (tmp_path / "a.txt", tmp_path):
        with pytest.raises(UserError, match=r"a\.txt: cannot be read: Permission denied"):
            list(read_documents([str(place)]))


def test_a_folder_without_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no \.txt file"):
        list(read_documents([str(tmp_path)]))


@pytest.mark.parametrize(
    ("name", "many"), [("a.txt", False), ("-", False), ("a.jsonl.gz", True), ("a.CSV", True), (".", True)]
)
def test_what_may_hold_several_documents(name: str, many: bool) -> None:
    assert holds_many(name) == many


def test_empty_documents_keep_their_place(summarizer: Summarizer) -> None:
    documents = [
        Document(str(number), text) for number, text in enumerate(["", "Ann sings.", " ", "Bob hums."])
    ]
    results = list(summarize_documents(summarizer, documents, batch_size=1))
    assert [result.summary is None for result in results] == [True, False, True, False]
    assert json.loads(json.dumps(results[0].to_dict())) == {"document": "0", "error": "the document is empty"}
    assert results[1].to_dict()["tokens_read"] > 0


def test_the_only_document_must_not_be_empty(summarizer: Summarizer) -> None:
    with pytest.raises(UserError, match=r"a\.txt: the document is empty"):
        list(summarize_documents(summarizer, [Document("a.txt", " ")]))


def test_documents_without_tokens_keep_their_place(in_berts_manner: Summarizer) -> None:
    texts = ["\u200b", "ann sings.", "\u200b", "bob hums.", "☃"]
    documents = [Document(f"rows.jsonl: row {row}", text) for row, text in enumerate(texts, start=1)]
    for size in (1, 4):
        results = list(summarize_documents(in_berts_manner, documents, batch_size=size))
        assert [result.document for result in results] == documents
        assert [result.summary is None for result in results] == [True, False, True, False, True]
    assert results[0].to_dict() == {
        "document": "rows.jsonl: row 1",
        "error": "the document gives no tokens that the model knows",
    }
    assert told(results[0], max_source=None).startswith("rows.jsonl: row 1: the document gives no tokens")
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
    assert told(Result(Document("d", "x"), summary), max_source=5) == f"d: {said}"
