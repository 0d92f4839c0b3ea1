"""Small random encoder-decoders with their tokenizers, for tests: ours, BART, T5 and LED, made on the spot."""

import copy
from functools import cache
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForSequenceClassification,
    LEDConfig,
    LEDForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from precis.data.synthetic.corpus import make_pairs
from precis.data.text.unigram_tokenizer import train_tokenizer
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration

KINDS = ("zcodepp", "bart", "t5", "led")

_SHAPE = (
    "--recipe zcodepp-micro --set model.hidden_size=32 --set model.intermediate_size=64 "
    "--set model.encoder_layers=2 --set model.decoder_layers=1 --set model.vocab_size=600"
)
_LENGTHS = "--max-source 96 --batch-tokens 2000 --set generation.max_tokens=16 --set generated_rows=4"
SMALL_RUN = [*_SHAPE.split(), *_LENGTHS.split(), "--threads", "1"]
"""Options of `precis finetune` for a model that is trained in a second."""


def once(*words: object) -> list[str]:
    """The words of a command line, where an option, or a setting after `--set`, that comes again replaces the first."""
    chosen: dict[str, list[str]] = {"": []}
    name = ""
    for word in map(str, words):
        if word.startswith("--"):
            name = word
            chosen[name] = [word]
        elif name.startswith("--set"):
            name = f"--set {word.partition('=')[0]}"
            chosen.pop("--set", None)
            chosen[name] = ["--set", word]
        else:
            chosen[name].append(word)
    return [word for group in chosen.values() for word in group]


@cache
def our_tokenizer() -> PreTrainedTokenizerBase:
    """One of ours, of 700 entries, trained on synthetic pairs."""
    texts = [text for pair in make_pairs(40, seed=5) for text in (pair.document, pair.summary)]
    return train_tokenizer(texts, vocab_size=700)


def documents(count: int, *, seed: int = 6) -> list[str]:
    """Synthetic documents of different lengths."""
    return [pair.document for pair in make_pairs(count, seed=seed)]


def tiny(kind: str, *, positions: int = 64, seed: int = 0) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A random model of that kind in evaluation mode, with a tokenizer; `positions` is its table of them."""
    torch.manual_seed(seed)
    tokenizer = _sentence_end_tokenizer() if kind == "t5" else our_tokenizer()
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    size = {"vocab_size": len(tokenizer)}
    layers = {
        "encoder_layers": 2,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
    }
    feed_forward = {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    starts = {"bos_token_id": tokenizer.bos_token_id, "decoder_start_token_id": tokenizer.eos_token_id}
    model: PreTrainedModel
    if kind == "zcodepp":
        config = ZCodePPConfig(
            **size,
            hidden_size=32,
            num_attention_heads=2,
            intermediate_size=64,
            encoder_layers=2,
            decoder_layers=1,
            **ids,
            bos_token_id=tokenizer.bos_token_id,
            decoder_start_token_id=tokenizer.bos_token_id,
        )
        model = ZCodePPForConditionalGeneration(config)
    elif kind == "bart":
        shape = BartConfig(
            **size, **layers, **feed_forward, **ids, **starts, d_model=32, max_position_embeddings=positions
        )
        shape.forced_eos_token_id = None
        model = BartForConditionalGeneration(shape)
    elif kind == "led":
        wide = LEDConfig(
            **size,
            **layers,
            **feed_forward,
            **ids,
            **starts,
            d_model=32,
            attention_window=8,
            max_encoder_position_embeddings=positions,
            max_decoder_position_embeddings=positions,
        )
        wide.forced_eos_token_id = None
        model = LEDForConditionalGeneration(wide)
    else:
        relative = T5Config(
            **size, **ids, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, decoder_start_token_id=0
        )
        model = T5ForConditionalGeneration(relative)
    return model.eval(), tokenizer


def save(kind: str, folder: Path, **options: int) -> Path:
    """Write such a model with its tokenizer as a Hugging Face folder."""
    model, tokenizer = tiny(kind, **options)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


_CHAT = (
    "{% for message in messages %}[BOS]{{ message['role'] }}: {{ message['content'] }}[EOS]{% endfor %}"
    "{% if add_generation_prompt %}[BOS]assistant:{% endif %}"
)


def llama(*, positions: int = 2048, seed: int = 0) -> tuple[LlamaForCausalLM, PreTrainedTokenizerBase]:
    """A random causal language model in evaluation mode, and a tokenizer with a chat template."""
    torch.manual_seed(seed)
    tokenizer = copy.deepcopy(our_tokenizer())
    tokenizer.chat_template = _CHAT.replace("[BOS]", tokenizer.bos_token).replace(
        "[EOS]", tokenizer.eos_token
    )
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=positions,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config).eval(), tokenizer


def save_llama(folder: Path, **options: int) -> Path:
    """Write such a model with its tokenizer as a Hugging Face folder."""
    model, tokenizer = llama(**options)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_classifier(folder: Path) -> Path:
    """Write a random classifier of pairs of texts, with two labels and a card that names its licence."""
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(our_tokenizer()), pad_token_id=our_tokenizer().pad_token_id, **shape)
    BertForSequenceClassification(config).save_pretrained(folder)
    our_tokenizer().save_pretrained(folder)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    return folder


@cache
def _sentence_end_tokenizer() -> PreTrainedTokenizerBase:
    """In T5's manner: pad 0, end mark 1, no start token, a declared limit of 96 tokens."""
    words = sorted({word for text in documents(60) for word in text.split()})
    pieces = ["<pad>", "</s>", "<unk>", *(f"▁{word}" for word in words), *"▁abcdefghijklmnopqrstuvwxyz.,"]
    vocabulary = [(piece, -1.0 - rank / 100) for rank, piece in enumerate(dict.fromkeys(pieces))]
    backend = Tokenizer(models.Unigram(vocabulary, 2))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="</s>", pad_token="<pad>", unk_token="<unk>", model_max_length=96
    )


@cache
def bert_tokenizer() -> PreTrainedTokenizerBase:
    """In BERT's manner: [unused] entries first, [MASK] among them, word pieces, [UNK] for what they do not spell."""
    unused = [f"[unused{index}]" for index in range(20)]
    texts = [*documents(60), "ann sings"]
    words = sorted({word.lower() for text in texts for word in text.split() if word.isalpha()})
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,:'"
    names = ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters]
    pieces = dict.fromkeys([*names, *(f"##{letter}" for letter in letters)])
    backend = Tokenizer(
        models.WordPiece({name: place for place, name in enumerate(pieces)}, unk_token="[UNK]")
    )
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    marks = [(name, names.index(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="[CLS]",
        eos_token="[SEP]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    )
