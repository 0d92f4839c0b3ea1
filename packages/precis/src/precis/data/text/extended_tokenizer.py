"""Add the control tokens of pre-training to the vocabulary of another model.

mT5's 250,000 pieces, which Z-Code++ uses for its multilingual model (section 3.1), have an end mark and nothing else:
no [CLS], no [MASK] and no sentinels of ours. DeBERTa's and XLM-R's lack the sentinels. Missing tokens are appended, so
that all other ids stay, and with them the rows of a pre-trained embedding table.
"""

from __future__ import annotations

import copy

from tokenizers import AddedToken
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from precis.data.text.unigram_tokenizer import CLS, MASK, PAD, SENTINELS, SEP, sentinel, wrapped
from precis_text.errors import UserError


def adopt_tokenizer(tokenizer: PreTrainedTokenizerBase, *, name: str) -> PreTrainedTokenizerFast:
    """Copy a tokenizer and add [PAD], [CLS], [SEP], [MASK] and 100 sentinels, unless it has them under other names.

    Texts are put between two marks: its token for the start of a text or a sequence, and its separator or its token
    for the end of a sequence. Splitting, normalization and all ids stay the same.

    Args:
        name: the tokenizer's name in messages.

    Raises:
        UserError: it is not built on the tokenizers library.
    """
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise UserError(f"{name}: is not a fast tokenizer, and only those can be extended; use another one")
    marks = {
        "cls": tokenizer.cls_token or tokenizer.bos_token or CLS,
        "sep": tokenizer.sep_token or tokenizer.eos_token or SEP,
        "pad": tokenizer.pad_token or PAD,
        "mask": tokenizer.mask_token or MASK,
    }
    first, last = str(marks["cls"]), str(marks["sep"])
    sentinels = [sentinel(index) for index in range(SENTINELS)]
    backend = copy.deepcopy(tokenizer.backend_tokenizer)
    known = backend.get_vocab(with_added_tokens=True)
    control = [*map(str, marks.values()), *sentinels]
    new = [AddedToken(mark, normalized=False, special=True) for mark in control if mark not in known]
    backend.add_special_tokens(new)
    backend.no_padding()
    backend.no_truncation()
    return wrapped(
        backend,
        cls=first,
        sep=last,
        pad=str(marks["pad"]),
        unk=tokenizer.unk_token,
        mask=str(marks["mask"]),
        sentinels=sentinels,
    )
