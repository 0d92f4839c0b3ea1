"""Tokens per text with our Unigram trainer and with sentencepiece's, on the same counted words.

    pip install sentencepiece; python -m benchmarks.tokenizer_trainers --data DIR [--tasks samsum e2e webnlg]

Both trainers get the same words with the same counts, and choose the same number of pieces. The pieces are assembled
into the same kind of tokenizer, so the only difference is the choice of pieces.
"""

import argparse
import hashlib
import io
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from precis.data.pairs.pair_reader import read_pairs
from precis.data.text.unigram_tokenizer import _ALWAYS, _assemble, _count_words, _drop_rare_characters
from precis.data.text.unigram_trainer import learn_pieces

Pieces = list[tuple[str, float]]
FIXED = 4 + 256 + 1 + 100  # control tokens, bytes, [MASK], sentinels
VOCABULARIES = {"samsum": 8000, "e2e": 2000, "webnlg": 8000}


def sentencepiece_pieces(words: Mapping[str, int], *, count: int) -> Pieces:
    """Train the same number of pieces with sentencepiece."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([f"{word}\t{times}" for word, times in sorted(words.items()) if word != "\n"]),
        model_writer=model,
        model_type="unigram",
        vocab_size=count - len(_ALWAYS) + 1,
        input_format="tsv",
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        split_by_unicode_script=False,
        split_by_number=False,
        split_by_whitespace=False,
        character_coverage=1.0,
        hard_vocab_limit=False,
        num_threads=1,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [
        (processor.id_to_piece(i), processor.get_score(i))
        for i in range(processor.get_piece_size())
        if not processor.is_unknown(i)
    ]
    known = {piece for piece, _ in pieces}
    lowest = min(score for _, score in pieces)
    return pieces + [(character, lowest) for character in _ALWAYS if character not in known]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with TASK/train.jsonl.gz and TASK/dev.jsonl.gz"
    )
    parser.add_argument("--tasks", nargs="+", choices=sorted(VOCABULARIES), default=sorted(VOCABULARIES))
    arguments = parser.parse_args()
    trainers: dict[str, Callable[..., Pieces]] = {
        "precis": lambda words, count: learn_pieces(words, count=count, required=_ALWAYS),
        "sentencepiece": lambda words, count: sentencepiece_pieces(words, count=count),
    }
    heads = (
        f"{'task':<8}{'trainer':<15}{'entries':>8}{'CPU s':>7}{'tokens/document':>17}{'tokens/summary':>16}"
    )
    print(f"{heads}  pieces' hash")
    for task in arguments.tasks:
        folder = arguments.data / task
        train = list(read_pairs(folder / "train.jsonl.gz", skip_bad=True))
        dev = list(read_pairs(folder / "dev.jsonl.gz"))
        room = VOCABULARIES[task] - FIXED
        texts = (text for pair in train for text in (pair.document, pair.summary))
        words = _count_words(_drop_rare_characters(texts, most=room - len(_ALWAYS)))
        for name, learn in trainers.items():
            start = time.process_time()
            pieces = learn(words, room)
            seconds = time.process_time() - start
            tokenizer = _assemble(pieces, sentinels=100)
            document, summary = (
                sum(len(tokenizer(getattr(pair, field))["input_ids"]) for pair in dev) / len(dev)
                for field in ("document", "summary")
            )
            digest = hashlib.sha256(repr(pieces).encode()).hexdigest()[:8]
            print(
                f"{task:<8}{name:<15}{len(tokenizer):>8}{seconds:>7.1f}{document:>17.1f}{summary:>16.1f}  {digest}"
            )


if __name__ == "__main__":
    main()
