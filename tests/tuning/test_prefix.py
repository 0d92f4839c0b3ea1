"""Columns: shapes, the reparametrising network, layer subsets, and settings that are refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from precis.tuning.prefix import (
    AllLayers,
    Direct,
    FromTokens,
    LowLayers,
    Prefix,
    PrefixTable,
    Reparametrized,
    SingleLayer,
    SiteShape,
    TopLayers,
)
from precis_text.errors import UserError

SHAPE = SiteShape(layers=12, heads=2, head_width=4)


def table(**options: Any) -> PrefixTable:
    torch.manual_seed(0)
    return PrefixTable(Prefix(length=6, **options), SHAPE, width=10)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (AllLayers(), range(12)),
        (TopLayers(count=5), range(7, 12)),
        (LowLayers(count=7), range(7)),
        (SingleLayer(index=3), range(3, 4)),
    ],
)
def test_a_subset_of_layers_has_columns(
    layers: AllLayers | TopLayers | LowLayers | SingleLayer, expected: range
) -> None:
    made = table(layers=layers)
    assert made().shape == (len(expected), 2, 2, 6, 4)
    assert [layer for layer in range(12) if made.row(layer) is not None] == list(expected)
    assert [made.row(layer) for layer in expected] == list(range(len(expected)))


@pytest.mark.parametrize(
    "layers", [TopLayers(count=13), LowLayers(count=0), SingleLayer(index=12), SingleLayer(index=-1)]
)
def test_layers_that_are_not_there_are_refused_with_both_numbers(
    layers: TopLayers | LowLayers | SingleLayer,
) -> None:
    with pytest.raises(UserError, match="in a stack of 12 layers"):
        table(layers=layers)


def test_the_network_is_that_of_li_and_liang() -> None:
    made = table(keys=Reparametrized(width=7))
    sizes = {name: tuple(p.shape) for name, p in made.named_parameters()}
    outputs = 12 * 2 * 2 * 4
    assert sizes == {
        "columns.0.weight": (6, 10),
        "columns.1.weight": (7, 10),
        "columns.1.bias": (7,),
        "columns.3.weight": (outputs, 7),
        "columns.3.bias": (outputs,),
    }
    assert isinstance(made.columns, torch.nn.Sequential)
    embedding, first, _, last = made.columns
    by_hand = last(torch.tanh(first(embedding.weight)))  # (p, L * 2 * h * e)
    for layer in (0, 5, 11):
        for kind in (0, 1):
            for head in (0, 1):
                start = ((layer * 2 + kind) * 2 + head) * 4
                assert torch.equal(made()[layer, kind, head], by_hand[:, start : start + 4])


def test_folding_changes_no_number_and_leaves_the_network_behind() -> None:
    made = table(keys=Reparametrized(width=7))
    before = made().detach()
    made.fold()
    assert torch.equal(made(), before)
    assert [name for name, _ in made.named_parameters()] == ["table"]


def test_without_gradients_the_network_runs_once_until_its_weights_change() -> None:
    made = table(keys=Reparametrized(width=7)).eval()
    runs = []
    assert isinstance(made.columns, torch.nn.Sequential)
    made.columns.register_forward_hook(lambda *_: runs.append(1))
    with torch.no_grad():
        first = made()
        assert torch.equal(made(), first)
        assert len(runs) == 1
        made.columns.get_parameter("1.weight").add_(1.0)
        assert not torch.equal(made(), first)
    assert made().requires_grad
    assert len(runs) == 3


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_a_step_of_a_fused_optimizer_is_seen_though_torch_does_not_count_it(training: bool) -> None:
    made = table(keys=Reparametrized(width=7)).eval()
    optimizer = torch.optim.AdamW(made.parameters(), lr=0.1, fused=True)
    with torch.no_grad():
        first = made()
    made.train(training)
    made().square().sum().backward()
    with torch.no_grad():
        made.train(training)()  # a look at the training batch, between the passes
    optimizer.step()
    with torch.no_grad():
        assert not torch.equal(made.eval()(), first)
        assert not torch.equal(made.exact(), first)


def test_what_is_saved_is_not_what_half_precision_kept() -> None:
    made = table(keys=Reparametrized(width=7)).eval()
    with torch.no_grad():
        with torch.autocast("cpu", torch.bfloat16):
            assert made().dtype is torch.bfloat16
            assert made.exact().dtype is torch.float32
        assert made().dtype is torch.float32


def test_dropout_drops_entries_in_training_only() -> None:
    made = table(dropout=0.5)
    assert made.table is not None
    assert not torch.equal(made.train()(), made.table)
    assert torch.equal(made.eval()(), made.table)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Prefix(length=0), r"length=0.*NoPrefix"),
        (lambda: Prefix(length=500_000), r"length=500000.*at most 10,000"),
        (
            lambda: Prefix(length=1, sites=("encoder", "decodr")),
            "unknown site 'decodr'; did you mean 'decoder'",
        ),
        (lambda: Prefix(length=1, sites=()), "at least one"),
        (lambda: Prefix(length=1, sites=("cross", "cross")), "once"),
        (lambda: Prefix(length=1, dropout=1.0), "dropout=1.0"),
        (lambda: FromTokens(ids=()), "at least one token"),
        (lambda: Reparametrized(width=0), "width=0"),
    ],
)
def test_settings_that_make_no_prefix_are_refused_in_one_line(make: Callable[[], object], words: str) -> None:
    with pytest.raises(UserError, match=words) as raised:
        make()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("keys", [Direct(std=0.5), FromTokens(ids=(3, 4)), Reparametrized(width=9)])
def test_settings_survive_json(keys: Direct | FromTokens | Reparametrized) -> None:
    prefix = Prefix(length=4, sites=("cross",), layers=SingleLayer(index=2), keys=keys, dropout=0.1)
    assert Prefix.from_dict(prefix.to_dict()) == prefix


def test_keys_and_values_begin_about_as_large_trained_themselves_as_by_the_network() -> None:
    """`Direct`'s spread is that of the network's first output, whatever the base's width."""
    torch.manual_seed(0)
    for width in (32, 512):
        shape = SiteShape(layers=3, heads=2, head_width=width // 2)
        made, drawn = (
            PrefixTable(Prefix(length=10, keys=keys), shape, width=width).exact().detach().std().item()
            for keys in (Reparametrized(), Direct())
        )
        assert 0.8 < made / drawn < 1.25
