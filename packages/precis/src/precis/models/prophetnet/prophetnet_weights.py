"""Converts ProphetNet and XLM-ProphetNet between transformers' folders and ours (`fairseq` converts fairseq's files).

Only names differ; no number is changed. transformers stores the token table three times, tied; we store it once. Its
position tables have 512 rows, fairseq's 513 and 514: both are used as they are.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel
from transformers.utils.hub import get_checkpoint_shard_files

from precis.models.family import FamilyConfig, HubOptions, find_file, hub_options, read_settings
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.storage.seal import write_folder
from precis_text.bounded_io import read_json
from precis_text.errors import UserError

TRANSFORMERS_TYPES = ("prophetnet", "xlm-prophetnet")

_FIELDS = {**FamilyConfig.__annotations__, **ProphetNetConfig.__annotations__}
Names = tuple[tuple[str, str], ...]

_FEED_FORWARD = (
    ("feed_forward.up", "feed_forward.intermediate", "fc1"),
    ("feed_forward.down", "feed_forward.output", "fc2"),
    ("feed_forward_norm", "feed_forward_layer_norm", "final_layer_norm"),
)
_PARTS = {  # ours, transformers', fairseq's; N is the number of a layer
    ("model.encoder", "prophetnet", "encoder"): (("tokens", "word_embeddings", "embed_tokens"),),
    ("model.encoder.stack", "prophetnet.encoder", "encoder"): (
        ("positions.rows", "position_embeddings", "embed_positions"),
        ("norm", "embeddings_layer_norm", "emb_layer_norm"),
    ),
    ("model.encoder.stack.layers.N", "prophetnet.encoder.layers.N", "encoder.layers.N"): (
        ("attention", "self_attn", "self_attn"),
        ("attention_norm", "self_attn_layer_norm", "self_attn_layer_norm"),
        *_FEED_FORWARD,
    ),
    ("model.decoder", "prophetnet.decoder", "decoder"): (
        ("positions.rows", "position_embeddings", "embed_positions"),
        ("norm", "embeddings_layer_norm", "emb_layer_norm"),
        ("streams", "ngram_embeddings", "ngram_input_embed"),
    ),
    ("model.decoder.layers.N", "prophetnet.decoder.layers.N", "decoder.layers.N"): (
        ("position_scores", "self_attn.relative_pos_embeddings", "ngram_self_attn.relative_linear"),
        ("self_attention", "self_attn", "ngram_self_attn"),
        ("self_norm", "self_attn_layer_norm", "self_attn_layer_norm"),
        ("cross_attention", "cross_attn", "encoder_attn"),
        ("cross_norm", "cross_attn_layer_norm", "encoder_attn_layer_norm"),
        *_FEED_FORWARD,
    ),
}
_NAMES = [
    tuple(f"{owner}.{part}" for owner, part in zip(owners, parts, strict=True))
    for owners, rows in _PARTS.items()
    for parts in rows
]
_TRANSFORMERS: Names = (*((theirs, ours) for ours, theirs, _ in _NAMES), ("lm_head", "lm_head"))
FAIRSEQ: Names = tuple((theirs, ours) for ours, _, theirs in _NAMES)
_PROJECTIONS = {"query_proj": "query", "key_proj": "key", "value_proj": "value", "out_proj": "output"}
_TOKENS = "prophetnet.word_embeddings.weight"
_COPIES = ("prophetnet.encoder.word_embeddings.weight", "prophetnet.decoder.word_embeddings.weight")

_SAME_SETTINGS = (
    *("vocab_size", "hidden_size", "encoder_ffn_dim", "decoder_ffn_dim", "ngram", "max_position_embeddings"),
    *("dropout", "attention_dropout", "activation_dropout", "init_std", "use_cache", "tie_word_embeddings"),
    *("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"),
)
_SETTINGS = {  # ours -> transformers'
    "encoder_layers": "num_encoder_layers", "decoder_layers": "num_decoder_layers",
    "encoder_attention_heads": "num_encoder_attention_heads", "decoder_attention_heads": "num_decoder_attention_heads",
    "hidden_act": "activation_function", "decoder_buckets": "num_buckets",
    "decoder_max_distance": "relative_max_distance", **{name: name for name in _SAME_SETTINGS},
}  # fmt: skip


def config_from_transformers(settings: Mapping[str, Any]) -> ProphetNetConfig:
    """Convert a `config.json` of transformers' ProphetNet or XLM-ProphetNet to our configuration, with its defaults.
    Its label smoothing, `eps`, is kept; ours belongs to a training run.

    Raises:
        UserError: if padding is not token 0.
    """
    defaults = {"decoder_start_token_id": 0}  # the other defaults equal ours
    found = {ours: settings[theirs] for ours, theirs in _SETTINGS.items() if theirs in settings}
    _check_padding(found.get("pad_token_id"))
    if settings.get("disable_ngram_loss"):
        found["attenuation"] = 0.0  # only the next token counts
    if "eps" in settings:
        found["eps"] = settings["eps"]
    return ProphetNetConfig(**{**defaults, **found})


def _check_padding(token: int | None) -> None:
    if token not in (None, 0):
        raise UserError(
            f"pad_token_id={token}: transformers' ProphetNet then takes position 0 from row {token + 1} of its tables, "
            "ours from row 1, as the released code does; weights can be exchanged only with pad_token_id=0"
        )


def settings_for_transformers(config: ProphetNetConfig) -> dict[str, Any]:
    """Convert our configuration to the `config.json` of transformers' ProphetNet.

    Raises:
        UserError: if the position tables differ in length, which transformers does not support, or padding is not
            token 0.
    """
    _check_padding(config.pad_token_id)
    if config.decoder_positions not in (None, config.max_position_embeddings):
        raise UserError(
            f"max_position_embeddings={config.max_position_embeddings} and decoder_positions={config.decoder_positions}"
            ": transformers' ProphetNet has tables of one length; set decoder_positions to the same"
        )
    settings = {theirs: getattr(config, ours) for ours, theirs in _SETTINGS.items()}
    settings |= {"disable_ngram_loss": config.attenuation == 0.0, "eps": getattr(config, "eps", 0.0)}
    return {"model_type": "prophetnet", "architectures": ["ProphetNetForConditionalGeneration"], **settings}


def from_transformers(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename weights of transformers' ProphetNet to our names.

    Raises:
        UserError: if a name is unknown, or encoder and decoder have different token tables.
    """
    state = one_table(state, _TOKENS, (*_COPIES, "lm_head.weight"), kept="lm_head.weight")
    return renamed(state, _TRANSFORMERS, _PROJECTIONS)


def to_transformers(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename our weights to those of transformers' ProphetNet, the token table once."""
    back = tuple((ours, theirs) for theirs, ours in _TRANSFORMERS)
    return renamed(state, back, {ours: theirs for theirs, ours in _PROJECTIONS.items()})


def one_table(
    state: Mapping[str, Tensor], name: str, copies: Iterable[str], *, kept: str = ""
) -> dict[str, Tensor]:
    """Return the weights with the token table once, as `name`; files have it under one or several of its names.

    Args:
        kept: the copy that may be a separate tensor (an untied head) and then is kept in addition to the table.
    """
    plain = dict(state)
    for copy in copies:
        if copy not in plain:
            continue
        if name not in plain:
            plain[name] = plain.pop(copy)
        elif copy != kept and not torch.equal(plain.pop(copy), plain[name]):
            raise UserError(f"{copy}: differs from {name}; encoder and decoder share one token table")
    return plain


def renamed(
    state: Mapping[str, Tensor], names: Names, parts: Mapping[str, str], *, dropped: Iterable[str] = ()
) -> dict[str, Tensor]:
    """Return the weights under other names.

    Args:
        names: old and new prefixes of weights, with N for the number of a layer.
        parts: old and new names of the parts that may follow a prefix.
        dropped: weights to omit.

    Raises:
        UserError: if a name is unknown.
    """
    by_length = sorted(names, key=lambda pair: -len(pair[0]))  # the longest match wins
    renamed = {}
    for name, tensor in state.items():
        if name in dropped:
            continue
        plain, numbers = re.sub(r"\.(\d+)\.", ".N.", name), re.findall(r"\.(\d+)\.", name)
        owner = next((pair for pair in by_length if plain.startswith(pair[0] + ".")), None)
        if owner is None:
            raise UserError(f"{name}: not the name of a ProphetNet weight")
        rest = [parts.get(part, part) for part in plain.removeprefix(owner[0] + ".").split(".")]
        new = ".".join([owner[1], *rest])
        renamed[new.replace(".N.", f".{numbers[0]}.") if numbers else new] = tensor
    return renamed


def load_transformers(model_class: type[PreTrainedModel], place: str | Path, **options: Any) -> Any:
    """Load a transformers ProphetNet for `ProphetNetForConditionalGeneration.from_pretrained`.

    Raises:
        UserError: if safetensors are missing, with or without a pickle, or the weights are of another model.
    """
    hub = hub_options(options)
    options = {name: value for name, value in options.items() if name not in hub}
    settings = read_settings(place, **hub)
    if settings is None or settings.get("model_type") not in TRANSFORMERS_TYPES:
        raise UserError(f"{place}: not a ProphetNet of transformers")
    given = options.pop("config", None)
    config = config_from_transformers(settings) if given is None else given
    if not isinstance(config, ProphetNetConfig):
        raise UserError(f"{place}: config is a {type(config).__name__}; pass a ProphetNetConfig, or omit it")
    changes = {name: options.pop(name) for name in [*options] if name in _FIELDS}
    config = ProphetNetConfig.from_dict({**config.to_dict(), **changes})
    state = from_transformers(_read_weights(place, **hub))
    check_whole(state, model_class, config, place)
    loaded = model_class.from_pretrained(None, config=config, state_dict=state, **options)
    model = loaded[0] if isinstance(loaded, tuple) else loaded  # a tuple with output_loading_info
    model.generation_config.update(**_generation_settings(place, settings, **hub))
    return loaded


def check_whole(
    state: Mapping[str, Tensor],
    model_class: type[PreTrainedModel],
    config: ProphetNetConfig,
    place: str | Path,
) -> None:
    """Refuse weights that do not match the model. transformers would fill missing ones with random numbers.

    Raises:
        UserError: if a weight is missing, unexpected, or of another shape.
    """
    with torch.device("meta"):
        wanted = model_class(config).state_dict()
    if config.tie_word_embeddings and "lm_head.weight" not in state:
        wanted.pop("lm_head.weight")
    names = sorted(set(wanted) ^ set(state))
    if names:
        raise UserError(
            f"{place}: {names[0]} is {'missing' if names[0] in wanted else 'unexpected'} ({len(names)} in all): "
            "not the weights of this ProphetNet"
        )
    for name, tensor in wanted.items():
        if state[name].shape != tensor.shape:
            raise UserError(
                f"{place}: {name} is {tuple(state[name].shape)}, this ProphetNet has {tuple(tensor.shape)}: "
                "not its weights"
            )


def _generation_settings(
    place: str | Path, settings: Mapping[str, Any], **hub: Unpack[HubOptions]
) -> dict[str, Any]:
    """Return the checkpoint's decoding settings, from their own file or, in old checkpoints, from `config.json`."""
    found = find_file(place, "generation_config.json", **hub)
    if found is not None:
        settings = read_json(Path(found))
    known = GenerationConfig().to_dict()
    return {
        name: value
        for name, value in settings.items()
        if name in known and name != "transformers_version" and value is not None
    }


def save_for_transformers(model: PreTrainedModel, folder: str | Path) -> None:
    """Write a model folder that transformers' own ProphetNet can load.

    Raises:
        UserError: if transformers' ProphetNet does not support the shape, or `folder` contains files not from precis.

    Examples:
        >>> config = precis.ProphetNetConfig(vocab_size=30, hidden_size=16, encoder_layers=1, decoder_layers=1)
        >>> save_for_transformers(precis.ProphetNetForConditionalGeneration(config), "plain")
        >>> Path("plain/model.safetensors").is_file()
        True
    """
    settings = settings_for_transformers(model.config)
    state = model.state_dict()
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    tensors = {name: tensor.contiguous() for name, tensor in to_transformers(state).items()}

    def write(place: Path) -> None:
        save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
        (place / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        if model.generation_config is not None:
            model.generation_config.save_pretrained(place)

    write_folder(Path(folder), write)


def _read_weights(place: str | Path, **hub: Unpack[HubOptions]) -> dict[str, Tensor]:
    single = find_file(place, "model.safetensors", **hub)
    if single is not None:
        return load_file(single)
    index = find_file(place, "model.safetensors.index.json", **hub)
    if index is None:
        raise UserError(
            f"{place}: contains no safetensors; a pickle can run any code when opened, so it is not read: if you trust "
            "its author, transformers' ProphetNetForConditionalGeneration.from_pretrained(OLD).save_pretrained(NEW) "
            "writes safetensors, and `precis convert` reads fairseq's files safely"
        )
    shards, _ = get_checkpoint_shard_files(str(place), index, **hub)
    return {name: tensor for shard in shards for name, tensor in load_file(shard).items()}
