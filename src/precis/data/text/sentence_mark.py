"""The token between a summary's sentences: ProphetNet's [X_SEP], which its CNN/DailyMail models learnt to write.

Released code: targets are "sentence [X_SEP] sentence", and what is written is cut there again. Here a sentence is a
line of the text. Only tokenizers that declare the mark as a control token have one; others know line breaks or do not.
"""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from precis.data.text.control_tokens import control_ids
from precis.data.text.tokenizer_errors import panics_in_one_line

#: The name in transformers' tokenizer, and the one of the same id in BERT's vocabulary.
SENTENCE_MARKS = ("[X_SEP]", "[unused1]")


def sentence_mark(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The id of the mark; None: this tokenizer has none."""
    declared = set(tokenizer.all_special_tokens)
    found = (tokenizer.convert_tokens_to_ids(name) for name in SENTENCE_MARKS if name in declared)
    return next((index for index in found if isinstance(index, int)), None)


def encode_summaries(summaries: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Token ids as a decoder is to write them, with the mark between lines where there is one."""
    mark = sentence_mark(tokenizer)
    if mark is None:
        return _encode(summaries, tokenizer)
    return [_marked(summary, tokenizer, mark) for summary in summaries]


def _encode(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    with panics_in_one_line():
        encoded = tokenizer(text_target=[*texts], return_attention_mask=False, verbose=False)
    written: list[list[int]] = encoded["input_ids"]
    return written


def _marked(summary: str, tokenizer: PreTrainedTokenizerBase, mark: int) -> list[int]:
    lines = [line for line in summary.splitlines() if line.strip()] or [summary]
    *before, last = _encode(lines, tokenizer)
    control = control_ids(tokenizer)
    ids = [index for line in before for index in [*(i for i in line if i not in control), mark]]
    return [*ids, *last]


def decode_summary(ids: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> str:
    """The text without control tokens; the mark is a line break."""
    mark = sentence_mark(tokenizer)
    lines: list[list[int]] = [[]]
    for index in ids:
        if index == mark:
            lines.append([])
        else:
            lines[-1].append(index)
    texts = (
        str(tokenizer.decode(line, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        for line in lines
    )
    return "\n".join(text for text in texts if mark is None or text.strip())
