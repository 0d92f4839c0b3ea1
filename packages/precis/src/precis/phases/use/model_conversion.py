"""Converts a released ProphetNet to a precis model folder, or a DeBERTa to a Z-Code++ whose decoder is new."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from precis.data.text.encoding import SENTENCE_MARKS
from precis.data.text.unigram_tokenizer import load_tokenizer, without_start
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.fairseq_weights import convert_fairseq, has_berts_entries
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.prophetnet.prophetnet_weights import load_transformers
from precis.models.zcodepp.deberta_weights import read_deberta
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.phases.output_folders import folder_to_be
from precis.phases.run_folder import export_folder
from precis.storage.seal import refuse_foreign
from precis_text.bounded_io import read_json
from precis_text.errors import UserError

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
_SEED = 0  # of the weights of a new decoder
_SENTENCE_MARK = 2  # the id that ProphetNet puts between sentences


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
    if _model_type(source) == "deberta-v2":
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
    if _model_type(out) != ProphetNetConfig.model_type or _has_tokenizer(out):
        raise UserError(f"{out}: already exists; name a new folder with --out")


def _model_type(folder: Path) -> str | None:
    try:
        return read_json(folder / "config.json").get("model_type")
    except (OSError, ValueError, AttributeError):
        return None


def _has_tokenizer(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _TOKENIZER_FILES)


def model_of_deberta(
    source: Path, words: PreTrainedTokenizerBase | None, *, decoder_layers: int | None = None
) -> ZCodePPForConditionalGeneration:
    """Return a Z-Code++ with DeBERTa's encoder and random decoder weights, which are the same in each call.

    Args:
        words: its tokenizer, whose [CLS], [SEP] and [PAD] the model uses; if None, DeBERTaV3's ids.
        decoder_layers: depth of the decoder; if None, the encoder's, as in Z-Code++.

    Raises:
        UserError: the folder cannot be read, the tokenizer does not fit, or the depth is below 1.
    """
    if decoder_layers is not None and decoder_layers < 1:
        raise UserError(f"--decoder-layers {decoder_layers} is too small; use 1 or more")
    settings, _ = read_deberta(source, {})
    depth = settings["encoder_layers"] if decoder_layers is None else decoder_layers
    torch.manual_seed(_SEED)
    model = ZCodePPForConditionalGeneration.from_deberta(source, decoder_layers=depth, **_ids(source, words))
    if words is not None and len(words) > model.config.vocab_size:
        raise UserError(
            f"{source}: the tokenizer has {len(words)} entries but the model only {model.config.vocab_size}; "
            "it belongs to another model"
        )
    model.generation_config = GenerationConfig.from_model_config(model.config)
    return model


def _ids(source: Path, words: PreTrainedTokenizerBase | None) -> dict[str, int]:
    """Return the configuration's control tokens that are not DeBERTa's own."""
    if words is None:
        return {}
    start, end = words.cls_token_id, words.sep_token_id
    if not isinstance(start, int) or not isinstance(end, int):
        raise UserError(
            f"{source}: its tokenizer lacks [CLS] or [SEP]; name DeBERTa's own with --tokenizer FOLDER"
        )
    return {"bos_token_id": start, "eos_token_id": end, "decoder_start_token_id": start}


def model_of_prophetnet(
    source: Path, words: PreTrainedTokenizerBase | None, *, tokenizer: str
) -> tuple[ProphetNetForConditionalGeneration, PreTrainedTokenizerBase | None]:
    """Return a ProphetNet, and its tokenizer as ProphetNet reads.

    Args:
        words: its tokenizer, if there is one.
        tokenizer: the tokenizer's place, for messages.

    Raises:
        UserError: the model cannot be read safely, or the tokenizer is missing or does not fit.
    """
    if source.is_dir():
        model = load_transformers(ProphetNetForConditionalGeneration, source)
    else:
        model = convert_fairseq(source)
        if words is None and not has_berts_entries(model.config):
            raise UserError(
                f"{source}: has {model.config.vocab_size} entries, which is not BERT's vocabulary, and does not "
                "declare the token that ends a text; name its tokenizer with --tokenizer"
            )
    if words is None:
        return model, None
    _fit(words, model, tokenizer=tokenizer, decides=not source.is_dir())
    return model, without_start(words)


def _fit(
    words: PreTrainedTokenizerBase,
    model: ProphetNetForConditionalGeneration,
    *,
    tokenizer: str,
    decides: bool,
) -> None:
    """Make tokenizer and model agree on the control tokens; the tokenizer `decides` if the checkpoint declares none."""
    config = model.config
    if len(words) > config.vocab_size:
        raise UserError(
            f"{tokenizer}: has {len(words)} entries but the model only {config.vocab_size}: it belongs to another model"
        )
    end, end_id = words.sep_token or words.eos_token, words.sep_token_id
    end_id = words.eos_token_id if end_id is None else end_id
    if not isinstance(end, str) or not isinstance(end_id, int) or words.pad_token_id is None:
        raise UserError(f"{tokenizer}: lacks [SEP] and [PAD], which ProphetNet ends and pads texts with")
    if decides:
        config.pad_token_id = words.pad_token_id
        config.bos_token_id = config.eos_token_id = config.decoder_start_token_id = end_id
        model.generation_config = GenerationConfig.from_model_config(config)
        name = words.convert_ids_to_tokens(_SENTENCE_MARK)
        if name in SENTENCE_MARKS:
            words.add_special_tokens({"extra_special_tokens": [name]})  # a line break, not a word
    elif config.eos_token_id != end_id:
        raise UserError(
            f"{tokenizer}: {end} is {end_id}, but the model ends texts with {config.eos_token_id}: "
            "it belongs to another model"
        )
    words.bos_token = words.eos_token = end
    if isinstance(words, PreTrainedTokenizerFast):
        words.model_input_names = ["input_ids", "attention_mask"]  # ProphetNet does not use token types
