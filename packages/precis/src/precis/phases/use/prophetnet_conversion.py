"""Opens a released ProphetNet, a fairseq checkpoint or a transformers folder, with a tokenizer that fits it."""

from __future__ import annotations

from pathlib import Path

from transformers import GenerationConfig, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from precis.data.text.encoding import SENTENCE_MARKS
from precis.data.text.unigram_tokenizer import without_start
from precis.models.prophetnet.fairseq_weights import convert_fairseq, has_berts_entries
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.prophetnet.prophetnet_weights import load_transformers
from precis_text.errors import UserError

_SENTENCE_MARK = 2  # the id that ProphetNet puts between sentences


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
    """Make tokenizer and model agree on the control tokens.

    Args:
        decides: use the tokenizer's ids, since the checkpoint declares none; else the configuration's.
    """
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
