"""Which tokens are no part of a text: what a tokenizer puts around it, and what only models write."""

from transformers import PreTrainedTokenizerBase


def control_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The ids of its control tokens. [UNK] is declared as one and is none: it stands for a word of the text that the
    vocabulary lacks. Where the end mark is the unknown word too, as in GPT-2's vocabulary, it counts as a mark.
    """
    marks = {
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
        tokenizer.cls_token_id,
        tokenizer.sep_token_id,
        tokenizer.pad_token_id,
    }
    unknown = {tokenizer.unk_token_id} - marks
    return frozenset(tokenizer.all_special_ids) - unknown
