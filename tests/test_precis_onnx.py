"""Exported models write the tokens that torch writes, by a package that never imports torch."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis import Summarizer
from precis.export.onnx_files import LONGEST, source_limits
from precis.extract.extractor_opening import open_extractor
from precis.generation.model_loader import load_model
from precis.generation.model_location import default_model
from precis.phases.use.onnx_export import export_onnx
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from tests.small_models import prophetnet_config
from tests.tiny_models import documents, our_tokenizer, tiny

pytestmark = pytest.mark.traced

ROOT = Path(__file__).parents[1]
TEXTS = documents(12)


def _prophetnet() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    import torch

    from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration

    torch.manual_seed(0)
    tokenizer = our_tokenizer()
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = prophetnet_config(
        vocab_size=len(tokenizer),
        max_position_embeddings=512,
        **ids,
        decoder_start_token_id=tokenizer.eos_token_id,
    )
    return ProphetNetForConditionalGeneration(config).eval(), tokenizer


@pytest.fixture(scope="module", params=["zcodepp", "prophetnet"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model's folder and its exported form."""
    model, tokenizer = _prophetnet() if request.param == "prophetnet" else tiny(request.param)
    place = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(place / "model")
    tokenizer.save_pretrained(place / "model")
    export_onnx(place / "model", place / "onnx")
    return place / "model", place / "onnx"


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        GenerationSettings(max_tokens=24),
        GenerationSettings(max_tokens=20, beams=3, no_repeat_ngram=3, length_penalty=1.3),
        GenerationSettings(max_tokens=12, beams=2, early_stopping="never", min_tokens=5),
    ],
    ids=["greedy", "beams", "never"],
)
def test_the_tokens_are_those_of_torch(exported: tuple[str, Path], settings: GenerationSettings) -> None:
    import precis_onnx

    source, folder = exported
    ours = Summarizer.from_pretrained(source)
    theirs = precis_onnx.Summarizer.from_folder(folder, threads=1)
    mine = [one.text for one in ours.summarize(TEXTS, settings=settings, short="write")]
    found = theirs.summarize(TEXTS, settings=_theirs(settings), short="write")
    assert [one.text for one in found] == mine
    assert len({one.tokens for one in found}) > 1  # of random weights, but of their documents too
    assert not any(one.truncated for one in found)


def _theirs(settings: GenerationSettings) -> Any:
    from precis_text.decoding_settings import GenerationSettings as Theirs

    return Theirs(**{name: getattr(settings, name) for name in Theirs.__dataclass_fields__})


@pytest.mark.slow
def test_limits_of_length_hold_as_with_torch(exported: tuple[str, Path]) -> None:
    import precis_onnx

    source, folder = exported
    ours, theirs = Summarizer.from_pretrained(source), precis_onnx.Summarizer.from_folder(folder, threads=1)
    for options in ({"words": 7}, {"sentences": 1}, {"tokens": 9}, {"min_words": 4, "words": 12}):
        mine = ours.summarize(TEXTS[:4], **options)  # type: ignore[arg-type]
        found = theirs.summarize(TEXTS[:4], **options)
        assert [(one.text, one.finished, one.kept) for one in found] == [
            (one.text, one.finished, one.kept) for one in mine
        ]


@pytest.mark.slow
def test_the_files_have_optimums_names(exported: tuple[str, Path]) -> None:
    import onnxruntime

    _, folder = exported
    encoder = onnxruntime.InferenceSession(folder / "encoder_model.onnx")
    decoder = onnxruntime.InferenceSession(folder / "decoder_model_merged.onnx")
    assert [one.name for one in encoder.get_inputs()] == ["input_ids", "attention_mask"]
    names = {one.name for one in decoder.get_inputs()}
    assert {"input_ids", "encoder_hidden_states", "encoder_attention_mask", "use_cache_branch"} <= names
    assert "past_key_values.0.encoder.key" in names
    assert {one.name for one in decoder.get_outputs()} >= {"logits", "present.0.decoder.value"}


@pytest.mark.slow
def test_a_changed_file_is_refused(exported: tuple[str, Path], tmp_path: Path) -> None:
    import precis_onnx

    copied = tmp_path / "copied"
    shutil.copytree(exported[1], copied)
    settings = json.loads((copied / "onnx.json").read_text())
    (copied / "onnx.json").write_text(json.dumps({**settings, "max_source": 7}))
    with pytest.raises(precis_onnx.UserError, match=r"onnx\.json: has changed"):
        precis_onnx.Summarizer.from_folder(copied)


def sealed(folder: Path, *, without: str = "") -> Path:
    """Seal the files of a folder as an export does, except one."""
    names = [file.name for file in folder.iterdir() if file.name not in ("seal.json", without)]
    digests = {name: {"sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest()} for name in names}
    (folder / "seal.json").write_text(json.dumps({"files": digests}))
    return folder


@pytest.mark.parametrize(
    "missing", ["onnx.json", "encoder_model.onnx", "tokenizer.json", "scorer_model.onnx"]
)
def test_a_file_that_the_seal_does_not_list_is_not_opened(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from precis_onnx import folder as module

    opened = []

    def session(path: str | Path, **_: object) -> object:
        opened.append(Path(path).name)
        return object()

    monkeypatch.setattr("onnxruntime.InferenceSession", session)
    our_tokenizer().save_pretrained(tmp_path)
    (tmp_path / "onnx.json").write_text('{"format": 1}')
    for name in ("encoder_model.onnx", "decoder_model_merged.onnx", "scorer_model.onnx"):
        (tmp_path / name).write_bytes(b"graph")
    with pytest.raises(UserError, match="does not list"):
        module.open_folder(sealed(tmp_path, without=missing))
    assert missing not in opened


def test_a_tokenizer_of_a_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from precis_onnx import folder as module

    monkeypatch.setattr("onnxruntime.InferenceSession", lambda path, **_: object())
    long = {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 1000}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"normalizer": long}))
    (tmp_path / "onnx.json").write_text('{"format": 1}')
    (tmp_path / "encoder_model.onnx").write_bytes(b"graph")
    with pytest.raises(UserError, match="can make one character 1,000"):
        module.open_folder(sealed(tmp_path))


def test_a_folder_of_others_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    import precis_onnx

    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(precis_onnx.UserError, match=r"no onnx\.json here"):
        precis_onnx.Summarizer.from_folder(tmp_path)
    with pytest.raises(UserError, match=r"contains thesis\.txt"):
        export_onnx("anything", tmp_path)


@pytest.mark.long
def test_the_model_that_comes_with_precis_chooses_the_same_units(tmp_path: Path) -> None:
    import precis_onnx

    export_onnx(default_model(), tmp_path / "onnx")
    ours = open_extractor(default_model(), device="cpu")
    theirs = precis_onnx.Summarizer.from_folder(tmp_path / "onnx", threads=1)
    long = [" ".join(TEXTS * 3)]  # beyond one input in chunks
    long.append("The council voted to repair the bridge near the old mill " + "and the road " * 9)  # one unit
    for options in ({}, {"words": 20}, {"sentences": 1}, {"tokens": 15}):
        mine, found = ours.summarize(TEXTS + long, **options), theirs.summarize(TEXTS + long, **options)  # type: ignore[arg-type]
        assert [(one.text, one.places) for one in found] == [(one.text, one.places) for one in mine]


def test_no_input_is_longer_than_memory_allows() -> None:
    loaded = load_model(default_model(), device="cpu")
    assert source_limits(loaded) == (LONGEST, LONGEST)


def test_led_is_refused_in_one_line(tmp_path: Path) -> None:
    model, tokenizer = tiny("led")
    model.save_pretrained(tmp_path / "led")
    tokenizer.save_pretrained(tmp_path / "led")
    with pytest.raises(UserError, match="cannot export LED's windowed attention"):
        export_onnx(tmp_path / "led", tmp_path / "onnx")


def test_the_package_imports_no_torch() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import precis_onnx, precis_onnx.cli; "
        "print(sorted({'torch', 'transformers', 'precis'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, ""], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b" \n", "a.txt: is empty"),
        (b"\0\xff\x12", "a.txt: is not text; use plain text in UTF-8"),
        (b"caf\xe9", r"a.txt: invalid UTF-8 at byte 4 .*; save the file as UTF-8"),
        (b"%PDF-1.4", "a.txt: is a PDF, not plain text"),
    ],
)
def test_a_file_that_is_not_text_is_named_in_the_words_of_precis(
    content: bytes, says: str, tmp_path: Path
) -> None:
    from precis_onnx.cli import _text

    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(UserError, match=says):
        _text(str(tmp_path / "a.txt"))
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfcaf\xc3\xa9\r\n")
    assert _text(str(tmp_path / "a.txt")) == "caf\xe9\n"
