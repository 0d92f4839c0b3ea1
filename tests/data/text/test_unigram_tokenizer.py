"""The tokenizer: every text survives, the ids are where the design puts them, training is repeatable."""

import os
import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from precis.data.text import unigram_tokenizer as module
from precis.data.text.encoding import encode_documents
from precis.data.text.unigram_tokenizer import load_tokenizer, train_tokenizer
from precis.data.text.unigram_trainer import _digamma, learn_pieces
from precis_text.errors import UserError

_SIZE = 430
_NAMES = ("Ada", "Bruno", "Chidi", "Dana", "Emre", "Farah")
_PLACES = ("harbour", "station", "library", "orchard", "bakery", "workshop")
_VERBS = ("repaired", "painted", "closed", "visited", "measured", "reopened")


def corpus(size: int = 400) -> list[str]:
    texts = []
    for i in range(size):
        name, other = _NAMES[i % 6], _NAMES[(i * 5 + 1) % 6]
        place, verb = _PLACES[(i // 6) % 6], _VERBS[(i // 11) % 6]
        texts.append(
            f"{name}: I {verb} the {place} on day {i}.\n{other}: That's {i * 7} steps away, isn't it?"
        )
        texts.append(f"{name} {verb} the {place}.")
    return texts


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return train_tokenizer(corpus(), vocab_size=_SIZE)


@pytest.fixture(scope="module")
def reloaded(
    tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory
) -> PreTrainedTokenizerBase:
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(folder)
    return load_tokenizer(folder)


def squeeze(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def round_trip(tokenizer: PreTrainedTokenizerBase, text: str) -> str:
    return str(tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True))


def test_ids_lie_where_the_design_puts_them(tokenizer: PreTrainedTokenizerFast) -> None:
    size = len(tokenizer)
    assert size == _SIZE
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3]) == ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    assert tokenizer.convert_ids_to_tokens([4, 259]) == ["<0x00>", "<0xFF>"]
    assert tokenizer.convert_ids_to_tokens(size - 101) == "[MASK]"
    assert tokenizer.convert_ids_to_tokens([size - 100, size - 1]) == ["[M0]", "[M99]"]
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.unk_token_id) == (1, 2, 3)
    assert tokenizer.mask_token_id == size - 101
    assert len(tokenizer.get_vocab()) == size


def test_a_text_stands_between_cls_and_sep_and_is_never_cut(reloaded: PreTrainedTokenizerBase) -> None:
    encoded = reloaded("Ada painted the harbour.")
    assert (encoded["input_ids"][0], encoded["input_ids"][-1]) == (1, 2)
    assert set(encoded) == {"input_ids", "attention_mask"}
    assert reloaded.model_max_length > 10**9
    assert len(reloaded("harbour " * 5000)["input_ids"]) > 5000


@pytest.mark.parametrize(
    "text",
    [
        "Zoë ate 3½ crêpes – naïve, weren’t they?",
        "Сегодня в порту туман, паром задержан на 40 минут.",
        "今日は港で霧が出たため、船は四十分遅れた。",
        "오늘 항구에 안개가 꼈다.",
        "आज बंदरगाह पर कोहरा था।",
        "اليوم ضباب في الميناء، تأخرت العبّارة.",
        "היום ערפל בנמל",
        "วันนี้หมอกลงที่ท่าเรือ",
        "Σήμερα ομίχλη στο λιμάνι",
        "👩‍🚀🧑🏽‍🌾 flags 🇳🇴🇯🇵 and hearts ❤️",
        "∀x ∈ ℝ: x² ≥ 0 ⇒ ∑ᵢ xᵢ² ≥ 0",
        "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 beyond the basic plane 𐍈",
        "load ▁▂▃▄▅ and a lone ▁ mark",
        "e\u0301 composed and e\u0323\u0301 stacked",
        "\u202eright to left override\u202c and a \u200bzero width space",
        "nul \x00 bell \x07 escape \x1b",
        "[CLS] [SEP] [PAD] [UNK] [MASK] [M0] [M99] <0x41> <s> </s>",
        "tab\tand   many    spaces\u00a0and\u3000wide",
        "<unk>{}[]()#@!%^&*~`|\\/'\"",
    ],
)
def test_any_script_survives_the_round_trip(reloaded: PreTrainedTokenizerBase, text: str) -> None:
    assert squeeze(round_trip(reloaded, text)) == squeeze(text)
    assert reloaded.unk_token_id not in reloaded(text)["input_ids"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=40))
def test_random_unicode_survives_the_round_trip(reloaded: PreTrainedTokenizerBase, text: str) -> None:
    assert squeeze(round_trip(reloaded, text)) == squeeze(text)


def test_line_breaks_are_kept_and_are_one_token(reloaded: PreTrainedTokenizerBase) -> None:
    assert round_trip(reloaded, "Ada: hi\nBruno: hello\r\nAda: bye") == "Ada: hi\nBruno: hello\nAda: bye"
    assert round_trip(reloaded, "one \n two\n\n\n\nthree") == "one\ntwo\n\nthree"
    assert reloaded.tokenize("Ada:\nBruno").count("\n") == 1


def test_a_name_has_the_same_tokens_at_the_start_of_a_turn_and_inside(
    reloaded: PreTrainedTokenizerBase,
) -> None:
    turn = reloaded.tokenize("Ada: yes\nBruno: no")
    inside = reloaded.tokenize("then Bruno and Ada")
    assert "▁Bruno" in turn
    assert "▁Bruno" in inside
    assert "▁Ada" in turn
    assert "▁Ada" in inside


def test_numbers_are_spelt_digit_by_digit(reloaded: PreTrainedTokenizerBase) -> None:
    pieces = reloaded.tokenize("on day 1987 and 20:16")
    digits = [piece.lstrip("▁") for piece in pieces if any(c.isdigit() for c in piece)]
    assert digits == list("19872016")


@pytest.mark.parametrize("name", ["[SEP]", "[CLS]", "[PAD]", "[UNK]", "[MASK]", "[M0]", "[M99]", "<0x41>"])
def test_a_control_token_typed_by_a_user_is_plain_text(
    tokenizer: PreTrainedTokenizerFast, reloaded: PreTrainedTokenizerBase, name: str
) -> None:
    control = {0, 1, 2, 3, *range(len(tokenizer) - 101, len(tokenizer))}
    for kind in (tokenizer, reloaded):
        for text in (name, f"before{name}after", f"so {name} it is", f"{name}{name}"):
            inner = kind(text)["input_ids"][1:-1]
            assert not control & set(inner)
            assert round_trip(kind, text) == text
    assert len(reloaded.tokenize("<0x41>")) > 1  # not the byte piece


def test_reloading_changes_nothing(
    tokenizer: PreTrainedTokenizerFast, reloaded: PreTrainedTokenizerBase
) -> None:
    texts = [*corpus(20), "[SEP] 今日 ▁ \x00 🙂"]
    assert reloaded(texts)["input_ids"] == tokenizer(texts)["input_ids"]
    assert reloaded.get_vocab() == tokenizer.get_vocab()


def test_a_frequent_word_that_is_part_of_no_other_becomes_one_piece() -> None:
    words = [f"▁{word}" for word in (*_PLACES, *_VERBS)]
    pieces = {piece for piece, _ in learn_pieces({**dict.fromkeys(words, 40), "▁the": 90}, count=60)}
    assert pieces >= set(words)


def test_training_is_the_same_in_another_process() -> None:
    script = (
        "from precis.data.text.unigram_trainer import learn_pieces\n"
        "words = {a + b + a + c: ord(a) * ord(b) % 97 + 1 for a in 'bcdf' for b in 'aeiou' for c in 'rstl'}\n"
        "print(learn_pieces(words, count=60, required='xyz'))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(printed[0]) > 500
    assert printed[0] == printed[1]


def test_the_order_of_the_texts_does_not_matter() -> None:
    forward, backward = (train_tokenizer(texts, vocab_size=420) for texts in (corpus(80), corpus(80)[::-1]))
    assert forward.get_vocab() == backward.get_vocab()


def test_a_small_corpus_gives_a_smaller_vocabulary_and_says_so() -> None:
    with pytest.warns(UserWarning, match=r"only \d+ of the 5000 requested entries"):
        small = train_tokenizer(["a word or two"], vocab_size=5000)
    assert 4 + 256 + 1 + 100 < len(small) < 5000
    assert round_trip(small, "other 言葉") == "other 言葉"


def test_rare_characters_are_spelt_in_bytes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = train_tokenizer([*corpus(200), "one stray 🦉"], vocab_size=600)
    assert [t for t in trained.tokenize("🦉") if t.startswith("<0x")] == [
        "<0xF0>",
        "<0x9F>",
        "<0xA6>",
        "<0x89>",
    ]


def test_a_script_of_thousands_of_characters_does_not_burst_the_vocabulary() -> None:
    texts = ["".join(chr(0x4E00 + (i * j) % 2999) for j in range(60)) for i in range(200)]
    trained = train_tokenizer(texts, vocab_size=700)
    assert len(trained) <= 700
    assert all(round_trip(trained, text) == text for text in texts)


def test_a_vocabulary_without_room_is_refused() -> None:
    with pytest.raises(UserError, match=r"vocab_size=300 is too small: .* 373"):
        train_tokenizer(["text"], vocab_size=300)


def test_no_text_is_refused() -> None:
    with pytest.raises(UserError, match="the texts are blank; give text to train"):
        train_tokenizer(["", " \n"], vocab_size=1000)


def test_the_hub_is_asked_once_for_a_tokenizer_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(url: str, **_: object) -> None:
        asked.append(url)
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", answer)
    monkeypatch.setattr(
        "transformers.AutoTokenizer.from_pretrained",
        lambda *_, **__: pytest.fail("the client retries for a minute"),
    )
    with pytest.raises(
        UserError, match=r"^nosuch: no such folder, and the Hugging Face hub cannot be reached: Name"
    ):
        load_tokenizer("nosuch")
    assert len(asked) == 1


def test_a_folder_without_a_tokenizer_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="contains no tokenizer"):
        load_tokenizer(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        load_tokenizer(tmp_path / "none")
    (tmp_path / "tokenizer.json").write_text("{broken")
    with pytest.raises(UserError, match="cannot be loaded") as caught:
        load_tokenizer(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("is_installed", "says"),
    [(False, "pip install sentencepiece"), (True, "SentencePiece file cannot be read")],
)
def test_a_sentencepiece_file_that_cannot_be_read_is_said_to_be_one(
    is_installed: bool, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers falls back to another library, and asks for that one."""

    def load(*_: object, **__: object) -> None:
        raise ValueError(
            "`tiktoken` is required to read a `tiktoken` file. Install it with `pip install tiktoken`."
        )

    monkeypatch.setattr(module.AutoTokenizer, "from_pretrained", load)  # type: ignore[attr-defined]
    monkeypatch.setattr(
        "precis.data.text.encoding.find_spec", lambda name: object() if is_installed else None
    )
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(UserError, match=says) as caught:
        load_tokenizer(tmp_path)
    assert "tiktoken" not in str(caught.value)


def test_unigram_probabilities_reproduce_the_counts_of_certain_words() -> None:
    """Words without a common substring: each becomes a piece whose probability is its share."""
    counts = {"▁abc": 60, "▁xyz": 30, "!": 10}
    pieces = dict(learn_pieces(counts, count=30))
    assert pieces["▁abc"] == pytest.approx(-0.51, abs=0.1)  # log 0.6, less what single characters take
    assert pieces["▁abc"] - pieces["▁xyz"] == pytest.approx(0.693, abs=0.01)


def test_unigram_keeps_the_pieces_that_cost_most_to_lose() -> None:
    words = {f"▁{a}{b}{a}{c}": 1000 if b in "aei" else 2 for a in "bcdfgk" for b in "aeiou" for c in "mnrs"}
    characters = len({c for word in words for c in word})
    pieces = [piece for piece, _ in learn_pieces(words, count=characters + 72) if len(piece) > 1]
    assert len(pieces) == 72
    assert all(words.get(piece, 1000) == 1000 for piece in pieces)


def test_digamma_is_torch_digamma() -> None:
    x = np.geomspace(0.5, 1e9, 200)
    np.testing.assert_allclose(_digamma(x), torch.special.digamma(torch.from_numpy(x)), rtol=1e-9, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    words=st.dictionaries(
        st.text("abcdé▁", min_size=1, max_size=40), st.integers(1, 1000), min_size=1, max_size=30
    ),
    count=st.integers(1, 60),
)
def test_unigram_covers_every_character_within_the_count(words: dict[str, int], count: int) -> None:
    pieces = [piece for piece, _ in learn_pieces(words, count=count, required="xy")]
    characters = {"x", "y", *(c for word in words for c in word)}
    assert characters <= set(pieces)
    assert len(pieces) == len(set(pieces)) <= max(count, len(characters))


@pytest.mark.parametrize("pattern", ["(a+)+$", "(?:(a|aa)+)+b"])
def test_an_expression_that_goes_back_without_end_is_one_line_when_loaded(
    pattern: str, tmp_path: Path
) -> None:
    """The library panics after ten million steps; its panic is no `Exception`."""
    tokenizer = train_tokenizer(corpus(), vocab_size=_SIZE)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="the tokenizers library crashed") as caught:
        load_tokenizer(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: ")
    assert "\n" not in str(caught.value)


def test_an_expression_that_fails_on_some_texts_is_one_line_when_they_are_read() -> None:
    tokenizer = train_tokenizer(corpus(), vocab_size=_SIZE)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(b+)+$"), "isolated")
    assert encode_documents(["a"], tokenizer)
    with pytest.raises(UserError, match="this tokenizer cannot read the text"):
        encode_documents(["b" * 60 + "!"], tokenizer)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "additional_chat_templates"])
def test_files_of_a_tokenizer_lie_in_its_folder(name: str, tmp_path: Path) -> None:
    train_tokenizer(corpus(), vocab_size=_SIZE).save_pretrained(tmp_path / "words")
    (tmp_path / "words" / name).unlink(missing_ok=True)
    (tmp_path / "words" / name).symlink_to("/etc")
    with pytest.raises(UserError, match="is a link to a place outside the folder"):
        load_tokenizer(tmp_path / "words")
