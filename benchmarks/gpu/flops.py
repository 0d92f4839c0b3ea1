"""Multiplications of a training step: the products of a forward pass, counted on paper, times three.

A multiplication and its addition are 2. b documents, n tokens, d wide, f inside the feed-forward, R rows of the
position table, V tokens in the vocabulary:

    encoder layer        8 n d^2  projections of queries, keys, values, output
                         4 n^2 d  scores and weighted sums
                         4 n R d  content to position, position to content (R at most 2n - 1)
                         4 n d f  feed-forward
       and once a batch  4 R d^2  projections of the position table
    decoder layer, t     8 t d^2 + 4 t^2 d + 4 t d f, as above; masked places are counted as the products do them
       reading s tokens  4 t d^2 + 4 s d^2 + 4 t s d
    head at k places     2 k d V (the generator's and the detector's: 2 d^2 a place before)

The backward pass has two products for each of these. Norms, activations, dropout, softmax and the optimizer are not
counted, and nothing is counted twice where a way computes it again.
"""

from dataclasses import dataclass

from precis.recipes.run_plan import ZCodePPShape

_BACKWARD_TOO = 3


@dataclass(frozen=True, kw_only=True)
class Work:
    """The tokens of one step.

    Args:
        rows: documents.
        read: tokens of a document that the encoder reads for the decoder.
        written: tokens that the decoder writes.
        detected: tokens of a block whose replacement is detected; 0 without a generator.
        masked: places of a block that the generator guesses.
    """

    rows: int
    read: int
    written: int
    detected: int = 0
    masked: int = 0


def of_step(shape: ZCodePPShape, work: Work, *, generator_layers: int = 0) -> int:
    """Count the FLOPs of a forward and a backward pass over a batch."""
    width, rows = shape.hidden_size, work.rows
    total = encoder(shape, rows=rows, length=work.read) + decoder(
        shape, rows=rows, read=work.read, written=work.written
    )
    total += 2 * rows * work.written * width * shape.vocab_size
    if work.detected:
        total += encoder(shape, rows=rows, length=work.detected)
        total += rows * work.detected * (2 * width**2 + 2 * width)
        total += encoder(shape, rows=rows, length=work.detected, layers=generator_layers)
        total += rows * work.masked * (2 * width**2 + 2 * width * shape.vocab_size)
    return _BACKWARD_TOO * total


def encoder(shape: ZCodePPShape, *, rows: int, length: int, layers: int | None = None) -> int:
    """Count the FLOPs of a forward pass of the encoder; position products only for shapes with DeBERTa's positions."""
    width, inner = shape.hidden_size, shape.intermediate_size
    document = length * (8 * width**2 + 4 * length * width + 4 * width * inner)
    batch = 0
    if shape.encoder_positions == "disentangled":
        table = min(2 * shape.position_buckets, 2 * length - 1)
        document += 4 * length * table * width
        batch = 4 * table * width**2
    return (rows * document + batch) * (shape.encoder_layers if layers is None else layers)


def decoder(shape: ZCodePPShape, *, rows: int, read: int, written: int) -> int:
    """Count the FLOPs of a forward pass of the decoder, without the head."""
    width, inner = shape.hidden_size, shape.intermediate_size
    own = written * (8 * width**2 + 4 * written * width + 4 * width * inner)
    source = 4 * written * width**2 + 4 * read * width**2 + 4 * written * read * width
    return rows * (own + source) * shape.decoder_layers
