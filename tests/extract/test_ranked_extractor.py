"""The extractor with a ranker: that of the model in the box."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.extract.extractor_opening import extractor_of, is_ranked, open_extractor
from precis.extract.ranked_extractor import RankedExtractor
from precis.extract.unit_encoder import unit_tokenizer
from precis.generation.model_loader import load_model
from precis.generation.model_location import default_model, locate
from precis.storage.seal import SEAL
from precis_text.errors import UserError
from precis_text.selection import TOGETHER
from precis_text.unit_ranker import RANKER_FILE
from tests.tiny_models import save

TEXTS = (
    "The council met on Monday evening. It voted to repair the old bridge before winter.",
    "Mira: Shall we meet?\nJon: Yes, at 10.30 in Łódź ☂.",
    "Ein Satz mit Umlauten: Äpfel, Öl und Übermut. \u0416\u0443\u043a.",
)


def test_the_default_model_is_ranked_and_reads_whole_documents() -> None:
    extractor = open_extractor("default")
    assert isinstance(extractor, RankedExtractor)
    assert is_ranked(locate("default"))
    (summary,) = extractor.summarize([" ".join(TEXTS[:1] * 900)], words=20)
    assert summary.how == "whole"
    assert summary.tokens_read == summary.document_tokens > 10_000


@pytest.mark.long
def test_a_long_document_pauses_so_that_others_come_in_between_and_nothing_changes() -> None:
    extractor = open_extractor("default")
    long = " ".join(
        f"The council met in room {number}. It voted on bridge {number % 70}." for number in range(1000)
    )
    (expected,) = extractor.summarize([long], words=20)
    inside: list[str] = []

    def let_in(done: int, known: int, written: int) -> None:
        assert (known, written) == (1, 0)
        if done < known:
            (short,) = extractor.summarize([TEXTS[0]], sentences=1)
            inside.append(short.text)

    assert extractor.summarize([long], words=20, on_progress=let_in) == [expected]
    assert len(inside) >= 4
    assert {*inside} == {extractor.summarize([TEXTS[0]], sentences=1)[0].text}


def test_tokens_are_those_of_transformers() -> None:
    extractor = open_extractor("default")
    tokenizer = load_tokenizer(default_model())
    theirs = unit_tokenizer(tokenizer)
    assert extractor.tokens.tokenize(TEXTS) == theirs.tokenize(TEXTS)
    assert extractor.tokens.counts(*TEXTS) == theirs.counts(*TEXTS)
    assert extractor.tokens.beginning(TEXTS[0], 4) == theirs.beginning(TEXTS[0], 4)
    ids = tokenizer(TEXTS[0])["input_ids"]
    assert {*ids} & {*tokenizer.all_special_ids}
    assert extractor.tokens.decode(ids) == theirs.decode(ids)
    assert extractor.tokens.unknown == theirs.unknown
    assert extractor.open_tokenizer().name_or_path == str(default_model())


@pytest.mark.long
def test_a_server_opens_the_ranker_of_a_model_that_has_one_and_else_its_encoder(tmp_path: Path) -> None:
    loaded = load_model(default_model())
    assert isinstance(extractor_of(loaded), RankedExtractor)
    with pytest.raises(UserError, match="only models in a folder can choose sentences"):
        extractor_of(replace(loaded, folder=None))
    with pytest.raises(UserError, match="not trained to choose sentences"):
        extractor_of(load_model(save("bart", tmp_path / "bart")))


def test_a_model_with_an_adapter_is_not_ranked(tmp_path: Path) -> None:
    assert not is_ranked(replace(locate("default"), adapter=tmp_path))


@pytest.mark.parametrize("words", [["summarize", "NAME"], ["summarize", "NAME", "--type", "key-points"]])
def test_a_summary_by_the_default_model_imports_neither_torch_nor_transformers(
    words: list[str], tmp_path: Path
) -> None:
    """Their imports take longer than everything else together."""
    name = tmp_path / "text.txt"
    name.write_text(TEXTS[0] * 3)
    code = (
        "import sys\n"
        "from precis.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "heavy = {'torch', 'transformers', 'scipy', 'huggingface_hub', 'tokenizers'}\n"
        "print(sorted(heavy & set(sys.modules)), code)\n"
    )
    asked = [str(name) if word == "NAME" else word for word in words]
    done = subprocess.run(
        [sys.executable, "-c", code, *asked], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines()[-1] == "['tokenizers'] 0"


@pytest.mark.parametrize("missing", [RANKER_FILE, "tokenizer.json", "tokenizer_config.json"])
def test_a_missing_file_is_one_line(missing: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(default_model(), folder, ignore=shutil.ignore_patterns(SEAL, "*.safetensors"))
    location = locate(folder)
    (folder / missing).unlink()
    with pytest.raises(UserError, match=missing.replace(".", r"\.")) as caught:
        RankedExtractor.at(location)
    assert "\n" not in str(caught.value)


def test_a_damaged_tokenizer_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(default_model(), folder, ignore=shutil.ignore_patterns(SEAL, "*.safetensors"))
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    with pytest.raises(UserError, match=r"tokenizer\.json"):
        open_extractor(folder)


def test_a_changed_ranker_is_refused_by_its_seal(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(default_model(), folder)
    ranker = folder / RANKER_FILE
    ranker.write_text(ranker.read_text().replace("0.", "1.", 1))
    with pytest.raises(UserError, match=RANKER_FILE):
        open_extractor(folder)


def test_the_longest_input_is_the_one_of_training_or_all_that_is_read_together() -> None:
    location = locate("default")
    assert RankedExtractor.at(location).max_source == location.use.max_source == 512
    unknown = replace(location, use=replace(location.use, max_source=None))
    assert RankedExtractor.at(unknown).max_source == TOGETHER
