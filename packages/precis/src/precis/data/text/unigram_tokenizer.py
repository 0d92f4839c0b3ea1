"""Train and load the tokenizer: a Unigram model with byte fallback, so that every Unicode text has tokens.

Layout of the ids (design, decision 6):

    [PAD] [CLS] [SEP] [UNK] | <0x00> ... <0xFF> | pieces, best first | [MASK] | [M0] ... [M99]
       0     1     2     3  |   4    ...   259  |                    |        |  sentinels

Text is normalized to NFC. A run of horizontal white space becomes one space. Every line break is a token, since the
turns of a dialogue are lines. A word keeps the mark of the preceding space ("▁"), also at the start of a line. Words,
punctuation and digits are split from each other, as in SentencePiece's split by script, so "Ann: hello" and "Ann says"
share the token "Ann". Numbers become single digits, so that a model learns to copy them digit by digit. Control tokens
typed into a text ("[SEP]") are read as plain text.
"""

import copy
import hashlib
import json
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import cast

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from precis.data.rows.hub import PREFIX, hub_hint, hub_name, refuse_absent
from precis.data.text.encoding import one_line
from precis.data.text.unigram_trainer import learn_pieces
from precis.storage.model_files import CONFIG, check_sizes, check_tokenizer_settings, plain_settings
from precis_text.bounded_io import MAX_BYTES, MAX_VALUES, check_inside, read_bounded, read_json, suggest
from precis_text.control_characters import SEPARATOR, remove_marks
from precis_text.errors import UserError
from precis_text.tokenizer_growth import check_growth

PAD, CLS, SEP, UNK, MASK = "[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"
_LEADING = (PAD, CLS, SEP, UNK)
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
_SPACE = "▁"  # U+2581, SentencePiece's mark of a space
_TYPED_SPACE = "\ufdd0"  # replaces a U+2581 in the text; a noncharacter, so no text contains it
_ALWAYS = (_SPACE, "\n", *"0123456789")
_FILES = (
    *("tokenizer.json", "vocab.json", "added_tokens.json", "special_tokens_map.json"),
    *("vocab.txt", "merges.txt"),
)
_PROBE = "Ann: hello, it's 12 o'clock.\nSee you!  " + "a" * 40 + "!"
SENTINELS = 100  # span markers at the end of the vocabulary
_COVERAGE = 0.9995  # share of the characters that get their own pieces; bytes spell the rest
_PIECES = (
    r"['’]\p{L}{1,2}(?![\p{L}\p{M}])"  # 's 'm 'll 're
    r"|▁?[\p{L}\p{M}]+"
    r"|▁?\p{N}"
    r"|\n"
    r"|▁?[^\s\p{L}\p{M}\p{N}▁]+"
    r"|▁"
)

_NORMALIZER = normalizers.Sequence([
    normalizers.NFC(),
    normalizers.Replace(_SPACE, _TYPED_SPACE),
    normalizers.Replace(Regex(r"\r\n?|[\u2028\u2029]"), "\n"),
    normalizers.Replace(Regex(r"[^\S\n]+"), " "),
    normalizers.Replace(Regex(r" ?\n ?"), "\n"),
    normalizers.Replace(Regex(r"\n{3,}"), "\n\n"),
    # A space before the first word of a line gives it the same token as inside a line.
    normalizers.Replace(Regex(r"\n(?!\n)"), "\n "),
    normalizers.Strip(),
])  # fmt: skip
_SPLITTER = pre_tokenizers.Sequence([
    pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="first", split=False),
    pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
])  # fmt: skip
_DECODER = decoders.Sequence([
    decoders.ByteFallback(), decoders.Fuse(), decoders.Replace(_SPACE, " "), decoders.Replace("\n ", "\n"),
    decoders.Strip(" ", 1, 0), decoders.Replace(_TYPED_SPACE, _SPACE),
])  # fmt: skip


def sentinel(index: int) -> str:
    """Return the name of sentinel `index`, which replaces the index-th masked span in span corruption."""
    return f"[M{index}]"


def train_tokenizer(
    texts: Iterable[str], *, vocab_size: int, sentinels: int = SENTINELS
) -> PreTrainedTokenizerFast:
    """Train a tokenizer whose `len()` is `vocab_size`, control tokens, bytes and sentinels included.

    The same texts give the same tokenizer. All texts are kept in memory, so pass a sample of a very large
    corpus. A corpus too small to fill the vocabulary gives a smaller one, with a warning that states its size.

    Args:
        texts: documents and summaries, any script.
        vocab_size: total number of ids.
        sentinels: number of span markers at the end of the vocabulary.

    Raises:
        UserError: `vocab_size` leaves no room for pieces, or the texts are blank.

    Examples:
        >>> texts = [pair.document for pair in precis.read_pairs("pairs", split="train")]
        >>> tokenizer = train_tokenizer(texts, vocab_size=420)
        >>> tokenizer.decode(tokenizer("Ann sings.").input_ids, skip_special_tokens=True)
        'Ann sings.'
    """
    fixed = len(_LEADING) + len(_BYTES) + 1 + sentinels
    smallest = fixed + len(_ALWAYS)
    if vocab_size < smallest:
        raise UserError(
            f"vocab_size={vocab_size} is too small: control tokens, bytes, digits and {sentinels} sentinels "
            f"already take {smallest}; use 1000 or more"
        )
    corpus = _drop_rare_characters(texts, most=vocab_size - smallest)
    pieces = learn_pieces(_count_words(corpus), count=vocab_size - fixed, required=_ALWAYS)
    if len(pieces) < vocab_size - fixed:
        warnings.warn(
            f"the texts give only {len(pieces) + fixed} of the {vocab_size} requested entries; "
            "the vocabulary is smaller",
            stacklevel=2,
        )
    return _assemble(pieces, sentinels=sentinels)


def load_tokenizer(folder: str | Path, *, checked: bool = False) -> PreTrainedTokenizerBase:
    """Load the fast tokenizer saved in `folder` (or a Hugging Face hub name), ours or any other model's.

    Args:
        checked: whether the caller has checked the folder's links and its `config.json`.

    Raises:
        UserError: the folder does not exist or contains no tokenizer.
    """
    path = Path(folder)
    is_local = not str(folder).startswith(PREFIX) and path.is_dir()
    if is_local and not any((path / name).exists() for name in ("tokenizer.json", "tokenizer_config.json")):
        raise UserError(f"{folder}: contains no tokenizer.json; make one with `precis tokenizer`")
    name = str(folder) if is_local else hub_name(folder)
    if name is None:
        raise UserError(f"{folder}: no such folder{hub_hint(folder)}{suggest(folder)}")
    if not is_local:
        refuse_absent(name, "tokenizer_config.json", "tokenizer.json", "vocab.json", CONFIG)
    elif not checked:
        _check_folder(path)
    overruled = _check_files(path) if is_local else {}
    with one_line(f"{folder}: the tokenizer cannot be loaded"):
        loaded = AutoTokenizer.from_pretrained(name, use_fast=True, trust_remote_code=False, **overruled)
        loaded(_PROBE, verbose=False)
    return cast(PreTrainedTokenizerBase, loaded)


def _check_folder(folder: Path) -> None:
    """Refuse a folder whose files link outside it, or whose `config.json` names code."""
    check_inside(folder)
    if (folder / CONFIG).exists():  # transformers reads the kind of tokenizer from it
        settings = plain_settings(read_json(folder / CONFIG), folder / CONFIG)
        check_sizes(settings, folder / CONFIG, elements=None, tensors=None)


def _check_files(folder: Path) -> dict[str, None]:
    """Refuse tokenizer files that are too large or name code; return the settings to override."""
    for file in (folder / name for name in _FILES if (folder / name).exists()):
        content = read_bounded(file, limit=MAX_BYTES)
        if sum(map(content.count, (b"[", b"{", b","))) > MAX_VALUES:
            raise UserError(
                f"{file}: contains more than {MAX_VALUES:,} values, the limit for a tokenizer file"
            )
        if file.name == _FILES[0]:
            _check_growth_of(file)
    return check_tokenizer_settings(folder)


def _check_growth_of(file: Path) -> None:
    try:
        check_growth(read_json(file))
    except UserError as error:
        raise UserError(f"{file.parent}: the tokenizer cannot be loaded: {error}") from None


def without_start(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Copy a tokenizer so that its texts start with their first word and end with the end mark.

    The released ProphetNet needs this: it starts writing from the end mark, so a [CLS] in its targets would be a
    token to write. A tokenizer that is not built on the tokenizers library is returned unchanged.
    """
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        return tokenizer
    end, end_id = str(tokenizer.eos_token), cast(int, tokenizer.eos_token_id)
    changed = copy.deepcopy(tokenizer)
    changed.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", pair=f"$A {end} $B {end}", special_tokens=[(end, end_id)]
    )
    return changed


def digest_of(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a digest of a tokenizer's vocabulary: 16 hexadecimal digits."""
    vocabulary = sorted(tokenizer.get_vocab().items())
    return hashlib.sha256(json.dumps(vocabulary).encode()).hexdigest()[:16]


def _drop_rare_characters(texts: Iterable[str], *, most: int) -> list[str]:
    """Replace the rarest characters with spaces: 0.05% of the text, or more, to keep at most `most` characters.

    Each remaining character takes a vocabulary entry; a chat corpus has hundreds of emoji.
    """
    corpus = [unicodedata.normalize("NFC", remove_marks(text).replace(SEPARATOR, " ")) for text in texts]
    counts: Counter[str] = Counter()
    for text in corpus:
        counts.update(text)
    if all(character.isspace() for character in counts):
        raise UserError("the texts are blank; give text to train a tokenizer on")
    rarest = sorted(counts, key=lambda character: (counts[character], character))
    cumulated = accumulate(counts[character] for character in rarest)
    uncovered = sum(counts.values()) * (1 - _COVERAGE)
    rare = max(sum(count <= uncovered for count in cumulated), len(rarest) - most)
    table = {ord(character): " " for character in rarest[:rare]}
    return [text.translate(table) for text in corpus] if table else corpus


def _count_words(corpus: Iterable[str]) -> Counter[str]:
    """Count the words that the pre-tokenizer makes of the texts."""
    spaced: Counter[str] = Counter()
    for text in corpus:
        spaced.update(_NORMALIZER.normalize_str(text).split(" "))
    words: Counter[str] = Counter()
    for word, times in spaced.items():
        for part, _ in _SPLITTER.pre_tokenize_str(word):
            words[part] += times
    return words


def _assemble(pieces: list[tuple[str, float]], *, sentinels: int) -> PreTrainedTokenizerFast:
    floor = min(score for _, score in pieces)
    marks = [MASK, *(sentinel(index) for index in range(sentinels))]
    # Never chosen if a text can be spelled otherwise. Control tokens never are: the pre-tokenizer splits
    # brackets from letters and digits.
    unused = floor - 20.0
    vocabulary = [
        *((name, unused) for name in _LEADING),
        *((name, unused) for name in _BYTES),
        *pieces,
        *((name, unused) for name in marks),
    ]
    backend = Tokenizer(models.Unigram(vocabulary, _LEADING.index(UNK), byte_fallback=True))
    backend.normalizer, backend.pre_tokenizer, backend.decoder = _NORMALIZER, _SPLITTER, _DECODER
    names = (*_LEADING, *marks)
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    return wrapped(backend, cls=CLS, sep=SEP, pad=PAD, unk=UNK, mask=MASK, sentinels=marks[1:])


def wrapped(
    backend: Tokenizer, *, cls: str, sep: str, pad: str, unk: str | None, mask: str, sentinels: Sequence[str]
) -> PreTrainedTokenizerFast:
    """Wrap a vocabulary with these marks as a transformers tokenizer that puts texts between `cls` and `sep`."""
    ids = [(mark, cast(int, backend.token_to_id(mark))) for mark in (cls, sep)]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B:1 {sep}:1", special_tokens=ids
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=cls, eos_token=sep, cls_token=cls, sep_token=sep, pad_token=pad,
        unk_token=unk, mask_token=mask, extra_special_tokens=[*sentinels], split_special_tokens=True,
        clean_up_tokenization_spaces=False, model_input_names=["input_ids", "attention_mask"],
        padding_side="right", truncation_side="right",
    )  # fmt: skip
