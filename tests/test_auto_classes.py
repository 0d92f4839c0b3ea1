"""`import precis` is enough for transformers' Auto classes."""

import subprocess
import sys
from pathlib import Path

import pytest

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration

SHAPE = {"vocab_size": 50, "hidden_size": 16, "encoder_layers": 1, "decoder_layers": 1}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model of each type, on disk."""
    place = tmp_path_factory.mktemp("models")
    ours = ZCodePPConfig(**SHAPE, num_attention_heads=2, intermediate_size=16)
    ZCodePPForConditionalGeneration(ours).save_pretrained(place / "zcodepp")
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    sizes = {"encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 32}
    theirs = ProphetNetConfig(**SHAPE, **heads, **sizes)
    ProphetNetForConditionalGeneration(theirs).save_pretrained(place / "prophetnet")
    return place


LATER = "from transformers import AutoModel\nimport precis"


@pytest.mark.long
@pytest.mark.parametrize("first", ["import precis", pytest.param(LATER, marks=pytest.mark.slow)])
def test_auto_classes_open_our_folders_after_importing_precis_alone(folders: Path, first: str) -> None:
    code = f"""
{first}
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM
for name in ("zcodepp", "prophetnet"):
    print(type(AutoConfig.from_pretrained(r"{folders}/" + name)).__module__)
    print(type(AutoModelForSeq2SeqLM.from_pretrained(r"{folders}/" + name)).__module__)
    print(type(AutoModel.from_pretrained(r"{folders}/" + name)).__name__)
from transformers import ProphetNetConfig
print(type(AutoModel.from_config(ProphetNetConfig(hidden_size=16, num_encoder_layers=1, num_decoder_layers=1,
    encoder_ffn_dim=16, decoder_ffn_dim=16, num_encoder_attention_heads=2, num_decoder_attention_heads=2))).__module__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "precis.models.zcodepp.configuration_zcodepp",
        "precis.models.zcodepp.modeling_zcodepp",
        "ZCodePPModel",
        "precis.models.prophetnet.configuration_prophetnet",
        "precis.models.prophetnet.modeling_prophetnet",
        "ProphetNetModel",
        "transformers.models.prophetnet.modeling_prophetnet",
    ]


@pytest.mark.long
def test_a_tokenizer_alone_does_not_load_the_models(folders: Path) -> None:
    code = """
import precis, sys
from transformers import AutoTokenizer
sys.exit("precis.models" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
