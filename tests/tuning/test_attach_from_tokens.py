"""Prefixes that start as real words."""

from typing import Any

import pytest
import torch

from precis.tuning import Prefix, attach
from precis.tuning.attach import Attachment
from precis.tuning.discourse import Tuning
from precis.tuning.prefix import ALL_SITES, AllLayers, FromTokens, SingleLayer, Site, TopLayers
from precis_text.errors import UserError
from tests.tuning.bases import KINDS, LAYERS, base

SCORED_BY_DISTANCE = {"t5", "zcodepp"}  # a prefix has no distance, so its scores are others


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in SCORED_BY_DISTANCE])
def test_columns_from_real_tokens_are_the_keys_that_the_base_makes_of_them(kind: str) -> None:
    """The text itself as input, seen a second time as a prefix: each key stands there twice."""
    model = base(kind)
    words = tuple(range(10, 16))
    attachment = attach(model, Tuning(prefix=Prefix(length=6, keys=FromTokens(ids=words))))
    row = torch.tensor([words])
    with attachment.attention() as matrices, torch.no_grad():
        model(input_ids=row, decoder_input_ids=row)
    weights = matrices[Site.ENCODER, 0]
    torch.testing.assert_close(weights[..., :6], weights[..., 6:], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_from_real_tokens_are_those_of_the_projections(kind: str) -> None:
    model = base(kind)
    words = tuple(range(10, 14))
    made: dict[Any, Any] = {}
    names = {"t5": ("SelfAttention.k", "SelfAttention.v")}
    other = ("attention.key", "attention.value")
    plain = ("self_attn.k_proj", "self_attn.v_proj")
    for part, wanted in enumerate(names.get(kind, other if kind in ("zcodepp", "prophetnet") else plain)):
        found = [n for n, _ in model.get_encoder().named_modules() if n.endswith(wanted)]
        assert len(found) == LAYERS
        for layer, path in enumerate(found):

            def keep(
                _: object, __: object, output: torch.Tensor, place: tuple[int, int] = (layer, part)
            ) -> None:
                made.setdefault(place, output)

            model.get_encoder().get_submodule(path).register_forward_hook(keep)
    with torch.no_grad():
        model.get_encoder()(input_ids=torch.tensor([[*words, *words[:2]]]))
    attachment = attach(model, Tuning(prefix=Prefix(length=6, keys=FromTokens(ids=words))))
    assert len(made) == 2 * LAYERS
    prefixes = attachment.prefixes.table(Site.ENCODER)
    assert prefixes is not None
    assert prefixes.table is not None
    for (layer, part), output in made.items():
        columns = prefixes.table[layer, part]
        expected = output[0].unflatten(-1, (2, -1)).transpose(0, 1)
        torch.testing.assert_close(columns, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("layers", [AllLayers(), TopLayers(count=2), SingleLayer(index=1)])
@pytest.mark.parametrize("sites", [("encoder",), ("cross", "decoder"), ALL_SITES])
def test_some_sites_and_layers_begin_as_they_would_among_all(
    sites: tuple[str, ...], layers: AllLayers | TopLayers | SingleLayer
) -> None:
    words = FromTokens(ids=(10, 11, 12))
    whole = attach(base(), Tuning(prefix=Prefix(length=4, keys=words))).prefixes.folded()
    prefix = Prefix(length=4, keys=words, sites=sites, layers=layers)
    some = attach(base(), Tuning(prefix=prefix)).prefixes.folded()
    assert len(some) == 2 * len(sites) * len(layers.indices(LAYERS))
    for name, tensor in some.items():
        assert torch.equal(tensor, whole[name])


@pytest.mark.parametrize(
    ("kind", "longest"), [("bart", 64), ("pegasus", 64), ("prophetnet", 62), ("t5", None)]
)
def test_a_prefix_that_is_longer_than_a_text_may_be_cannot_begin_as_words(
    kind: str, longest: int | None
) -> None:
    def attached(length: int) -> Attachment:
        return attach(base(kind), Tuning(prefix=Prefix(length=length, keys=FromTokens(ids=(10, 11)))))

    if longest is None:
        attached(200)
        return
    attached(longest)
    with pytest.raises(UserError, match=f"{longest + 1} columns .* positions for {longest}") as raised:
        attached(longest + 1)
    assert "\n" not in str(raised.value)
