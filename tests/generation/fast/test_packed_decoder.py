"""A packed decoder reads several tokens at once as it reads them one by one, and refuses what it does not know."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from transformers import PreTrainedModel

from precis.generation.fast.packed_decoder import PackedDecoder, Steps, why_not_as_known
from precis.generation.fast.packed_linear import AsGiven
from precis.generation.fast.packed_prophetnet import PackedProphetNet
from precis.generation.fast.packed_zcodepp import PackedZCodePP
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from tests.fast_cases import model, prophet

TOKENS = 9


def packed(kind: str) -> tuple[PreTrainedModel, PackedDecoder]:
    """A model with two streams that draft, and its packed decoder."""
    if kind == "prophetnet":
        of = prophet(1, ngram=3)
        return of, PackedProphetNet(of, rows=1, weights=AsGiven())
    torch.manual_seed(4)
    shape = {**model().config.to_diff_dict(), "future_tokens": 2}
    made = ZCodePPForConditionalGeneration(type(model().config)(**shape)).eval()
    return made, PackedZCodePP(made, rows=1, weights=AsGiven())


@pytest.mark.parametrize("drafts", [0, 1, 2])
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
@torch.no_grad()
def test_a_step_is_a_draft_of_one_token(kind: str, drafts: int) -> None:
    of, decoder = packed(kind)
    source = torch.randn(1, 7, of.config.hidden_size)
    tokens = torch.randint(4, 30, (1, TOKENS))
    one, several = (Steps(decoder, source, None, beams=1, steps=TOKENS, drafts=2) for _ in range(2))
    expected = torch.cat([one(tokens[:, [i]], None) for i in range(TOKENS)], dim=1)
    first, _ = several.look_ahead(tokens[:, :4], drafts)
    several.look_ahead(torch.randint(4, 30, (1, 3)), drafts)
    several.forget(3)
    then, ahead = several.look_ahead(tokens[:, 4:], drafts)
    torch.testing.assert_close(torch.cat([first, then], dim=1), expected, atol=1e-5, rtol=1e-5)
    assert ahead.shape == (drafts, TOKENS - 4, of.config.hidden_size)


class _Scaled(torch.nn.Linear):
    """A head that computes something else."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(states)


@pytest.mark.parametrize("head", [partial(torch.nn.Linear, bias=True), partial(_Scaled, bias=False)])
def test_a_head_with_a_bias_or_of_another_kind_is_not_packed(
    head: Callable[[int, int], torch.nn.Linear],
) -> None:
    of = type(model())(model().config).eval()
    assert why_not_as_known(of, PackedZCodePP.known) is None
    of.lm_head = head(16, 40)
    assert why_not_as_known(of, PackedZCodePP.known) == "its head is not a plain matrix"
