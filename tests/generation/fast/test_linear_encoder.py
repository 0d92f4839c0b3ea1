"""Copies of an encoder's matrices, in place while it reads and never longer."""

import threading
from types import MethodType

import torch
from torch import nn
from transformers import PreTrainedModel

from precis.generation.fast.packed_linear import AsGiven, PackedEncoder
from tests.tiny_models import our_tokenizer, tiny


def model() -> PreTrainedModel:
    made, _ = tiny("zcodepp", seed=3)
    return made


def last_matrix(encoder: nn.Module) -> nn.Linear:
    """The last, as the states hang on it far more than on the first, which only makes scores."""
    return [module for module in encoder.modules() if type(module) is nn.Linear][-1]


def read(encoder: nn.Module) -> torch.Tensor:
    given = our_tokenizer()(["Ann sings. Bob heard the song."], return_tensors="pt")
    with torch.no_grad():
        return encoder(input_ids=given["input_ids"]).last_hidden_state


def test_two_threads_that_read_with_one_encoder_leave_it_its_own_matrices() -> None:
    encoder = model().get_encoder()
    before = dict(encoder.named_modules())
    packs = [PackedEncoder(encoder, AsGiven()) for _ in range(2)]
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with packs[0].in_place():
            inside.set()
            leave.wait(5)

    def second() -> None:
        with packs[1].in_place():
            pass

    one, other = threading.Thread(target=first), threading.Thread(target=second)
    one.start()
    assert inside.wait(5)
    other.start()
    other.join(0.2)  # it has to wait for the first
    leave.set()
    one.join()
    other.join()
    assert dict(encoder.named_modules()) == before


def test_a_matrix_that_gets_a_forward_of_its_own_keeps_its_place() -> None:
    encoder = model().get_encoder()
    packed = PackedEncoder(encoder, AsGiven())
    plain = read(encoder)
    matrix = last_matrix(encoder)
    matrix.forward = MethodType(  # type: ignore[method-assign]
        lambda self, states: torch.zeros_like(nn.Linear.forward(self, states)), matrix
    )
    changed = read(encoder)
    assert (changed - plain).abs().max() > 1e-2
    with packed.in_place():
        torch.testing.assert_close(read(encoder), changed, atol=1e-5, rtol=1e-5)
