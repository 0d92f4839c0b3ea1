"""Converts a released ProphetNet or a DeBERTa to a precis model folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedModel

from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.phases.output_folders import folder_to_be
from precis.phases.run_folder import export_folder
from precis.phases.use.deberta_conversion import is_deberta, model_of_deberta
from precis.phases.use.prophetnet_conversion import model_of_prophetnet
from precis.storage.seal import refuse_foreign
from precis_text.bounded_io import read_json
from precis_text.errors import UserError

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True, kw_only=True)
class Converted:
    """The result: parameters, predicting streams, whether there is a tokenizer, or the problem with it.

    A DeBERTa with a new decoder has None for streams.
    """

    parameters: int
    streams: int | None
    has_tokenizer: bool
    tokenizer_problem: str | None = None


def convert(
    source: Path, out: Path, *, tokenizer: str | None = None, decoder_layers: int | None = None
) -> Converted:
    """Write the model in `source` to the folder `out`, with a tokenizer if one is given or is in `source`.

    Args:
        source: a fairseq checkpoint (`.pt`, `.safetensors`) or a transformers folder of a ProphetNet; or a folder of a
            DeBERTa-v2/v3, which becomes the encoder of a Z-Code++ with a new decoder.
        tokenizer: folder or hub name; `bert-base-uncased` has the same vocabulary as the released English models.
            For a ProphetNet, texts end with [SEP] and do not start with [CLS].
        decoder_layers: depth of the decoder that DeBERTa lacks; if None, the encoder's.

    Raises:
        UserError: `source` cannot be read safely or is another model, the tokenizer does not fit, or `out` exists.
    """
    _check_free(out)
    words = problem = None
    if tokenizer is not None:
        words = load_tokenizer(tokenizer)
    elif _has_tokenizer(source):
        try:
            words = load_tokenizer(str(source))
        except UserError as error:  # transformers 5 removed the tokenizer of XLM-ProphetNet
            problem = str(error)
    model: PreTrainedModel
    if is_deberta(source):
        model = model_of_deberta(source, words, decoder_layers=decoder_layers)
    elif decoder_layers is not None:
        raise UserError("--decoder-layers is for a DeBERTa, which lacks a decoder; omit it")
    else:
        model, words = model_of_prophetnet(source, words, tokenizer=str(tokenizer or source))

    def write(place: Path) -> None:
        model.save_pretrained(place)
        if words is not None:
            words.save_pretrained(place)

    export_folder(out, write)
    return Converted(
        parameters=sum(p.numel() for p in model.parameters()),
        streams=getattr(model.config, "ngram", None),
        has_tokenizer=words is not None,
        tokenizer_problem=problem,
    )


def _check_free(out: Path) -> None:
    """Refuse an existing folder, unless this command wrote it without a tokenizer."""
    folder_to_be(out)
    if not out.is_dir() or not any(out.iterdir()):
        return
    refuse_foreign(out)
    try:
        kind = read_json(out / "config.json").get("model_type")
    except (OSError, ValueError, AttributeError):
        kind = None
    if kind != ProphetNetConfig.model_type or _has_tokenizer(out):
        raise UserError(f"{out}: already exists; name a new folder with --out")


def _has_tokenizer(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _TOKENIZER_FILES)
